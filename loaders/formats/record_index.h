// SPDX-License-Identifier: Apache-2.0
// Where the records of several files lie: 12 bytes for each. Used by readers of text. Filled by
// one thread, then read by any.
#pragma once

#include "file_bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ebb::inline v0::detail {

class RecordFiles {
 public:
  struct Record {
    std::size_t file;
    std::uint64_t offset;  // in the file
    std::uint32_t bytes;
  };

  // The records that are added until end_file are of one file, which that hands over.
  void begin_file() { first_.push_back(offsets_.size()); }
  void end_file(FileBytes file) { files_.push_back(std::move(file)); }
  void add_record(std::uint64_t offset, std::uint32_t bytes) {
    offsets_.push_back(offset);
    bytes_.push_back(bytes);
  }
  void shrink_to_fit() {
    offsets_.shrink_to_fit();
    bytes_.shrink_to_fit();
  }

  std::uint64_t size() const noexcept { return offsets_.size(); }
  const FileBytes& file(std::size_t i) const noexcept { return files_[i]; }
  Record operator[](std::uint64_t index) const noexcept {
    const auto after = std::upper_bound(first_.begin(), first_.end(), index);
    return {static_cast<std::size_t>(after - first_.begin()) - 1, offsets_[index], bytes_[index]};
  }
  std::uint32_t bytes(std::uint64_t index) const noexcept { return bytes_[index]; }

 private:
  std::vector<FileBytes> files_;
  std::vector<std::uint64_t> first_;  // record of each file
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint32_t> bytes_;
};

}  // namespace ebb::inline v0::detail
