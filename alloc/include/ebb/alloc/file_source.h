// SPDX-License-Identifier: Apache-2.0
// Heaps in shared memory and in files: sources whose pages a descriptor backs. Like all sources
// they must outlive the last block of their heaps. Any thread. [alloc.heap]
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
  // Maps bytes of descriptor from offset on and takes the descriptor over when owns says so. Empty
  // when the system refuses.
  Range map(int descriptor, bool owns, std::uint64_t offset, Bytes bytes) noexcept;

 private:
  // Reserves room in the range's file. Returns 0 or an errno value.
  virtual int reserve_room(int descriptor, std::uint64_t offset, Bytes bytes) noexcept = 0;
  FileMapping* find(const std::byte* address) noexcept;

  // Guards the list of ranges: they are few, and committing is rare.
  std::mutex mutex_;
  FileMapping* ranges_ = nullptr;
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
  std::mutex mutex_;       // guards end_
  std::uint64_t end_ = 0;  // where the next range begins: no part of the file is used for two
};

}  // namespace ebb::inline v0
