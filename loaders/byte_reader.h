// SPDX-License-Identifier: Apache-2.0
// The bytes of a file from its beginning, unpacked when it is gzip (told by its first two bytes).
// Used by readers of file formats. One thread at a time.
#pragma once

#include "source_file.h"

#include <ebb/loaders/error.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ebb::inline v0::detail {

struct Inflater;

// Every failure is a LoadError of kind io or corrupt that names the file, with function in front.
class ByteReader {
 public:
  ByteReader(std::string_view function, const std::filesystem::path& path);
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;
  ByteReader(ByteReader&&) = delete;
  ByteReader& operator=(ByteReader&&) = delete;
  ~ByteReader();

  // Fills out as far as there are bytes; returns how many.
  std::size_t read(std::span<std::uint8_t> out);
  // How many (unpacked) bytes were read.
  std::uint64_t offset() const noexcept { return offset_; }
  // More (unpacked) bytes than this the file cannot hold; for a plain file it is its size.
  std::uint64_t bytes_max() const noexcept;
  bool is_gzip() const noexcept { return inflater_ != nullptr; }
  const std::string& source() const noexcept { return file_.source(); }

  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string text) const {
    file_.fail(kind, stage, offset, std::move(text));
  }

 private:
  bool refill();
  std::size_t read_plain(std::span<std::uint8_t> out);
  std::size_t read_gzip(std::span<std::uint8_t> out);
  [[noreturn]] void fail_gzip(std::string text) const;

  const SourceFile file_;
  std::uint64_t packed_offset_ = 0;  // of the end of ahead_ in the file
  std::uint64_t offset_ = 0;
  std::array<std::uint8_t, 65536> buffer_;
  std::span<const std::uint8_t> ahead_;  // of buffer_: read from the file and not yet used
  std::unique_ptr<Inflater> inflater_;   // of a gzipped file
  bool between_members_ = false;
};

}  // namespace ebb::inline v0::detail
