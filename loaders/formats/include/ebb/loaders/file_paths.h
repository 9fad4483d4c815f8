// SPDX-License-Identifier: Apache-2.0
// One path or several, for functions that open either. Values: any thread.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

//   open_cifar("cifar-10-batches-bin");
//   open_cifar({"data_batch_1.bin", "data_batch_2.bin"});
class FilePaths {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a path is one
  FilePaths(const char* path) : paths_{path} {}
  FilePaths(const std::string& path) : paths_{path} {}
  FilePaths(std::filesystem::path path) : paths_{std::move(path)} {}
  FilePaths(std::initializer_list<std::filesystem::path> paths) : paths_(paths) {}
  FilePaths(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)) {}
  // NOLINTEND(google-explicit-constructor)

  auto begin() const noexcept { return paths_.begin(); }
  auto end() const noexcept { return paths_.end(); }
  bool empty() const noexcept { return paths_.empty(); }
  std::size_t size() const noexcept { return paths_.size(); }
  const std::filesystem::path& front() const noexcept { return paths_.front(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

}  // namespace ebb::inline v0
