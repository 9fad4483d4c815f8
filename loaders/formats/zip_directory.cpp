// SPDX-License-Identifier: Apache-2.0
// Finding and reading the central directory of a zip archive. Any thread.
#include "zip_directory.h"

#include "printable.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t comment_max = 0xffff;
constexpr std::uint64_t locator_bytes = 20;
constexpr std::uint64_t end64_bytes = 56;
constexpr std::size_t entry_bytes = 46;
constexpr std::uint64_t directory_bytes_max = 64 << 20;  // of a million members

constexpr std::uint32_t end_magic = 0x06054b50;
constexpr std::uint32_t locator_magic = 0x07064b50;
constexpr std::uint32_t end64_magic = 0x06064b50;
constexpr std::uint32_t entry_magic = 0x02014b50;

[[noreturn]] void fail(const PositionedFile& file, std::uint64_t offset, const std::string& text) {
  file.fail(LoadErrorKind::corrupt, "directory", offset, text);
}

std::vector<std::byte> read(const PositionedFile& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::byte> out(bytes);
  file.read_at(offset, out, "directory");
  return out;
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t end = 0;  // where the records after it begin
};

// The end of the archive is told by a record in front of a comment of any length.
std::uint64_t find_end(const PositionedFile& file, const std::vector<std::byte>& tail) {
  const std::uint64_t tail_offset = file.bytes() - tail.size();
  for (std::size_t at = tail.size() - end_bytes + 1; at-- > 0;) {
    if (zip_number(tail, at, 4) == end_magic &&
        zip_number(tail, at + 20, 2) == tail.size() - at - end_bytes) {
      return tail_offset + at;
    }
  }
  fail(file, file.bytes(), "the end of the zip archive is missing: it is truncated, get it again");
}

// Archives that are too large for the fields of the end have another record with larger ones.
void read_end64(const PositionedFile& file, Directory& directory) {
  const std::uint64_t end = directory.end;
  if (end < locator_bytes + end64_bytes) {
    return;
  }
  const auto locator = read(file, end - locator_bytes, locator_bytes);
  if (zip_number(locator, 0, 4) != locator_magic) {
    return;
  }
  const std::uint64_t at = zip_number(locator, 8, 8);
  if (at > end - locator_bytes - end64_bytes) {
    fail(file, end - locator_bytes, "the zip64 record would lie at " + std::to_string(at));
  }
  const auto record = read(file, at, end64_bytes);
  if (zip_number(record, 0, 4) != end64_magic) {
    fail(file, at, "there is no zip64 record where the archive says");
  }
  directory = {.offset = zip_number(record, 48, 8),
               .bytes = zip_number(record, 40, 8),
               .entries = zip_number(record, 32, 8),
               .end = at};
}

Directory find_directory(const PositionedFile& file) {
  if (file.bytes() == 0) {
    file.fail(LoadErrorKind::corrupt, "header", 0, "the file is empty");
  }
  std::vector<std::byte> begin(std::min<std::uint64_t>(4, file.bytes()));
  file.read_at(0, begin);
  if (begin.size() < 4 || zip_number(begin, 0, 2) != 0x4b50) {
    const bool is_npy = begin.size() == 4 && zip_number(begin, 0, 4) == 0x4d554e93;
    file.fail(LoadErrorKind::corrupt, "header", 0,
              std::string("not a zip archive, as npz files are") +
                  (is_npy ? ": it is an npy file, which open_npy reads" : ""));
  }
  const std::uint64_t tail_bytes = std::min(file.bytes(), end_bytes + comment_max);
  if (tail_bytes < end_bytes) {
    fail(file, file.bytes(), "truncated: get it again");
  }
  const auto tail = read(file, file.bytes() - tail_bytes, tail_bytes);
  const std::uint64_t end = find_end(file, tail);
  const std::size_t at = end - (file.bytes() - tail_bytes);
  Directory directory{.offset = zip_number(tail, at + 16, 4),
                      .bytes = zip_number(tail, at + 12, 4),
                      .entries = zip_number(tail, at + 10, 2),
                      .end = end};
  if (zip_number(tail, at + 4, 2) != zip_number(tail, at + 6, 2)) {
    fail(file, end + 4, "the archive is split into several files: join them");
  }
  read_end64(file, directory);
  if (directory.offset > directory.end || directory.bytes != directory.end - directory.offset ||
      directory.bytes > directory_bytes_max || directory.entries > directory.bytes / entry_bytes) {
    fail(file, end,
         "the central directory would have " + std::to_string(directory.entries) +
             " members in bytes " + std::to_string(directory.offset) + " to " +
             std::to_string(directory.offset + directory.bytes) + ", which cannot be");
  }
  return directory;
}

// Fields that are full are continued in the zip64 part of the extra field, in this order.
void read_zip64(std::span<const std::byte> extra, ZipMember& member) {
  while (extra.size() >= 4) {
    const std::uint64_t id = zip_number(extra, 0, 2);
    const std::size_t bytes = std::min<std::size_t>(zip_number(extra, 2, 2), extra.size() - 4);
    if (id == 1) {
      std::span<const std::byte> part = extra.subspan(4, bytes);
      for (std::uint64_t* const field : {&member.bytes, &member.packed_bytes, &member.header}) {
        if (*field == 0xffffffff && part.size() >= 8) {
          *field = zip_number(part, 0, 8);
          part = part.subspan(8);
        }
      }
      return;
    }
    extra = extra.subspan(4 + bytes);
  }
}

// Reads the entry that begins at at, and goes to the next one.
ZipMember read_entry(const PositionedFile& file, std::span<const std::byte> all,
                     std::uint64_t offset, std::size_t& at) {
  const std::span<const std::byte> rest = all.subspan(at);
  if (rest.size() < entry_bytes || zip_number(rest, 0, 4) != entry_magic) {
    fail(file, offset + at, "there is no entry of the central directory where one should be");
  }
  const std::size_t name = zip_number(rest, 28, 2);
  const std::size_t extra = zip_number(rest, 30, 2);
  const std::size_t comment = zip_number(rest, 32, 2);
  if (name + extra + comment > rest.size() - entry_bytes) {
    fail(file, offset + at, "an entry of the central directory reaches past its end");
  }
  ZipMember member;
  for (const std::byte byte : rest.subspan(entry_bytes, name)) {
    member.name += static_cast<char>(byte);
  }
  member.flags = static_cast<std::uint16_t>(zip_number(rest, 8, 2));
  member.method = static_cast<std::uint16_t>(zip_number(rest, 10, 2));
  member.crc = static_cast<std::uint32_t>(zip_number(rest, 16, 4));
  member.packed_bytes = zip_number(rest, 20, 4);
  member.bytes = zip_number(rest, 24, 4);
  member.header = zip_number(rest, 42, 4);
  read_zip64(rest.subspan(entry_bytes + name, extra), member);
  if (member.header > offset || member.packed_bytes > offset - member.header) {
    fail(file, offset + at,
         "the archive says that " + printable(member.name) + " has " +
             std::to_string(member.packed_bytes) + " bytes at " + std::to_string(member.header) +
             ", where the file has fewer; get it again");
  }
  at += entry_bytes + name + extra + comment;
  return member;
}

}  // namespace

std::uint64_t zip_number(std::span<const std::byte> from, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(from[at + i]);
  }
  return value;
}

std::vector<ZipMember> read_zip_directory(const PositionedFile& file) {
  const Directory directory = find_directory(file);
  const auto bytes = read(file, directory.offset, directory.bytes);
  std::vector<ZipMember> members;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    members.push_back(read_entry(file, bytes, directory.offset, at));
  }
  if (at != bytes.size()) {
    fail(file, directory.offset + at, "more follows in the central directory than its members");
  }
  return members;
}

}  // namespace ebb::inline v0::detail
