// SPDX-License-Identifier: Apache-2.0
// The fields of tar headers: POSIX.1-2017 (pax, "ustar interchange format"), and the GNU tar manual
// for sizes in base 256 and long names. Any thread.
#include "tar_header.h"

#include <algorithm>
#include <charconv>

namespace ebb::inline v0::detail {

namespace {

struct FieldPlace {
  std::size_t at;
  std::size_t bytes;
};
constexpr FieldPlace name_field{0, 100};
constexpr FieldPlace size_field{124, 12};
constexpr FieldPlace checksum_field{148, 8};
constexpr std::size_t type_at = 156;
constexpr FieldPlace magic_field{257, 6};  // "ustar" and a zero: POSIX; "ustar ": GNU, no prefix
constexpr FieldPlace prefix_field{345, 155};

std::string_view text_of(const TarBlock& block, FieldPlace field) noexcept {
  return {reinterpret_cast<const char*>(block.data()) + field.at, field.bytes};
}

// Up to the first zero byte.
std::string_view string_of(const TarBlock& block, FieldPlace field) noexcept {
  const std::string_view text = text_of(block, field);
  return text.substr(0, text.find('\0'));
}

// Octal digits with spaces in front and spaces or zeros behind; or base 256 after a byte of 0x80.
std::optional<std::uint64_t> number_of(const TarBlock& block, FieldPlace field) noexcept {
  std::string_view text = text_of(block, field);
  if (text.front() == '\x80') {
    std::uint64_t value = 0;
    for (const char c : text.substr(1)) {
      if (value >> 55 != 0) {  // 63 bits at most: offsets are signed in the system's calls
        return std::nullopt;
      }
      value = (value << 8) | static_cast<unsigned char>(c);
    }
    return value;
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_last_not_of(std::string_view(" \0", 2)) + 1);
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, 8);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

// Old programs summed signed bytes; both sums are taken. The checksum itself counts as spaces.
bool has_checksum(const TarBlock& block, std::uint64_t checksum) noexcept {
  std::int64_t unsigned_sum = 0;
  std::int64_t signed_sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_field = i - checksum_field.at < checksum_field.bytes;
    const auto byte = is_field ? std::uint8_t{' '} : std::to_integer<std::uint8_t>(block[i]);
    unsigned_sum += byte;
    signed_sum += static_cast<std::int8_t>(byte);
  }
  return static_cast<std::uint64_t>(unsigned_sum) == checksum ||
         static_cast<std::uint64_t>(signed_sum) == checksum;
}

}  // namespace

bool is_zero(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::optional<TarHeader> read_tar_header(const TarBlock& block, TarMistake& mistake) {
  const auto checksum = number_of(block, checksum_field);
  if (!checksum.has_value() || !has_checksum(block, *checksum)) {
    mistake = {checksum_field.at,
               "the checksum of the header is wrong: this is no tar archive, or "
               "it is damaged; get it again"};
    return std::nullopt;
  }
  const auto bytes = number_of(block, size_field);
  if (!bytes.has_value()) {
    mistake = {size_field.at, "the size of a member is no number"};
    return std::nullopt;
  }
  TarHeader header{.bytes = *bytes, .type = static_cast<char>(block[type_at])};
  if (text_of(block, magic_field) == std::string_view("ustar\0", 6)) {
    if (const std::string_view prefix = string_of(block, prefix_field); !prefix.empty()) {
      header.name = std::string(prefix) + "/";
    }
  }
  header.name += string_of(block, name_field);
  if (header.type == '5') {
    header.bytes = 0;  // what it says then is room on some old disk: no bytes follow
  }
  return header;
}

std::optional<PaxRecords> read_pax(std::string_view text, TarMistake& mistake) {
  PaxRecords records;
  const char* const begin = text.data();
  while (!text.empty()) {
    // "LENGTH KEY=VALUE\n", where LENGTH counts all of it.
    const auto refuse = [&](const char* what) {
      mistake = {static_cast<std::size_t>(text.data() - begin), what};
      return std::nullopt;
    };
    std::size_t length = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(result.ptr - text.data());
    if (result.ec != std::errc() || length <= digits + 1 || length > text.size() ||
        text[digits] != ' ' || text[length - 1] != '\n') {
      return refuse("a record of an extended header is damaged");
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      return refuse("a record of an extended header has no '='");
    }
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      records.path = value;
    } else if (key == "size") {
      std::uint64_t bytes = 0;
      const auto size = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (size.ec != std::errc() || size.ptr != value.data() + value.size() || bytes >> 63 != 0) {
        return refuse("the size in an extended header is no number");
      }
      records.bytes = bytes;
    }
    records.is_sparse = records.is_sparse || key.substr(0, 11) == "GNU.sparse.";
    text.remove_prefix(length);
  }
  return records;
}

std::optional<std::string> clean_tar_path(std::string_view path, TarMistake& mistake) {
  const auto refuse = [&](const char* what) {
    mistake = {0, "a member's path " + std::string(what)};
    return std::nullopt;
  };
  if (path.find('\0') != std::string_view::npos) {
    return refuse("has a zero byte in it");
  }
  if (!path.empty() && path.front() == '/') {
    return refuse("is absolute: make the archive with relative ones");
  }
  std::string clean;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part == "..") {
      return refuse("has \"..\" in it: make the archive from the folder above its files");
    }
    if (!part.empty() && part != ".") {
      clean += (clean.empty() ? "" : "/") + std::string(part);
    }
  }
  return clean;
}

}  // namespace ebb::inline v0::detail
