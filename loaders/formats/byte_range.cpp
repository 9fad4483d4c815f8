// SPDX-License-Identifier: Apache-2.0
// Reading a part of a file, or of what was unpacked from it. Any thread.
#include "byte_range.h"

#include <ebb/alloc/check.h>

#include <cstring>
#include <utility>

namespace ebb::inline v0::detail {

ByteRange::ByteRange(std::shared_ptr<const PositionedFile> file, std::string member,
                     std::uint64_t begin, std::uint64_t bytes)
    : file_(std::move(file)), member_(std::move(member)), begin_(begin), bytes_(bytes) {}

ByteRange::ByteRange(std::shared_ptr<const PositionedFile> file, std::string member,
                     std::shared_ptr<const std::byte> memory, std::uint64_t bytes)
    : file_(std::move(file)),
      member_(std::move(member)),
      memory_(std::move(memory)),
      bytes_(bytes) {}

void ByteRange::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  EBB_ASSERT(offset <= bytes_ && out.size() <= bytes_ - offset);
  if (memory_ == nullptr) {
    file_->read_at(begin_ + offset, out);
  } else if (!out.empty()) {
    std::memcpy(out.data(), memory_.get() + offset, out.size());
  }
}

void ByteRange::fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                     const std::string& text) const {
  file_->fail(kind, stage, begin_ + offset, member_.empty() ? text : member_ + ": " + text);
}

}  // namespace ebb::inline v0::detail
