// SPDX-License-Identifier: Apache-2.0
// The IDX format: two zero bytes, element type, number of dimensions, a big-endian 32-bit size for
// each, then the elements, the last dimension fastest. Any thread.
#include "idx_file.h"

#include "byte_reader.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

namespace ebb::inline v0::detail {

namespace {

constexpr std::uint8_t type_u8 = 0x08;

const char* type_name(std::uint8_t type) noexcept {
  switch (type) {
    case 0x09:
      return "i8";
    case 0x0b:
      return "i16";
    case 0x0c:
      return "i32";
    case 0x0d:
      return "f32";
    case 0x0e:
      return "f64";
    default:
      return "unknown";
  }
}

std::string plural(std::uint64_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

// Reads bytes of the header, all of them.
template <std::size_t n>
std::array<std::uint8_t, n> read_header(ByteReader& reader, const char* what) {
  std::array<std::uint8_t, n> bytes{};
  if (reader.read(bytes) != n) {
    reader.fail(LoadErrorKind::corrupt, "header", reader.offset(),
                reader.offset() == 0
                    ? "the file is empty"
                    : std::string("truncated in ") + what + ": get the file again");
  }
  return bytes;
}

void check_magic(ByteReader& reader, std::size_t dims, std::string_view role) {
  const auto magic = read_header<4>(reader, "the magic number");
  if (magic[0] != 0 || magic[1] != 0) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%02x%02x%02x%02x", magic[0], magic[1], magic[2],
                  magic[3]);
    reader.fail(LoadErrorKind::corrupt, "header", 0,
                std::string("not an IDX file: it begins with 0x") + text.data());
  }
  if (magic[2] != type_u8) {
    reader.fail(LoadErrorKind::shape, "header", 2,
                "the elements are " + std::string(type_name(magic[2])) + " (type " +
                    std::to_string(magic[2]) + "): unsigned bytes (type 8) are needed");
  }
  if (magic[3] != dims) {
    const char* hint = magic[3] == 1   ? ": are these labels?"
                       : magic[3] == 3 ? ": are these images?"
                                       : "";
    reader.fail(LoadErrorKind::shape, "header", 3,
                plural(magic[3], "dimension") + " where " + std::string(role) + " have " +
                    std::to_string(dims) + hint);
  }
}

// Returns the number of elements that the sizes promise.
std::uint64_t read_sizes(ByteReader& reader, std::size_t dims, IdxFile& file) {
  std::uint64_t product = 1;
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const std::uint64_t at = reader.offset();
    const auto b = read_header<4>(reader, "the sizes");
    const std::uint64_t size = (std::uint64_t{b[0]} << 24) | (std::uint64_t{b[1]} << 16) |
                               (std::uint64_t{b[2]} << 8) | std::uint64_t{b[3]};
    if (size == 0) {
      reader.fail(LoadErrorKind::shape, "header", at,
                  "the size of dimension " + std::to_string(dim) + " is 0");
    }
    if (__builtin_mul_overflow(product, size, &product)) {
      reader.fail(LoadErrorKind::corrupt, "header", at, "the product of the sizes overflows");
    }
    file.sizes.push_back(size);
  }
  return product;
}

}  // namespace

IdxFile read_idx(std::string_view function, const std::filesystem::path& path, std::size_t dims,
                 std::string_view role) {
  ByteReader reader(function, path);
  IdxFile file;
  file.source = reader.source();
  check_magic(reader, dims, role);
  const std::uint64_t bytes = read_sizes(reader, dims, file);
  const std::uint64_t header = reader.offset();
  const std::string promise = "the header promises " + plural(bytes, "byte") + " of data";
  if (bytes > reader.bytes_max() - std::min(header, reader.bytes_max())) {
    reader.fail(LoadErrorKind::corrupt, "data", reader.is_gzip() ? header : reader.bytes_max(),
                "truncated: " + promise + ", more than the file holds; get it again");
  }
  try {
    file.data = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
  } catch (const std::bad_alloc&) {
    reader.fail(LoadErrorKind::memory, "data", header, promise + ": there is no memory for them");
  }
  file.bytes = static_cast<std::size_t>(bytes);
  const std::size_t count = reader.read({file.data.get(), file.bytes});
  if (count != file.bytes) {
    reader.fail(
        LoadErrorKind::corrupt, "data", reader.offset(),
        "truncated: " + promise + ", there are " + std::to_string(count) + "; get the file again");
  }
  std::array<std::uint8_t, 1> more{};
  if (reader.read(more) != 0) {
    reader.fail(LoadErrorKind::corrupt, "data", header + bytes,
                "bytes follow the data: " + promise);
  }
  return file;
}

}  // namespace ebb::inline v0::detail
