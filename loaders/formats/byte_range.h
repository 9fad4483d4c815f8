// SPDX-License-Identifier: Apache-2.0
// A run of bytes that an array is read from: a part of a file, or in memory what was packed there.
// Used by the readers of npy and npz. Any number of threads at once.
#pragma once

#include "positioned_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ebb::inline v0::detail {

class ByteRange {
 public:
  // The bytes lie in the file from begin on. member is for messages; empty: it is the whole file.
  ByteRange(std::shared_ptr<const PositionedFile> file, std::string member, std::uint64_t begin,
            std::uint64_t bytes);
  // The bytes are in memory, and were unpacked from a member of the file.
  ByteRange(std::shared_ptr<const PositionedFile> file, std::string member,
            std::shared_ptr<const std::byte> memory, std::uint64_t bytes);

  std::uint64_t bytes() const noexcept { return bytes_; }
  // The first byte, where they are in memory; else null.
  const std::byte* memory() const noexcept { return memory_.get(); }
  // Gives back what is in memory: from now on only errors come of it.
  void drop_memory() noexcept { memory_.reset(); }
  const PositionedFile& file() const noexcept { return *file_; }
  // Where the first byte lies in the file.
  std::uint64_t begin() const noexcept { return begin_; }

  // Fills all of out from offset on; offset + out.size() is at most bytes(). Throws LoadError.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

  // Throws LoadError. The offset in it is the file's; where bytes are in memory, that in what was
  // unpacked.
  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         const std::string& text) const;

 private:
  std::shared_ptr<const PositionedFile> file_;
  std::string member_;
  std::shared_ptr<const std::byte> memory_;
  std::uint64_t begin_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace ebb::inline v0::detail
