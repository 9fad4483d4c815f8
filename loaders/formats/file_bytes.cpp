// SPDX-License-Identifier: Apache-2.0
// Files of text at offsets: read where they lie, or unpacked. Any thread.
#include "file_bytes.h"

#include "byte_reader.h"

#include <new>
#include <utility>

namespace ebb::inline v0::detail {

FileBytes::FileBytes(std::string_view function, const std::filesystem::path& path,
                     Bytes unpacked_max)
    : function_(function), source_(path.string()) {
  if (ByteReader(function, path).is_gzip()) {
    unpack(path, unpacked_max);
  } else {
    file_.emplace(function, path);
    size_ = file_->bytes();
  }
}

void FileBytes::unpack(const std::filesystem::path& path, Bytes unpacked_max) {
  ByteReader reader(function_, path);
  const std::uint64_t most = std::min<std::uint64_t>(unpacked_max.count(), reader.bytes_max());
  constexpr std::uint64_t first_bytes = std::uint64_t{1} << 20;
  try {
    std::uint64_t room = std::min(first_bytes, most);
    for (;;) {
      unpacked_.resize(static_cast<std::size_t>(room));
      size_ += reader.read({reinterpret_cast<std::uint8_t*>(unpacked_.data()) + size_,
                            static_cast<std::size_t>(room - size_)});
      if (size_ < room || room == most) {
        break;
      }
      room += std::min(room, most - room);
    }
    unpacked_.resize(static_cast<std::size_t>(size_));
    unpacked_.shrink_to_fit();
  } catch (const std::bad_alloc&) {
    fail(LoadErrorKind::memory, "gzip", size_,
         "there is no memory for what it unpacks to: unpack the file, then it stays there");
  }
  std::uint8_t more = 0;
  if (reader.read({&more, 1}) != 0) {
    fail(LoadErrorKind::memory, "gzip", size_,
         "it unpacks to more than max_bytes, " + std::to_string(unpacked_max.count()) +
             ": raise that, or unpack the file");
  }
}

void FileBytes::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (file_.has_value()) {
    file_->read_at(offset, out);
  } else {
    std::copy_n(unpacked_.data() + offset, out.size(), out.data());
  }
}

void FileBytes::read(std::uint64_t offset, std::span<std::byte> out,
                     const StageContext& context) const {
  if (file_.has_value()) {
    file_->read_at(offset, out, context);
  } else {
    std::copy_n(unpacked_.data() + offset, out.size(), out.data());
  }
}

std::uint64_t FileBytes::line_at(std::uint64_t offset) const {
  if (lines_before_.empty()) {
    return 1;
  }
  // The end of the file belongs to its last part.
  const std::uint64_t part = std::min<std::uint64_t>(offset / part_bytes, lines_before_.size() - 1);
  std::vector<char> before(static_cast<std::size_t>(offset - part * part_bytes));
  read(part * part_bytes, std::as_writable_bytes(std::span(before)));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  return lines_before_[static_cast<std::size_t>(part)] + static_cast<std::uint64_t>(lines) + 1;
}

void FileBytes::fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                     std::string text) const {
  throw LoadError(function_, {.kind = kind,
                              .stage = std::string(stage),
                              .source = source_,
                              .offset = offset,
                              .text = std::move(text)});
}

}  // namespace ebb::inline v0::detail
