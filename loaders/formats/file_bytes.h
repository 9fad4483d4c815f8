// SPDX-License-Identifier: Apache-2.0
// The bytes of a file at any offset: a plain file is read where it lies, a gzipped one (told by its
// first two bytes) is unpacked into memory when it is opened. Used by readers of text. Any thread.
#pragma once

#include "positioned_file.h"

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/dataset.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

class FileBytes {
 public:
  // Throws LoadError, with function in front, for what is no regular file, cannot be read, or
  // unpacks to more than unpacked_max.
  FileBytes(std::string_view function, const std::filesystem::path& path, Bytes unpacked_max);

  std::uint64_t size() const noexcept { return size_; }
  const std::string& source() const noexcept { return source_; }

  // Fills out with the bytes from offset on, all of them within the size. Throws LoadError when the
  // file was cut or cannot be read any more; with a context it is the failure of that sample.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  void read(std::uint64_t offset, std::span<std::byte> out, const StageContext& context) const;

  // Calls visit(offset, text) for all bytes in turn, in parts of 1 MiB. Throws LoadError.
  template <class Visit>
  void for_each_part(Visit visit) const {
    constexpr std::uint64_t part_bytes = std::uint64_t{1} << 20;
    std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(size_, part_bytes)));
    for (std::uint64_t offset = 0; offset < size_; offset += part_bytes) {
      const auto left = static_cast<std::size_t>(std::min(size_ - offset, part_bytes));
      read(offset, std::span(buffer).first(left));
      visit(offset, std::string_view(reinterpret_cast<const char*>(buffer.data()), left));
    }
  }
  // Returns the number, from 1, of the line in which offset lies. Reads all that comes before: for
  // messages only.
  std::uint64_t line_at(std::uint64_t offset) const;

  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string text) const;

 private:
  void unpack(const std::filesystem::path& path, Bytes unpacked_max);

  std::string function_;
  std::string source_;
  std::optional<PositionedFile> file_;  // when it is plain
  std::vector<std::byte> unpacked_;     // when it is gzipped
  std::uint64_t size_ = 0;
};

}  // namespace ebb::inline v0::detail
