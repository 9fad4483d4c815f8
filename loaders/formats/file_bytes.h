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

  // Calls visit(offset, text) for all bytes in turn, in parts of 1 MiB, and counts lines for
  // line_at. Once, by one thread. Throws LoadError.
  template <class Visit>
  void for_each_part(Visit visit) {
    std::vector<char> buffer(static_cast<std::size_t>(std::min(size_, part_bytes)));
    std::uint64_t lines = 0;
    for (std::uint64_t offset = 0; offset < size_; offset += part_bytes) {
      const auto part =
          std::span(buffer).first(static_cast<std::size_t>(std::min(size_ - offset, part_bytes)));
      read(offset, std::as_writable_bytes(part));
      lines_before_.push_back(lines);
      lines += static_cast<std::uint64_t>(std::count(part.begin(), part.end(), '\n'));
      visit(offset, std::string_view(part.data(), part.size()));
    }
  }
  // Returns the number, from 1, of the line in which offset lies, after for_each_part.
  std::uint64_t line_at(std::uint64_t offset) const;

  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string text) const;

 private:
  static constexpr std::uint64_t part_bytes = std::uint64_t{1} << 20;

  void unpack(const std::filesystem::path& path, Bytes unpacked_max);

  std::string function_;
  std::string source_;
  std::optional<PositionedFile> file_;  // when it is plain
  std::vector<std::byte> unpacked_;     // when it is gzipped
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> lines_before_;  // each part
};

}  // namespace ebb::inline v0::detail
