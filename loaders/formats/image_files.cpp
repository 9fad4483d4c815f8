// SPDX-License-Identifier: Apache-2.0
// Listing folders and archives of pictures, and reading a file of them.
#include "image_files.h"

#include "content_hash.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

namespace fs = std::filesystem;

constexpr const char* function = "open_images";

[[noreturn]] void fail(LoadErrorKind kind, const std::string& stage, const std::string& source,
                       std::uint64_t offset, std::string text) {
  throw LoadError(
      function,
      {.kind = kind, .stage = stage, .source = source, .offset = offset, .text = std::move(text)});
}

// A file of a folder, by its path from there.
struct Found {
  std::string path;
  std::uint64_t bytes = 0;
};

// Walks a folder and those in it. Links are followed, so the depth is bounded.
class FolderWalk {
 public:
  explicit FolderWalk(fs::path root) : root_(std::move(root)) {}

  std::vector<Found> files() {
    walk("", 0);
    std::sort(found_.begin(), found_.end(),
              [](const Found& a, const Found& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  void walk(const std::string& below, int depth) {
    const fs::path folder = below.empty() ? root_ : root_ / below;
    const std::string prefix = below.empty() ? below : below + "/";
    constexpr int depth_max = 16;
    if (depth > depth_max) {
      fail(LoadErrorKind::io, "open", folder.string(), 0,
           "more than 16 folders in each other: is there a link to a folder above?");
    }
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.front() != '.') {
        add(*entry, prefix + name, depth);
      }
    }
    check(error, folder);
  }

  void add(const fs::directory_entry& entry, const std::string& path, int depth) {
    std::error_code error;
    const fs::file_status status = entry.status(error);
    if (status.type() == fs::file_type::not_found) {
      fail(LoadErrorKind::io, "open", entry.path().string(), 0, "a link that leads nowhere");
    }
    check(error, entry.path());
    if (fs::is_directory(status)) {
      walk(path, depth + 1);
      return;
    }
    if (!fs::is_regular_file(status)) {
      fail(LoadErrorKind::io, "open", entry.path().string(), 0, "it is not a regular file");
    }
    const std::uintmax_t bytes = fs::file_size(entry.path(), error);
    check(error, entry.path());
    found_.push_back({path, bytes});
  }

  static void check(const std::error_code& error, const fs::path& path) {
    if (error) {
      fail(LoadErrorKind::io, "open", path.string(), 0, error.message());
    }
  }

  fs::path root_;
  std::vector<Found> found_;
};

bool is_hidden(std::string_view path) noexcept {
  return path.front() == '.' || path.find("/.") != std::string_view::npos;
}

bool is_wanted(std::string_view path, const std::vector<std::string>& extensions) noexcept {
  return extensions.empty() ||
         std::any_of(extensions.begin(), extensions.end(),
                     [path](const std::string& end) { return path.ends_with(end); });
}

}  // namespace

ImageFiles::ImageFiles(const FilePaths& paths, const ImageOptions& options) {
  Opening opening{options, std::nullopt, {}};
  if (!options.vocabulary.empty()) {
    opening.given.emplace(function, options.vocabulary);
  }
  for (const fs::path& path : paths) {
    std::error_code ignored;  // what is no folder is opened as a file, which says what is wrong
    if (fs::is_directory(path, ignored)) {
      open_folder(path, opening);
    } else {
      open_archive(path, opening);
    }
  }
  if (items_.empty()) {
    fail(LoadErrorKind::corrupt, "open", paths.front().string(), 0,
         "there is no picture in it: the layout is CLASS/FILE");
  }
  sort_classes(opening);
  for (const std::string& name : vocabulary_) {
    fingerprint_ = hash_bytes(name + "\n", fingerprint_);
  }
  fingerprint_ = hash_bytes(paths_, fingerprint_);
  for (const Item& item : items_) {
    fingerprint_ = hash_number(item.bytes, hash_number(item.path_bytes, fingerprint_));
    fingerprint_ = hash_number(item.label, fingerprint_);
  }
}

std::string ImageFiles::source(std::uint64_t index) const {
  const Item& item = items_[index];
  return origins_[item.origin].source + "/" + std::string(path_of(item));
}

void ImageFiles::read(std::uint64_t index, std::span<std::byte> out) const {
  const Item& item = items_[index];
  const Origin& origin = origins_[item.origin];
  if (origin.archive != nullptr) {
    origin.archive->read(item.offset, out);
    return;
  }
  const PositionedFile file(function, fs::path(origin.source) / path_of(item));
  if (file.bytes() != item.bytes) {
    file.fail(LoadErrorKind::io, "open", 0,
              "it has " + std::to_string(file.bytes()) + " bytes, and had " +
                  std::to_string(item.bytes) + " when the set was opened: open it again");
  }
  file.read_at(0, out);
}

void ImageFiles::open_folder(const fs::path& folder, Opening& opening) {
  origins_.push_back({folder.string(), nullptr});
  for (Found& found : FolderWalk(folder).files()) {
    if (found.bytes > opening.options.max_file_bytes.count()) {
      fail(LoadErrorKind::corrupt, "open", (folder / found.path).string(), 0,
           "it has " + std::to_string(found.bytes) + " bytes, more than max_file_bytes");
    }
    add({std::move(found.path), 0, found.bytes}, 0, opening);
  }
}

void ImageFiles::open_archive(const fs::path& path, Opening& opening) {
  const ImageOptions& options = opening.options;
  const TarLimits limits{.member_bytes = options.max_file_bytes.count(),
                         .unpacked_bytes = options.max_bytes.count(),
                         .kept_bytes = options.keep_bytes.count()};
  origins_.push_back({path.string(), nullptr});
  auto archive = std::make_unique<const TarArchive>(
      function, path, limits,
      [&](const TarMember& member) { add(member, member.offset - tar_block_bytes, opening); });
  fingerprint_ = hash_sparsely(archive->file(), fingerprint_);
  origins_.back().archive = std::move(archive);
}

// Adds a file of the origin opened last. place is the offset of its header there.
void ImageFiles::add(const TarMember& file, std::uint64_t place, Opening& opening) {
  if (is_hidden(file.path) || !is_wanted(file.path, opening.options.extensions)) {
    return;
  }
  items_.push_back({.path_at = paths_.size(),
                    .offset = file.offset,
                    .bytes = file.bytes,
                    .path_bytes = static_cast<std::uint32_t>(file.path.size()),
                    .label = label_of(file.path, place, opening),
                    .origin = static_cast<std::uint32_t>(origins_.size() - 1)});
  paths_ += file.path;
}

// Returns the label of the given vocabulary, or else a number by order of appearance.
std::uint32_t ImageFiles::label_of(std::string_view path, std::uint64_t place,
                                   Opening& opening) const {
  const Origin& origin = origins_.back();
  const std::size_t end = path.rfind('/');
  if (end == std::string_view::npos) {
    fail(LoadErrorKind::shape, "open", origin.source, place,
         "\"" + std::string(path) +
             "\" is in no folder of a class: the layout is CLASS/FILE; name .extensions to pass "
             "over what is no picture");
  }
  const std::size_t begin = path.rfind('/', end - 1) + 1;  // npos + 1 is 0
  const std::string_view name = path.substr(begin, end - begin);
  if (!opening.given.has_value()) {
    const auto next = static_cast<std::uint32_t>(opening.found.size());
    return opening.found.try_emplace(std::string(name), next).first->second;
  }
  const auto label = opening.given->find(name);
  if (!label.has_value()) {
    fail(LoadErrorKind::shape, "open", origin.source, place,
         "\"" + std::string(path) + "\" is of class \"" + std::string(name) +
             "\", which the vocabulary does not have");
  }
  return static_cast<std::uint32_t>(*label);
}

// Sets the vocabulary. Classes that were found get their numbers by name.
void ImageFiles::sort_classes(Opening& opening) {
  if (opening.given.has_value()) {
    vocabulary_ = opening.given->names();
    return;
  }
  std::vector<std::uint32_t> sorted(opening.found.size());
  for (const auto& [name, number] : opening.found) {
    sorted[number] = static_cast<std::uint32_t>(vocabulary_.size());
    vocabulary_.push_back(name);
  }
  for (Item& item : items_) {
    item.label = sorted[item.label];
  }
}

}  // namespace ebb::inline v0::detail
