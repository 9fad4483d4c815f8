// SPDX-License-Identifier: Apache-2.0
// npy files and zip archives made by hand. For the tests of npy and npz.
#pragma once

#include "gzip_fixture.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

namespace ebb::test {

// A number as the little-endian bytes that it has here.
template <class T>
std::string bytes_of_number(T number) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &number, sizeof(T));
  return bytes;
}

template <class T>
std::string numbers(std::initializer_list<std::type_identity_t<T>> values) {
  std::string bytes;
  for (const T value : values) {
    bytes += bytes_of_number(value);
  }
  return bytes;
}

// An npy file of this dictionary, as NumPy pads it.
inline std::string npy_of(std::string dictionary, const std::string& data, int version = 1) {
  const std::size_t begin = version == 1 ? 10 : 12;
  dictionary += std::string(64 - (begin + dictionary.size() + 1) % 64, ' ') + "\n";
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const auto size = static_cast<std::uint32_t>(dictionary.size());
  bytes += bytes_of_number(size).substr(0, version == 1 ? 2 : 4);
  return bytes + dictionary + data;
}

inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       bool fortran_order = false) {
  return npy_of("{'descr': '" + descr + "', 'fortran_order': " +
                    (fortran_order ? "True" : "False") + ", 'shape': " + shape + ", }",
                data);
}

struct ZipEntry {
  std::string name;
  std::string bytes;
  bool packed = false;
  std::uint16_t method = packed ? 8 : 0;
  std::uint16_t flags = 0;
};

// An archive as zip programs write it; zip64: with every size and offset in the larger fields.
inline std::string zip(const std::vector<ZipEntry>& entries, bool zip64 = false) {
  using std::uint16_t;
  using std::uint32_t;
  using std::uint64_t;
  std::string all;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const std::string data = entry.packed ? deflated(entry.bytes) : entry.bytes;
    const auto crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), entry.bytes.size()));
    const std::string common =
        numbers<uint16_t>({20, entry.flags, entry.method, 0, 0}) + numbers<uint32_t>({crc});
    const auto packed_bytes = static_cast<uint32_t>(data.size());
    const auto bytes = static_cast<uint32_t>(entry.bytes.size());
    const auto name = static_cast<uint16_t>(entry.name.size());
    const auto offset = static_cast<uint32_t>(all.size());
    all += numbers<uint32_t>({0x04034b50}) + common + numbers<uint32_t>({packed_bytes, bytes}) +
           numbers<uint16_t>({name, 0}) + entry.name + data;
    const std::string extra =
        zip64 ? numbers<uint16_t>({1, 24}) + numbers<uint64_t>({bytes, packed_bytes, offset}) : "";
    const uint32_t full = 0xffffffff;
    directory += numbers<uint32_t>({0x02014b50}) + numbers<uint16_t>({20}) + common +
                 numbers<uint32_t>({zip64 ? full : packed_bytes, zip64 ? full : bytes}) +
                 numbers<uint16_t>({name, static_cast<uint16_t>(extra.size()), 0, 0, 0}) +
                 numbers<uint32_t>({0, zip64 ? full : offset}) + entry.name + extra;
  }
  const uint64_t at = all.size();
  const uint64_t size = directory.size();
  const uint64_t count = entries.size();
  all += directory;
  if (zip64) {
    all += numbers<uint32_t>({0x06064b50}) + numbers<uint64_t>({44}) + numbers<uint16_t>({45, 45}) +
           numbers<uint32_t>({0, 0}) + numbers<uint64_t>({count, count, size, at});
    all += numbers<uint32_t>({0x07064b50, 0}) + numbers<uint64_t>({at + size}) +
           numbers<uint32_t>({1});
  }
  return all + numbers<uint32_t>({0x06054b50}) +
         numbers<uint16_t>({0, 0, zip64 ? uint16_t{0xffff} : static_cast<uint16_t>(count),
                            zip64 ? uint16_t{0xffff} : static_cast<uint16_t>(count)}) +
         numbers<uint32_t>({zip64 ? 0xffffffffu : static_cast<uint32_t>(size),
                            zip64 ? 0xffffffffu : static_cast<uint32_t>(at)}) +
         numbers<uint16_t>({0});
}

}  // namespace ebb::test
