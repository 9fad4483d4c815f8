// SPDX-License-Identifier: Apache-2.0
// Where the files of a set of pictures are: in folders and archives, with their labels. Made once,
// then read by any number of threads.
#pragma once

#include "class_numbers.h"
#include "tar_archive.h"

#include <ebb/loaders/image_folder.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

// Every failure is a LoadError of function open_images.
class ImageFiles {
 public:
  ImageFiles(const FilePaths& paths, const ImageOptions& options);

  std::uint64_t size() const noexcept { return items_.size(); }
  std::int64_t label(std::uint64_t index) const noexcept { return items_[index].label; }
  std::uint64_t bytes(std::uint64_t index) const noexcept { return items_[index].bytes; }
  // Returns the path of a file; in an archive, after the path of the archive.
  std::string source(std::uint64_t index) const;
  // Reads a file. out has bytes(index) bytes.
  void read(std::uint64_t index, std::span<std::byte> out) const;

  const std::vector<std::string>& vocabulary() const noexcept { return vocabulary_; }
  // A hash of paths, sizes, labels, vocabulary and samples of the archives.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }

 private:
  struct Item {
    std::uint64_t path_at = 0;  // in paths_
    std::uint64_t offset = 0;   // in its archive
    std::uint64_t bytes = 0;
    std::uint32_t path_bytes = 0;
    std::uint32_t label = 0;
    std::uint32_t origin = 0;
  };
  struct Origin {
    std::string source;
    std::unique_ptr<const TarArchive> archive;  // null: a folder
  };
  // What is being opened.
  struct Opening {
    const ImageOptions& options;
    std::optional<ClassNumbers> given;                        // the vocabulary, where one was given
    std::map<std::string, std::uint32_t, std::less<>> found;  // classes by order of appearance
  };

  void open_folder(const std::filesystem::path& folder, Opening& opening);
  void open_archive(const std::filesystem::path& path, Opening& opening);
  void add(const TarMember& file, std::uint64_t place, Opening& opening);
  std::uint32_t label_of(std::string_view path, std::uint64_t place, Opening& opening) const;
  void sort_classes(Opening& opening);
  std::string_view path_of(const Item& item) const noexcept {
    return std::string_view(paths_).substr(item.path_at, item.path_bytes);
  }

  std::vector<Origin> origins_;
  std::vector<Item> items_;
  std::string paths_;  // of all items, one after the other
  std::vector<std::string> vocabulary_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace ebb::inline v0::detail
