// SPDX-License-Identifier: Apache-2.0
// Files and shared segments as supervised pointers. Used to wrap data sets, weights and memory that
// other processes see. Any thread; each DataPtr has one owner. [alloc.map]
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/data_ptr.h>

#include <cstdint>
#include <string>

namespace ebb::inline v0 {

enum class MapMode {
  read_only,     // writing to the bytes ends the process
  private_copy,  // writes stay in this process, page by page
  shared,        // writes reach the file
};

struct MapOptions {
  MapMode mode = MapMode::read_only;
  std::uint64_t offset = 0;  // of the first byte in the file; any
  Bytes bytes{0};            // 0: up to the end of the file
  bool create = false;       // shared only: make the file if there is none, and grow it to bytes
};

// Bytes that a descriptor backs; data unmaps them, and closes the descriptor, when it goes.
struct Mapped {
  DataPtr data;
  Bytes bytes;
  bool read_only = false;  // writing to the bytes ends the process
};

// Maps a part of a file; from_blob (ebb/runtime/tensor_from.h) makes a tensor of it. No heap call
// for the pointer, but for the message of an exception. In mode shared the file's room is reserved
// first, so that a full disk is an exception and not a signal at some write. Throws
// std::system_error with the path, std::invalid_argument for options that cannot be, such as a part
// that lies beyond the end of a file that is not to grow.
//
// A file that another program cuts short meanwhile: the kernel takes the pages beyond the new end
// away, and touching them ends the process with SIGBUS; nothing can prevent that for a file that
// others may write. What lies before stays readable. is_whole() tells, for those who can ask
// before they read; copy what must not be lost, or use a segment, which cannot be cut.
Mapped map_file(const std::string& path, const MapOptions& options = {});

// Makes a segment of zeros for this process and those that get its descriptor. Its pages are
// reserved now and its size is sealed: nobody can cut it, and no access ends in SIGBUS. name is
// for /proc only. Throws OutOfMemory when there is no room, std::invalid_argument for zero bytes.
Mapped make_segment(Bytes bytes, const char* name = "ebb");

// Maps a segment by its descriptor, which stays the caller's. Throws std::invalid_argument when its
// size is not sealed (it could be cut while mapped), std::system_error when it cannot be mapped.
Mapped open_segment(int descriptor, MapMode mode = MapMode::shared);

// Returns the descriptor behind data, or -1 when data was not made by the functions above. It stays
// open as long as data: duplicate it to keep it.
int descriptor_of(const DataPtr& data) noexcept;

// Returns whether the file still holds every byte that was mapped. Throws std::invalid_argument
// when data was not made by the functions above.
bool is_whole(const DataPtr& data);

}  // namespace ebb::inline v0
