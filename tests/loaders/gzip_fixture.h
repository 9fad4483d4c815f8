// SPDX-License-Identifier: Apache-2.0
// Packing bytes. For the tests of formats that may be gzipped or in a zip archive.
#pragma once

#include <zlib.h>

#include <string>

namespace ebb::test {

// format: what deflateInit2 calls windowBits.
inline std::string packed(const std::string& bytes, int format) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline std::string gzip(const std::string& bytes) {
  return packed(bytes, MAX_WBITS + 16);
}
// As the members of a zip archive are.
inline std::string deflated(const std::string& bytes) {
  return packed(bytes, -MAX_WBITS);
}

}  // namespace ebb::test
