// SPDX-License-Identifier: Apache-2.0
// Sources whose pages a descriptor backs: a memfd for each range, or one file for all. Any thread.
#include "file_pages.h"

#include <ebb/alloc/file_source.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ebb::inline v0 {

namespace detail {

DescriptorSource::DescriptorSource() noexcept : process_(::getpid()) {}

bool DescriptorSource::in_own_process() const noexcept {
  return ::getpid() == process_;
}

Range DescriptorSource::map(int descriptor, bool owns, std::uint64_t offset, Bytes bytes) noexcept {
  FileMapping wanted;
  wanted.descriptor = descriptor;
  wanted.owns_descriptor = owns;
  wanted.offset = offset;
  wanted.range.bytes = bytes;
  FileMapping* const mapping =
      map_pages(wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE);
  if (mapping == nullptr) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  FileMapping** link = &ranges_;
  while (*link != nullptr && (*link)->offset < offset) {
    link = &(*link)->next;
  }
  mapping->next = *link;
  *link = mapping;
  return mapping->range;
}

std::uint64_t DescriptorSource::first_gap(Bytes bytes) noexcept {
  const std::lock_guard lock(mutex_);
  std::uint64_t begin = soiled_end_;
  for (const FileMapping* range = ranges_; range != nullptr; range = range->next) {
    if (range->offset >= begin && range->offset - begin >= bytes.count()) {
      break;
    }
    begin = std::max(begin, range->offset + range->range.bytes.count());
  }
  return begin;
}

DescriptorSource::Part DescriptorSource::part_at(const std::byte* address) noexcept {
  const std::lock_guard lock(mutex_);
  const FileMapping* mapping = ranges_;
  while (address < mapping->range.begin || address >= mapping->range.end()) {
    mapping = mapping->next;
  }
  const auto at = static_cast<std::uint64_t>(address - mapping->range.begin);
  return {mapping->descriptor, mapping->offset + at};
}

void DescriptorSource::release(Range range) noexcept {
  FileMapping& mapping = mapping_at(range.begin);
  // Before its part of the file may be used again.
  const bool clean = mapping.owns_descriptor || !in_own_process() ||
                     punch_file(mapping.descriptor, mapping.offset, range.bytes.count());
  {
    const std::lock_guard lock(mutex_);
    if (!clean) {
      soiled_end_ = std::max(soiled_end_, mapping.offset + range.bytes.count());
    }
    FileMapping** link = &ranges_;
    while (*link != &mapping) {
      link = &(*link)->next;
    }
    *link = mapping.next;
  }
  unmap_pages(mapping);
}

bool DescriptorSource::commit(Range range) noexcept {
  if (!in_own_process()) {
    return false;
  }
  const Part part = part_at(range.begin);
  return reserve_room(part.descriptor, part.offset, range.bytes) == 0;
}

void DescriptorSource::decommit(Range range) noexcept {
  if (!in_own_process()) {
    return;
  }
  const Part part = part_at(range.begin);
  punch_file(part.descriptor, part.offset, range.bytes.count());
}

Bytes DescriptorSource::page_size() const noexcept {
  return Bytes{system_page_bytes()};
}

}  // namespace detail

namespace {

constexpr std::uint64_t file_bytes_max = std::uint64_t{1} << 62;

// Makes the file end at end; its new part takes no room yet.
bool grow(int descriptor, std::uint64_t end) noexcept {
  return ::ftruncate(descriptor, static_cast<off_t>(end)) == 0;
}

}  // namespace

Range SharedMemorySource::reserve(Bytes bytes) noexcept {
  const bool may = bytes.count() <= file_bytes_max && in_own_process();
  const int descriptor = may ? ::memfd_create("ebb", MFD_CLOEXEC) : -1;
  if (descriptor < 0) {
    return {};
  }
  const Range range = grow(descriptor, bytes.count()) ? map(descriptor, true, 0, bytes) : Range{};
  if (!range) {
    ::close(descriptor);
  }
  return range;
}

int SharedMemorySource::reserve_room(int descriptor, std::uint64_t offset, Bytes bytes) noexcept {
  return detail::reserve_shared_memory(descriptor, offset, bytes.count());
}

int FileSource::reserve_room(int descriptor, std::uint64_t offset, Bytes bytes) noexcept {
  return detail::reserve_file(descriptor, offset, bytes.count());
}

FileSource::FileSource(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(),
                            "[FileSource] cannot make a nameless file in \"" + folder + "\"");
  }
}

FileSource::~FileSource() {
  ::close(descriptor_);
}

Range FileSource::reserve(Bytes bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint64_t begin = first_gap(bytes);
  if (bytes.count() > file_bytes_max || begin > file_bytes_max || !in_own_process()) {
    return {};
  }
  const std::uint64_t end = begin + bytes.count();
  if (end > end_) {
    if (!grow(descriptor_, end)) {
      return {};
    }
    end_ = end;
  }
  return map(descriptor_, false, begin, bytes);
}

}  // namespace ebb::inline v0
