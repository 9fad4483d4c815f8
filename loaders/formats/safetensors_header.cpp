// SPDX-License-Identifier: Apache-2.0
// Reading the header: a little-endian u64 length, then {name: {dtype, shape, data_offsets}} as
// JSON. Any thread.
#include "safetensors_header.h"

#include "printable.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "elements are mapped as they are");

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t header_bytes_max = 100'000'000;  // as the format says
constexpr const char* metadata_key = "__metadata__";

struct Type {
  std::string_view name;
  std::uint64_t bits;
  std::optional<ElementFormat> format;  // none: no tensor has them
};

constexpr ElementFormat plain(DType dtype) {
  return {dtype, static_cast<std::uint8_t>(size_of(dtype)), false, ElementStep::none};
}

const Type* find_type(std::string_view name) {
  using enum DType;
  using enum ElementStep;
  static constexpr std::array<Type, 20> types{{
      {"F32", 32, plain(f32)},
      {"F16", 16, plain(f16)},
      {"BF16", 16, plain(bf16)},
      {"F64", 64, plain(f64)},
      {"I64", 64, plain(i64)},
      {"I32", 32, plain(i32)},
      {"I16", 16, plain(i16)},
      {"I8", 8, plain(i8)},
      {"U8", 8, plain(u8)},
      {"BOOL", 8, ElementFormat{boolean, 1, false, normalise}},
      {"U16", 16, ElementFormat{i32, 2, false, widen}},
      {"U32", 32, ElementFormat{i64, 4, false, widen}},
      {"U64", 64, ElementFormat{i64, 8, false, check}},
      {"C64", 64, std::nullopt},
      {"F8_E5M2", 8, std::nullopt},
      {"F8_E4M3", 8, std::nullopt},
      {"F8_E8M0", 8, std::nullopt},
      {"F6_E2M3", 6, std::nullopt},
      {"F6_E3M2", 6, std::nullopt},
      {"F4", 4, std::nullopt},
  }};
  const auto found = std::find_if(types.begin(), types.end(),
                                  [name](const Type& type) { return type.name == name; });
  return found != types.end() ? &*found : nullptr;
}

class HeaderReader {
 public:
  explicit HeaderReader(const PositionedFile& file) : file_(file) {}

  SafetensorsHeader read() {
    const json all = parse(read_text());
    SafetensorsHeader header;
    for (const auto& [name, value] : all.items()) {
      if (name == metadata_key) {
        header.metadata = metadata_of(value);
      } else {
        header.entries.push_back(entry_of(name, value));
      }
    }
    std::sort(header.entries.begin(), header.entries.end(),
              [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                return std::pair(a.offset, a.bytes.count()) < std::pair(b.offset, b.bytes.count());
              });
    check_layout(header.entries);
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& text, std::uint64_t offset = length_bytes) const {
    file_.fail(LoadErrorKind::corrupt, "header", offset, text);
  }

  std::string read_text() {
    std::array<std::byte, length_bytes> begin{};
    if (file_.bytes() == 0) {
      fail("the file is empty", 0);
    }
    if (file_.bytes() < length_bytes) {
      fail("too short for a safetensors file: get it again", file_.bytes());
    }
    file_.read_at(0, begin);
    const auto length = std::bit_cast<std::uint64_t>(begin);
    if (length > header_bytes_max || length > file_.bytes() - length_bytes) {
      fail("no safetensors file, or truncated: its header would have " + std::to_string(length) +
               " bytes",
           0);
    }
    std::string text(length, '\0');
    file_.read_at(length_bytes, std::as_writable_bytes(std::span(text)));
    data_ = length_bytes + length;
    return text;
  }

  // No name twice, of which JSON readers would forget one, and nothing deeper than the format has.
  json parse(const std::string& text) const {
    std::set<std::string> names;
    const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
      if (event == json::parse_event_t::key && depth == 1 &&
          !names.insert(parsed.get<std::string>()).second) {
        fail("there are two tensors called " + printable(parsed.get<std::string>()));
      }
      if (depth > 3) {
        fail("the header is nested deeper than one of safetensors");
      }
      return true;
    };
    try {
      json all = json::parse(text, check);
      if (!all.is_object()) {
        fail("the header is JSON, but no object");
      }
      return all;
    } catch (const json::parse_error& error) {
      fail("no safetensors file: its header is not JSON", data_ - text.size() + error.byte - 1);
    } catch (const json::exception& error) {
      fail(std::string("the header is no JSON that can be read: ") + printable(error.what()));
    }
  }

  std::map<std::string, std::string> metadata_of(const json& value) const {
    std::map<std::string, std::string> metadata;
    if (!value.is_object()) {
      fail(std::string(metadata_key) + " is no object");
    }
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) {
        fail(std::string(metadata_key) + ": the value of " + printable(key) + " is no string");
      }
      metadata.emplace(key, text.get<std::string>());
    }
    return metadata;
  }

  SafetensorsEntry entry_of(const std::string& name, const json& value) const {
    const auto fail_entry = [&](const std::string& text) { fail(printable(name) + text); };
    const json none;
    const auto member = [&](const char* key) -> const json& {
      const auto found = value.is_object() ? value.find(key) : value.end();
      return found != value.end() ? *found : none;
    };
    const json& type = member("dtype");
    const json& offsets = member("data_offsets");
    if (!type.is_string() || !offsets.is_array() || offsets.size() != 2 ||
        !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
      fail_entry(" has no dtype, or no data_offsets");
    }
    const auto begin = offsets[0].get<std::uint64_t>();
    const auto end = offsets[1].get<std::uint64_t>();
    if (begin > end || end > file_.bytes() - data_) {
      file_.fail(LoadErrorKind::corrupt, "data", file_.bytes(),
                 printable(name) + " would end at byte " + std::to_string(end) +
                     " of the data, where there are " + std::to_string(file_.bytes() - data_) +
                     ": truncated, get it again");
    }
    SafetensorsEntry entry{.name = name,
                           .type = type.get<std::string>(),
                           .dtype = std::nullopt,
                           .shape = shape_of(name, member("shape")),
                           .offset = data_ + begin,
                           .bytes = Bytes{end - begin}};
    if (const Type* const known = find_type(entry.type)) {
      entry.dtype = known->format ? std::optional(known->format->dtype) : std::nullopt;
      // A sum of bits that overflows is no size of a file.
      std::uint64_t bits = known->bits;
      bool overflows = false;
      for (const std::int64_t size : entry.shape) {
        overflows |= __builtin_mul_overflow(bits, static_cast<std::uint64_t>(size), &bits);
      }
      if (overflows || bits != (end - begin) * 8) {
        fail_entry(" is " + entry.type + to_string(entry.shape) + ", which does not take the " +
                   std::to_string(end - begin) + " bytes that it has");
      }
    }
    return entry;
  }

  Shape shape_of(const std::string& name, const json& value) const {
    std::vector<std::int64_t> sizes;
    for (const json& size : value) {
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > size_max) {
        fail(printable(name) + " has a size that is no number of 0 or more");
      }
      sizes.push_back(size.get<std::int64_t>());
    }
    if (!value.is_array() || sizes.size() > max_dims) {
      fail(printable(name) + " has no shape of up to " + std::to_string(max_dims) + " dimensions");
    }
    Shape shape(sizes);
    try {
      static_cast<void>(shape.elements());
    } catch (const std::invalid_argument&) {  // also where a size of 0 hides it
      fail(printable(name) + ": the product of the sizes " + to_string(shape) + " overflows");
    }
    return shape;
  }

  void check_layout(const std::vector<SafetensorsEntry>& entries) const {
    std::uint64_t end = data_;
    for (const SafetensorsEntry& entry : entries) {
      if (entry.offset != end) {
        file_.fail(LoadErrorKind::corrupt, "data", end,
                   printable(entry.name) + (entry.offset < end ? " overlaps another tensor"
                                                               : " leaves a hole in front of it"));
      }
      end += entry.bytes.count();
    }
    if (end != file_.bytes()) {
      file_.fail(LoadErrorKind::corrupt, "data", end,
                 std::to_string(file_.bytes() - end) + " bytes follow the last tensor");
    }
  }

  static constexpr std::uint64_t size_max = std::uint64_t{1} << 62;

  const PositionedFile& file_;
  std::uint64_t data_ = 0;  // where the header ends
};

}  // namespace

SafetensorsHeader read_safetensors_header(const PositionedFile& file) {
  return HeaderReader(file).read();
}

std::optional<ElementFormat> safetensors_format(const std::string& type) {
  const Type* const known = find_type(type);
  return known != nullptr ? known->format : std::nullopt;
}

}  // namespace ebb::inline v0::detail
