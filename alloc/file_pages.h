// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses that a descriptor backs, each behind a page of its own that remembers it, so
// that no table and no heap call is needed. Used by mapped files, segments and their sources.
// Any thread; nothing throws.
#pragma once

#include <ebb/alloc/source.h>

#include <cstddef>
#include <cstdint>

namespace ebb::inline v0::detail {

// Lies in the page in front of a mapping. The descriptor is open as long as the mapping when
// owns_descriptor says so; else somebody else keeps it open for longer.
struct FileMapping {
  int descriptor = -1;
  bool owns_descriptor = false;
  std::uint64_t offset = 0;  // of the mapping's first byte in the file, a multiple of the page size
  std::uint64_t end = 0;     // of what is wanted of the file: the rest of the last page is not
  Range range;               // what is mapped, in whole pages
  FileMapping* next = nullptr;  // in the list of a source
};

std::size_t system_page_bytes() noexcept;

// Maps what wanted says (its range names the size, in whole pages) with mmap's protection and
// flags. Returns the mapping, or null with errno set; the descriptor is then still the caller's.
FileMapping* map_pages(const FileMapping& wanted, int protection, int flags) noexcept;
// Returns the mapping that begins at begin.
FileMapping& mapping_at(std::byte* begin) noexcept;
// Unmaps it, and closes its descriptor if that is its own.
void unmap_pages(FileMapping& mapping) noexcept;

// Reserves room in the file for bytes from offset on, so that a later write cannot fail for want
// of it. The file's contents stay, and it grows as needed. Returns 0 or an errno value.
int reserve_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;
// The same for shared memory, refused as ENOSPC when the system could not give as much: the kernel
// itself would take the request and end processes to fulfil it.
int reserve_shared_memory(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;
// Gives the file's pages back; they read as zeros. The file keeps its size. Returns false when the
// file system cannot: they keep what they hold.
bool punch_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;

}  // namespace ebb::inline v0::detail
