// SPDX-License-Identifier: Apache-2.0
// Going through a tar archive: which headers belong together, and what is refused.
#include "tar_reader.h"

#include <algorithm>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

constexpr std::uint64_t text_bytes_max = 1 << 20;  // of one extended header
constexpr std::size_t path_bytes_max = 4096;

std::uint64_t padded(std::uint64_t bytes) noexcept {
  return (bytes + tar_block_bytes - 1) / tar_block_bytes * tar_block_bytes;
}

bool is_extension(char type) noexcept {
  return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

// Old archives mark a folder by the slash at its end.
bool is_folder(const TarHeader& header) noexcept {
  return header.type == '5' || (!header.name.empty() && header.name.back() == '/');
}

}  // namespace

std::optional<TarMember> TarReader::next() {
  Extended extended;
  std::optional<std::uint64_t> extension_at;
  while (true) {
    const std::uint64_t at = next_;
    std::optional<TarHeader> header = read_header(at);
    if (!header.has_value()) {
      if (extension_at.has_value()) {
        fail(*extension_at, {0, "an extended header without a member that it belongs to"});
      }
      check_rest();
      return std::nullopt;
    }
    if (!is_extension(header->type)) {
      header->name = extended.path.value_or(header->name);
      header->bytes = extended.bytes.value_or(header->bytes);
    }
    check_type(*header, at);
    check_size(*header, at);
    next_ = at + tar_block_bytes + padded(header->bytes);
    if (is_extension(header->type)) {
      read_extension(*header, at, extended);
      if (header->type != 'g') {
        extension_at = at;
      }
      continue;
    }
    TarMistake mistake;
    auto path = clean_tar_path(header->name, mistake);
    if (!path.has_value()) {
      fail(at, mistake);
    }
    extended = {};
    extension_at.reset();
    if (is_folder(*header)) {
      continue;
    }
    if (path->empty() || path->size() > path_bytes_max) {
      fail(at, {0, path->empty() ? "a member without a name" : "a member's path is too long"});
    }
    return TarMember{std::move(*path), at + tar_block_bytes, header->bytes};
  }
}

// Returns none at the end mark: two blocks of zeros.
std::optional<TarHeader> TarReader::read_header(std::uint64_t at) {
  if (at > input_.offset()) {
    input_.skip(at - input_.offset());
  }
  TarBlock block;
  for (const bool is_second : {false, true}) {
    const std::size_t count = input_.read(block);
    if (count != block.size()) {
      const std::uint64_t end = input_.offset();
      fail(end, {0, end == 0 ? "the file is empty"
                             : "truncated: the archive has no end mark (two blocks of zeros); get "
                               "it again"});
    }
    if (!is_zero(block)) {
      if (is_second) {
        fail(at, {0, "a block of zeros between members: the archive is damaged, get it again"});
      }
      break;
    }
    if (is_second) {
      return std::nullopt;
    }
  }
  TarMistake mistake;
  auto header = read_tar_header(block, mistake);
  if (!header.has_value()) {
    fail(at, mistake);
  }
  return header;
}

void TarReader::read_extension(const TarHeader& header, std::uint64_t at, Extended& extended) {
  const std::string text = read_text(header);
  if (header.type == 'L') {
    extended.path = text.substr(0, text.find('\0'));
    return;
  }
  if (header.type == 'K') {
    return;  // the target of a link, which is refused when it comes
  }
  TarMistake mistake;
  auto records = read_pax(text, mistake);
  if (!records.has_value()) {
    fail(at + tar_block_bytes, mistake);
  }
  if (records->is_sparse) {
    fail(at, {0, "a sparse file: make the archive without --sparse"});
  }
  if (header.type == 'g') {
    if (records->path.has_value() || records->bytes.has_value()) {
      fail(at, {0, "a global header that names members or says how long they are"});
    }
    return;
  }
  if (records->path.has_value()) {
    extended.path = std::move(records->path);
  }
  if (records->bytes.has_value()) {
    extended.bytes = records->bytes;
  }
}

void TarReader::check_size(const TarHeader& header, std::uint64_t at) const {
  const std::uint64_t end = at + tar_block_bytes;
  constexpr std::size_t size_at = 124;
  if (end > input_.bytes_max() || header.bytes > input_.bytes_max() - end) {
    fail(at,
         {size_at, "truncated: member \"" + header.name + "\" has " + std::to_string(header.bytes) +
                       " bytes, more than the archive can hold; get it again"});
  }
  const std::uint64_t limit = is_extension(header.type) ? text_bytes_max : member_bytes_max_;
  if (header.bytes > limit) {
    fail(at, {size_at, "member \"" + header.name + "\" has " + std::to_string(header.bytes) +
                           " bytes, more than the limit of " + std::to_string(limit)});
  }
}

void TarReader::check_type(const TarHeader& header, std::uint64_t at) const {
  constexpr std::size_t type_at = 156;
  const auto refuse = [&](const std::string& what) {
    fail(at, {type_at, "member \"" + header.name + "\" is " + what});
  };
  switch (header.type) {
    case '0':
    case '\0':
    case '7':
    case '5':
    case 'x':
    case 'g':
    case 'L':
    case 'K':
      return;
    case '1':
    case '2':
      refuse("a link: make the archive with tar --dereference --hard-dereference");
      return;
    case '3':
    case '4':
    case '6':
      refuse("a device or a pipe: make the archive of files only");
      return;
    case 'S':
      refuse("a sparse file: make the archive without --sparse");
      return;
    default:
      refuse("of type " + std::to_string(static_cast<unsigned char>(header.type)) +
             ", which is not known");
  }
}

std::string TarReader::read_text(const TarHeader& header) {
  std::string text(static_cast<std::size_t>(header.bytes), '\0');
  const std::size_t count = input_.read(std::as_writable_bytes(std::span(text)));
  if (count != text.size()) {
    fail(input_.offset(), {0, "truncated in an extended header: get the archive again"});
  }
  return text;
}

// After the end mark there are zeros only, up to the end of the file.
void TarReader::check_rest() {
  TarBlock block;
  while (true) {
    const std::uint64_t at = input_.offset();
    const std::size_t count = input_.read(block);
    if (!is_zero(std::span(block).first(count))) {
      fail(at, {0, "bytes follow the end of the archive: are these two archives in one?"});
    }
    if (count < block.size()) {
      return;
    }
  }
}

void TarReader::fail(std::uint64_t at, const TarMistake& mistake) const {
  input_.fail(at + mistake.at, mistake.text);
}

}  // namespace ebb::inline v0::detail
