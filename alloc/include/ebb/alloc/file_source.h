// SPDX-License-Identifier: Apache-2.0
// Heaps in shared memory and in files: sources whose pages a descriptor backs. Like all sources
// they must outlive the last block of their heaps. Any thread. [alloc.heap]
//
// A forked child has the same pages as its parent. It may read them; it is refused new ones, and
// what it releases stays: only the process that made the source gives pages back. The parent's
// heaps refuse it as well.
#pragma once

#include <ebb/alloc/source.h>

#include <cstdint>
#include <mutex>
#include <string>

namespace ebb::inline v0 {

namespace detail {

struct FileMapping;

// What the two have in common: ranges that are mapped from a descriptor, whose room is reserved on
// commit, so that a lack of it is a refusal and not a signal at some write.
class DescriptorSource : public Source {
 public:
  void release(Range range) noexcept override;
  bool commit(Range range) noexcept override;
  void decommit(Range range) noexcept override;
  Bytes page_size() const noexcept override;
  Device device() const noexcept override { return cpu; }

 protected:
  DescriptorSource() noexcept;

  // Maps bytes of descriptor from offset on and takes the descriptor over when owns says so. Empty
  // when the system refuses.
  Range map(int descriptor, bool owns, std::uint64_t offset, Bytes bytes) noexcept;
  // Returns the first offset from which on no range lies within bytes, and all reads as zeros.
  std::uint64_t first_gap(Bytes bytes) noexcept;
  // Whether this is the process that made the source, and not a forked child of it.
  bool in_own_process() const noexcept;

 private:
  // Reserves room in the range's file. Returns 0 or an errno value.
  virtual int reserve_room(int descriptor, std::uint64_t offset, Bytes bytes) noexcept = 0;
  // Where the pages of a range's part lie in the range's file.
  struct Part {
    int descriptor;
    std::uint64_t offset;
  };
  Part part_at(const std::byte* address) noexcept;

  const int process_;
  // Guards the list of ranges: they are few, and committing is rare.
  std::mutex mutex_;
  FileMapping* ranges_ = nullptr;  // by offset
  std::uint64_t soiled_end_ = 0;   // below, some pages could not be given back, and are not zeros
};

}  // namespace detail

// Pages of shared memory: one memfd for each range that a heap reserves.
class SharedMemorySource final : public detail::DescriptorSource {
 public:
  Range reserve(Bytes bytes) noexcept override;
  const char* name() const noexcept override { return "shared memory"; }

 private:
  int reserve_room(int descriptor, std::uint64_t offset, Bytes bytes) noexcept override;
};

// Pages in a file, for heaps that are larger than the memory: the kernel writes them out when it
// runs short. The file is scratch and has no name, so that nothing is left after a crash.
//
//   ebb::FileSource source("/scratch");           // a folder on the disk that is meant
//   ebb::Pool pool(source, {.name = "spill"});
class FileSource final : public detail::DescriptorSource {
 public:
  // Throws std::system_error with the folder when no file can be made in it.
  explicit FileSource(const std::string& folder);
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  FileSource(FileSource&&) = delete;
  FileSource& operator=(FileSource&&) = delete;
  ~FileSource() override;

  Range reserve(Bytes bytes) noexcept override;
  const char* name() const noexcept override { return "file"; }

 private:
  int reserve_room(int descriptor, std::uint64_t offset, Bytes bytes) noexcept override;

  int descriptor_;
  std::mutex mutex_;       // guards end_, and that no part of the file is used for two
  std::uint64_t end_ = 0;  // of the file
};

}  // namespace ebb::inline v0
