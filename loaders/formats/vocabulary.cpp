// SPDX-License-Identifier: Apache-2.0
// Names of classes: looking them up, and files of them. Any thread.
#include "byte_reader.h"
#include "class_numbers.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/vocabulary.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <unistd.h>

namespace ebb::inline v0 {

namespace {

[[noreturn]] void fail_writing(int error, const std::filesystem::path& path) {
  throw std::system_error(error, std::generic_category(),
                          "[save_vocabulary] cannot write \"" + path.string() + "\"");
}

// Writes and closes a file whose bytes reach the disk. Returns the error, or 0.
int write_whole(const std::filesystem::path& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr) {
    return errno;
  }
  errno = 0;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                          std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int error = is_written ? 0 : errno;
  return std::fclose(file) == 0 ? error : errno;
}

}  // namespace

namespace detail {

ClassNumbers::ClassNumbers(const char* function, std::vector<std::string> names)
    : names_(std::move(names)) {
  for (const std::string& name : names_) {
    EBB_REQUIRE(!name.empty(), function, "the vocabulary has an empty name");
    const bool is_new = numbers_.emplace(name, static_cast<std::int64_t>(numbers_.size())).second;
    EBB_REQUIRE(is_new, function, "the vocabulary has \"", name, "\" twice");
  }
}

std::optional<std::int64_t> ClassNumbers::find(std::string_view name) const noexcept {
  const auto found = numbers_.find(name);
  return found != numbers_.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace detail

void save_vocabulary(const std::filesystem::path& path,
                     const std::vector<std::string>& vocabulary) {
  const detail::ClassNumbers checked("save_vocabulary", vocabulary);
  std::string text;
  for (const std::string& name : checked.names()) {
    EBB_REQUIRE(name.find_first_of("\r\n") == std::string::npos, "save_vocabulary", "\"", name,
                "\" has a line's end in it");
    text += name + "\n";
  }
  std::filesystem::path beside = path;
  beside += "." + std::to_string(::getpid()) + ".new";
  int error = write_whole(beside, text);
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    if (error != EEXIST) {
      ::unlink(beside.c_str());
    }
    fail_writing(error, path);
  }
}

std::vector<std::string> load_vocabulary(const std::filesystem::path& path) {
  detail::ByteReader reader("load_vocabulary", path);
  constexpr std::size_t most = std::size_t{64} << 20;
  std::string text;
  std::size_t size = 0;
  do {
    text.resize(std::min(most + 1, size + (std::size_t{1} << 16)));
    size += reader.read({reinterpret_cast<std::uint8_t*>(text.data()) + size, text.size() - size});
  } while (size == text.size() && size <= most);
  text.resize(size);
  if (size == 0 || size > most) {
    reader.fail(LoadErrorKind::corrupt, "read", 0,
                size == 0 ? "the file is empty" : "it has more than 64 MiB: is it a vocabulary?");
  }
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string name = text.substr(begin, end - begin);
    if (name.ends_with('\r')) {
      name.pop_back();
    }
    const auto line = [&names] { return "line " + std::to_string(names.size() + 1); };
    if (name.empty()) {
      reader.fail(LoadErrorKind::corrupt, "read", begin, line() + " is empty");
    }
    if (!seen.insert(name).second) {
      reader.fail(LoadErrorKind::corrupt, "read", begin,
                  line() + " has \"" + name + "\" for the second time");
    }
    names.push_back(std::move(name));
    begin = end + 1;
  }
  return names;
}

}  // namespace ebb::inline v0
