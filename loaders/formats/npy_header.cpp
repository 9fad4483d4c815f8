// SPDX-License-Identifier: Apache-2.0
// Reading the header of npy: no more of Python than such a dictionary needs. Any thread.
#include "npy_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint64_t header_bytes_max = 1u << 16;

// The text of the dictionary, read from left to right.
class HeaderText {
 public:
  HeaderText(const ByteRange& range, std::string text, std::uint64_t begin)
      : range_(range), text_(std::move(text)), begin_(begin) {}

  [[noreturn]] void fail(const std::string& what,
                         LoadErrorKind kind = LoadErrorKind::corrupt) const {
    range_.fail(kind, "header", begin_ + at_, what);
  }

  // Goes past word, and white space in front of it, if it is next.
  bool skip(std::string_view word) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
    if (std::string_view(text_).substr(at_, word.size()) != word) {
      return false;
    }
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!skip(word)) {
      fail("the header is no dictionary of NumPy's: " + std::string(word) + " is missing");
    }
  }
  std::string string() {
    const std::string_view quote = skip("'") ? "'" : "\"";
    if (quote == "\"") {
      expect(quote);
    }
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string::npos) {
      fail("a string in the header does not end");
    }
    std::string value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  std::int64_t size() {
    skip("");
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) {
      fail("the shape has a size that is no number of 0 or more");
    }
    at_ += static_cast<std::size_t>(end - begin);
    skip("L");  // of Python 2
    return value;
  }
  bool is_at_end() {
    skip("");
    return at_ == text_.size();
  }
  // What is next, for messages.
  std::string next() const { return text_.substr(at_, 40); }

 private:
  const ByteRange& range_;
  std::string text_;
  std::uint64_t begin_;  // of the text in the range
  std::size_t at_ = 0;
};

std::optional<ElementFormat> format_of(std::string_view type) {
  struct Known {
    std::string_view type;
    ElementFormat format;
  };
  using enum DType;
  using enum ElementStep;
  static constexpr std::array<Known, 12> known{{
      {"b1", {boolean, 1, false, normalise}},
      {"i1", {i8, 1, false, none}},
      {"i2", {i16, 2, false, none}},
      {"i4", {i32, 4, false, none}},
      {"i8", {i64, 8, false, none}},
      {"u1", {u8, 1, false, none}},
      {"u2", {i32, 2, false, widen}},
      {"u4", {i64, 4, false, widen}},
      {"u8", {i64, 8, false, check}},
      {"f2", {f16, 2, false, none}},
      {"f4", {f32, 4, false, none}},
      {"f8", {f64, 8, false, none}},
  }};
  for (const Known& candidate : known) {
    if (candidate.type == type) {
      return candidate.format;
    }
  }
  return std::nullopt;
}

// What to do instead, for elements that no tensor has.
std::string remedy(char kind) {
  switch (kind) {
    case 'O':
      return "Python objects, which only Python reads: save an array of numbers";
    case 'c':
      return "complex numbers: save .real and .imag";
    case 'U':
    case 'S':
      return "strings: save numbers for them, or a text or CSV file";
    case 'M':
    case 'm':
      return "dates: save .astype('int64')";
    case 'V':
      return "raw bytes or bfloat16, which is no type of NumPy's: save .astype('float32')";
    default:
      return "of a type that no tensor has: save .astype('float32')";
  }
}

ElementFormat read_format(HeaderText& text) {
  if (text.skip("[")) {
    text.fail("the elements are records of several fields: save each field apart",
              LoadErrorKind::shape);
  }
  const std::string descr = text.string();
  const bool has_order =
      !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string::npos;
  const std::string type = descr.substr(has_order ? 1 : 0);
  std::optional<ElementFormat> format = format_of(type);
  if (!format.has_value()) {
    text.fail(
        "the elements ('" + descr.substr(0, 40) + "') are " + remedy(type.empty() ? '?' : type[0]),
        LoadErrorKind::shape);
  }
  constexpr char other = std::endian::native == std::endian::little ? '>' : '<';
  format->reversed = descr[0] == other && format->unit > 1;
  return *format;
}

Shape read_shape(HeaderText& text) {
  std::vector<std::int64_t> sizes;
  text.expect("(");
  while (!text.skip(")")) {
    sizes.push_back(text.size());
    if (!text.skip(",")) {
      text.expect(")");
      break;
    }
  }
  if (sizes.size() > max_dims) {
    text.fail(std::to_string(sizes.size()) + " dimensions: tensors have at most " +
                  std::to_string(max_dims) + ", so .reshape() it before it is saved",
              LoadErrorKind::shape);
  }
  return Shape(sizes);
}

bool read_bool(HeaderText& text) {
  if (text.skip("True")) {
    return true;
  }
  text.expect("False");
  return false;
}

ArrayForm read_dictionary(HeaderText& text) {
  ArrayForm header;
  std::array<bool, 3> seen{};
  text.expect("{");
  while (!text.skip("}")) {
    const std::string key = text.string();
    text.expect(":");
    std::size_t which = 0;
    if (key == "descr") {
      header.format = read_format(text);
    } else if (key == "fortran_order") {
      which = 1;
      header.fortran_order = read_bool(text);
    } else if (key == "shape") {
      which = 2;
      header.shape = read_shape(text);
    } else {
      text.fail("the header has an unknown key, " + key.substr(0, 40));
    }
    if (seen[which]) {
      text.fail("the header has " + key + " twice");
    }
    seen[which] = true;
    if (!text.skip(",")) {
      text.expect("}");
      break;
    }
  }
  if (!text.is_at_end()) {
    text.fail("something follows the dictionary of the header: " + text.next());
  }
  if (!(seen[0] && seen[1] && seen[2])) {
    text.fail("the header lacks descr, fortran_order or shape");
  }
  return header;
}

// Returns the text and sets data to where it ends.
HeaderText read_text(const ByteRange& range, std::uint64_t& data) {
  std::array<std::byte, 12> begin{};
  const std::size_t count = std::min<std::uint64_t>(begin.size(), range.bytes());
  range.read_at(0, std::span(begin).first(count));
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(begin[i]); };
  if (count == 0) {
    range.fail(LoadErrorKind::corrupt, "header", 0, "the file is empty");
  }
  if (std::memcmp(begin.data(), magic.data(), std::min(count, magic.size())) != 0) {
    const char* hint = count >= 2 && byte(0) == 'P' && byte(1) == 'K' ? ": open_npz reads npz"
                       : count >= 2 && byte(0) == 0x1f && byte(1) == 0x8b
                           ? ": it is gzipped, unpack it"
                           : "";
    range.fail(LoadErrorKind::corrupt, "header", 0, std::string("not an npy file") + hint);
  }
  if (count < begin.size()) {
    range.fail(LoadErrorKind::corrupt, "header", count, "truncated in the header: get it again");
  }
  const std::uint32_t version = byte(6);
  if (version < 1 || version > 3) {
    range.fail(LoadErrorKind::corrupt, "header", 6,
               "version " + std::to_string(version) + " of npy: versions 1, 2 and 3 are known");
  }
  std::uint64_t bytes = byte(8) | (byte(9) << 8);
  data = 10;
  if (version > 1) {
    bytes |= std::uint64_t{byte(10)} << 16 | std::uint64_t{byte(11)} << 24;
    data = 12;
  }
  if (bytes > header_bytes_max || bytes > range.bytes() - data) {
    range.fail(LoadErrorKind::corrupt, "header", 8,
               "the header would have " + std::to_string(bytes) + " bytes, more than the file " +
                   "or a header has: get it again");
  }
  std::string text(bytes, '\0');
  range.read_at(data, std::as_writable_bytes(std::span(text)));
  HeaderText result(range, std::move(text), data);
  data += bytes;
  return result;
}

}  // namespace

ArrayForm read_npy_header(const ByteRange& range) {
  std::uint64_t data = 0;
  HeaderText text = read_text(range, data);
  ArrayForm header = read_dictionary(text);
  header.data = data;
  std::uint64_t bytes = header.format.unit;
  header.elements = 1;
  for (const std::int64_t size : header.shape) {
    header.elements *= static_cast<std::uint64_t>(size);
    // A size of 0 must not hide that the others are too large: strides would overflow.
    if (size != 0 && __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      range.fail(LoadErrorKind::corrupt, "header", data,
                 "the product of the sizes " + to_string(header.shape) + " overflows");
    }
  }
  bytes = header.elements * header.format.unit;
  const std::uint64_t rest = range.bytes() - data;
  if (bytes > rest) {
    range.fail(LoadErrorKind::corrupt, "data", range.bytes(),
               "truncated: the header promises " + std::to_string(bytes) + " bytes of data, " +
                   "there are " + std::to_string(rest) + "; get it again");
  }
  if (bytes < rest) {
    range.fail(LoadErrorKind::corrupt, "data", data + bytes,
               std::to_string(rest - bytes) + " bytes follow the data: several arrays in one " +
                   "file are saved by numpy.savez");
  }
  return header;
}

}  // namespace ebb::inline v0::detail
