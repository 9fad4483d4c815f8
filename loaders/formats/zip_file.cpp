// SPDX-License-Identifier: Apache-2.0
// Unpacking members of a zip archive, and checking them. Any thread.
#include "zip_file.h"

#include "aligned_bytes.h"
#include "inflater.h"
#include "printable.h"
#include "zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

constexpr std::uint16_t stored = 0;
constexpr std::uint16_t deflated = 8;
constexpr std::uint32_t local_magic = 0x04034b50;
constexpr std::uint64_t local_bytes = 30;
constexpr std::uint64_t ratio_max = 1032;  // of deflate: a match of 258 bytes in 2 bits

std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  return static_cast<std::uint32_t>(
      crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Parts of a member as it lies in the file, one after the other.
class PackedParts {
 public:
  PackedParts(const PositionedFile& file, std::uint64_t offset, std::uint64_t bytes)
      : file_(file), offset_(offset), left_(bytes) {}

  // Returns the next part; empty after the last one.
  std::span<std::byte> next() {
    const auto part = std::span(buffer_).first(std::min<std::uint64_t>(buffer_.size(), left_));
    file_.read_at(offset_, part);
    offset_ += part.size();
    left_ -= part.size();
    return part;
  }
  std::uint64_t offset() const noexcept { return offset_; }  // of the next part
  std::uint64_t left() const noexcept { return left_; }

 private:
  const PositionedFile& file_;
  std::uint64_t offset_;
  std::uint64_t left_;
  std::array<std::byte, 65536> buffer_;
};

// Unpacks into out. Returns "" when that is exactly what was packed, else what is wrong.
std::string inflate_all(PackedParts& parts, std::span<std::byte> out) {
  Inflater inflater(Inflater::raw_format);
  z_stream& z = inflater.stream;
  std::array<std::byte, 1> beyond{};  // shows whether there is more than out takes
  std::size_t done = 0;
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (z.avail_in == 0) {
      const std::span<std::byte> part = parts.next();
      if (part.empty()) {
        return "the packed data ends early";
      }
      z.next_in = reinterpret_cast<Bytef*>(part.data());
      z.avail_in = static_cast<uInt>(part.size());
    }
    constexpr std::size_t step = 1u << 30;  // zlib counts in unsigned int
    const std::span<std::byte> room = done < out.size()
                                          ? out.subspan(done, std::min(out.size() - done, step))
                                          : std::span(beyond);
    z.next_out = reinterpret_cast<Bytef*>(room.data());
    z.avail_out = static_cast<uInt>(room.size());
    result = inflate(&z, Z_NO_FLUSH);
    done += room.size() - z.avail_out;
    if (done > out.size()) {
      return "more is packed than the archive says";
    }
    if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    }
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return std::string("corrupt packed data (") + (z.msg != nullptr ? z.msg : "no reason") + ")";
    }
  }
  return done == out.size() && z.avail_in == 0 && parts.left() == 0
             ? ""
             : "less is packed than the archive says";
}

}  // namespace

ZipFile::ZipFile(std::shared_ptr<const PositionedFile> file)
    : file_(std::move(file)), members_(read_zip_directory(*file_)) {}

const ZipMember* ZipFile::find(const std::string& name) const noexcept {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&name](const ZipMember& member) { return member.name == name; });
  return found != members_.end() ? &*found : nullptr;
}

// Returns where the member's data begins. All of it lies in the file.
std::uint64_t ZipFile::data_of(const ZipMember& member) const {
  const std::string name = printable(member.name);
  std::array<std::byte, local_bytes> header{};
  if (file_->bytes() - member.header < local_bytes) {
    file_->fail(LoadErrorKind::corrupt, "member", member.header, name + ": truncated");
  }
  file_->read_at(member.header, header, "member");
  const std::uint64_t data =
      member.header + local_bytes + zip_number(header, 26, 2) + zip_number(header, 28, 2);
  if (zip_number(header, 0, 4) != local_magic || data > file_->bytes() ||
      member.packed_bytes > file_->bytes() - data) {
    file_->fail(LoadErrorKind::corrupt, "member", member.header,
                name + " is not where the archive says: get it again");
  }
  return data;
}

void ZipFile::check_crc(const ZipMember& member, std::uint32_t crc) const {
  if (crc != member.crc) {
    file_->fail(LoadErrorKind::corrupt, "member", member.header,
                printable(member.name) + " is damaged (its CRC is wrong): get the archive again");
  }
}

ByteRange ZipFile::open(const ZipMember& member) const {
  const std::string name = printable(member.name);
  const auto fail = [&](LoadErrorKind kind, const std::string& text) {
    file_->fail(kind, "member", member.header, name + ": " + text);
  };
  if ((member.flags & 1) != 0) {
    fail(LoadErrorKind::shape, "it is encrypted: unpack it first");
  }
  if (member.method != stored && member.method != deflated) {
    fail(LoadErrorKind::shape, "it is packed by method " + std::to_string(member.method) +
                                   ": stored (0) and deflated (8) are known");
  }
  if (member.method == stored ? member.bytes != member.packed_bytes
                              : member.bytes / ratio_max > member.packed_bytes) {
    fail(LoadErrorKind::corrupt, std::to_string(member.packed_bytes) + " bytes cannot hold the " +
                                     std::to_string(member.bytes) + " that the archive promises");
  }
  const std::uint64_t data = data_of(member);
  PackedParts parts(*file_, data, member.packed_bytes);
  if (member.method == stored) {
    std::uint32_t crc = 0;
    for (auto part = parts.next(); !part.empty(); part = parts.next()) {
      crc = crc_of(part, crc);
    }
    check_crc(member, crc);
    return {file_, name, data, member.bytes};
  }
  std::shared_ptr<std::byte> memory;
  try {
    memory = allocate_aligned(member.bytes);
  } catch (const std::bad_alloc&) {
    fail(LoadErrorKind::memory,
         "there is no memory for its " + std::to_string(member.bytes) + " bytes");
  }
  const std::span<std::byte> out(memory.get(), member.bytes);
  if (const std::string wrong = inflate_all(parts, out); !wrong.empty()) {
    file_->fail(LoadErrorKind::corrupt, "member", parts.offset(),
                name + ": " + wrong + "; get the archive again");
  }
  check_crc(member, crc_of(out, 0));
  return {file_, name, std::move(memory), member.bytes};
}

}  // namespace ebb::inline v0::detail
