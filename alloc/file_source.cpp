// SPDX-License-Identifier: Apache-2.0
// Sources whose pages a descriptor backs: a memfd for each range, or one file for all. Any thread.
#include "file_pages.h"

#include <ebb/alloc/file_source.h>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ebb::inline v0 {

namespace detail {

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
  mapping->next = ranges_;
  ranges_ = mapping;
  return mapping->range;
}

FileMapping* DescriptorSource::find(const std::byte* address) noexcept {
  const std::lock_guard lock(mutex_);
  FileMapping* mapping = ranges_;
  while (address < mapping->range.begin || address >= mapping->range.end()) {
    mapping = mapping->next;
  }
  return mapping;
}

void DescriptorSource::release(Range range) noexcept {
  FileMapping& mapping = mapping_at(range.begin);
  {
    const std::lock_guard lock(mutex_);
    FileMapping** link = &ranges_;
    while (*link != &mapping) {
      link = &(*link)->next;
    }
    *link = mapping.next;
  }
  if (!mapping.owns_descriptor) {
    punch_file(mapping.descriptor, mapping.offset, range.bytes.count());
  }
  unmap_pages(mapping);
}

bool DescriptorSource::commit(Range range) noexcept {
  const FileMapping& mapping = *find(range.begin);
  const auto at = static_cast<std::uint64_t>(range.begin - mapping.range.begin);
  return reserve_room(mapping.descriptor, mapping.offset + at, range.bytes) == 0;
}

void DescriptorSource::decommit(Range range) noexcept {
  const FileMapping& mapping = *find(range.begin);
  const auto at = static_cast<std::uint64_t>(range.begin - mapping.range.begin);
  punch_file(mapping.descriptor, mapping.offset + at, range.bytes.count());
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
  const int descriptor = bytes.count() <= file_bytes_max ? ::memfd_create("ebb", MFD_CLOEXEC) : -1;
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
  if (bytes.count() > file_bytes_max - end_ || !grow(descriptor_, end_ + bytes.count())) {
    return {};
  }
  const Range range = map(descriptor_, false, end_, bytes);
  if (range) {
    end_ += bytes.count();
  }
  return range;
}

}  // namespace ebb::inline v0
