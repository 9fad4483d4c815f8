// SPDX-License-Identifier: Apache-2.0
// The system calls behind ranges of files. Any thread.
#include "file_pages.h"

#include "system_memory.h"

#include <cerrno>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ebb::inline v0::detail {

std::size_t system_page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

FileMapping* map_pages(const FileMapping& wanted, int protection, int flags) noexcept {
  const std::size_t page = system_page_bytes();
  const std::size_t bytes = wanted.range.bytes.count();
  // One reservation for both, so that the page in front is surely there.
  void* const base = ::mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return nullptr;
  }
  std::byte* const begin = static_cast<std::byte*>(base) + page;
  if (::mmap(begin, bytes, protection, flags | MAP_FIXED, wanted.descriptor,
             static_cast<off_t>(wanted.offset)) == MAP_FAILED) {
    const int error = errno;
    ::munmap(base, page + bytes);
    errno = error;
    return nullptr;
  }
  auto* const mapping = new (base) FileMapping(wanted);
  mapping->range.begin = begin;
  return mapping;
}

FileMapping& mapping_at(std::byte* begin) noexcept {
  return *std::launder(reinterpret_cast<FileMapping*>(begin - system_page_bytes()));
}

void unmap_pages(FileMapping& mapping) noexcept {
  const FileMapping old = mapping;
  if (old.owns_descriptor) {
    ::close(old.descriptor);
  }
  ::munmap(&mapping, system_page_bytes() + old.range.bytes.count());
}

int reserve_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  int error = 0;
  do {
    error = ::fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0
                ? 0
                : errno;
  } while (error == EINTR);
  // Where the file system knows no reservation, the C library writes to what is not there yet.
  return error == EOPNOTSUPP
             ? ::posix_fallocate(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes))
             : error;
}

int reserve_shared_memory(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  return bytes > available_memory_bytes() ? ENOSPC : reserve_file(descriptor, offset, bytes);
}

bool punch_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  return ::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
}

}  // namespace ebb::inline v0::detail
