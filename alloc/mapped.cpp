// SPDX-License-Identifier: Apache-2.0
// Mapping files and sealed segments. The context of their pointers is the page in front of the
// mapping. Any thread. [alloc.map]
#include "file_pages.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/error.h>
#include <ebb/alloc/mapped.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb::inline v0 {

namespace {

using detail::FileMapping;

constinit const PtrOps mapped_ops{
    [](void* context, void*) noexcept { detail::unmap_pages(*static_cast<FileMapping*>(context)); },
    "mapped"};

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

// A descriptor until somebody else takes it over.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }

  int get() const noexcept { return number_; }
  bool is_open() const noexcept { return number_ >= 0; }
  void release() noexcept { number_ = -1; }
  // When none is open.
  void reset(int number) noexcept { number_ = number; }

 private:
  int number_;
};

// Removes a file that was just made unless all goes well. path null: there is none.
class NewFile {
 public:
  explicit NewFile(const char* path) noexcept : path_(path) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile(NewFile&&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (path_ != nullptr) {
      ::unlink(path_);
    }
  }

  void keep() noexcept { path_ = nullptr; }

 private:
  const char* path_;
};

std::uint64_t file_bytes(int descriptor, const std::string& what) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) {
    fail(errno, what);
  }
  return static_cast<std::uint64_t>(info.st_size);
}

// Takes the descriptor over.
Mapped map_descriptor(Descriptor& descriptor, std::uint64_t offset, std::size_t bytes, MapMode mode,
                      const std::string& what) {
  const std::size_t page = detail::system_page_bytes();
  const std::size_t lead = offset % page;
  FileMapping wanted;
  wanted.descriptor = descriptor.get();
  wanted.owns_descriptor = true;
  wanted.offset = offset - lead;
  wanted.end = offset + bytes;
  // At least a page: an empty part has an address as well.
  wanted.range.bytes = Bytes{std::max((lead + bytes + page - 1) / page, std::size_t{1}) * page};
  const int protection = PROT_READ | (mode == MapMode::read_only ? 0 : PROT_WRITE);
  FileMapping* const mapping = detail::map_pages(
      wanted, protection, mode == MapMode::private_copy ? MAP_PRIVATE : MAP_SHARED);
  if (mapping == nullptr) {
    fail(errno, what);
  }
  descriptor.release();
  return {DataPtr(mapping->range.begin + lead, mapping, mapped_ops, cpu), Bytes{bytes},
          mode == MapMode::read_only};
}

void require_sound(const MapOptions& options, const std::string& path) {
  EBB_REQUIRE(!options.create || options.mode == MapMode::shared, "map_file", "\"", path,
              "\" is to be created, but not mapped as shared");
  EBB_REQUIRE(!options.create || options.bytes != Bytes{}, "map_file", "\"", path,
              "\" is to be created, but no size is given");
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  EBB_REQUIRE(options.offset <= most && options.bytes.count() <= most, "map_file", "\"", path,
              "\": offset and bytes are larger than any file");
}

}  // namespace

Mapped map_file(const std::string& path, const MapOptions& options) {
  require_sound(options, path);
  const std::string what = "[map_file] cannot map \"" + path + "\"";
  const bool shared = options.mode == MapMode::shared;
  // Not blocking, else the open of a pipe waits for somebody to write to it.
  const int flags = (shared ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
  Descriptor descriptor(::open(path.c_str(), flags));
  bool is_new = false;
  if (options.create && !descriptor.is_open() && errno == ENOENT) {
    // Alone or not at all: only a file that is ours is removed when something fails.
    descriptor.reset(::open(path.c_str(), flags | O_CREAT | O_EXCL, 0666));
    is_new = descriptor.is_open();
    if (!is_new && errno == EEXIST) {
      descriptor.reset(::open(path.c_str(), flags));  // somebody was quicker
    }
  }
  if (!descriptor.is_open()) {
    fail(errno, what);
  }
  NewFile unfinished(is_new ? path.c_str() : nullptr);
  const std::uint64_t size = file_bytes(descriptor.get(), what);
  const std::uint64_t end = options.bytes == Bytes{} ? std::max(size, options.offset)
                                                     : options.offset + options.bytes.count();
  EBB_REQUIRE(options.create || (options.offset <= size && end <= size), "map_file", "\"", path,
              "\" has ", std::to_string(size), " bytes: bytes ", std::to_string(options.offset),
              " to ", std::to_string(end), " are not in it");
  const auto bytes = static_cast<std::size_t>(end - options.offset);
  if (shared && bytes != 0) {
    if (const int error = detail::reserve_file(descriptor.get(), options.offset, bytes)) {
      fail(error,
           "[map_file] cannot reserve " + std::to_string(bytes) + " bytes of \"" + path + "\"");
    }
  }
  Mapped mapped = map_descriptor(descriptor, options.offset, bytes, options.mode, what);
  unfinished.keep();
  return mapped;
}

Mapped make_segment(Bytes bytes, const char* name) {
  EBB_REQUIRE(bytes != Bytes{}, "make_segment", "a segment of zero bytes cannot be made");
  const std::string what = "[make_segment] cannot make \"" + std::string(name) + "\"";
  Descriptor descriptor(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor.is_open()) {
    fail(errno, what);
  }
  const int error = detail::reserve_shared_memory(descriptor.get(), 0, bytes.count());
  if (error == ENOSPC || error == ENOMEM || error == EFBIG) {
    OutOfMemoryInfo info;
    info.asked = bytes;
    info.resource = "shared memory";
    throw OutOfMemory("make_segment", std::move(info));
  }
  if (error != 0) {
    fail(error, what);
  }
  if (::fcntl(descriptor.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail(errno, what);
  }
  return map_descriptor(descriptor, 0, bytes.count(), MapMode::shared, what);
}

Mapped open_segment(int descriptor, MapMode mode) {
  const std::string what = "[open_segment] cannot map descriptor " + std::to_string(descriptor);
  Descriptor own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!own.is_open()) {
    fail(errno, what);
  }
  const int seals = ::fcntl(own.get(), F_GET_SEALS);
  EBB_REQUIRE(seals != -1 && (seals & F_SEAL_SHRINK) != 0, "open_segment", "descriptor ",
              std::to_string(descriptor),
              " is not sealed against being cut: make segments with make_segment()");
  const std::uint64_t size = file_bytes(own.get(), what);
  return map_descriptor(own, 0, static_cast<std::size_t>(size), mode, what);
}

int descriptor_of(const DataPtr& data) noexcept {
  const auto* mapping = data.context_as<FileMapping>(mapped_ops);
  return mapping != nullptr ? mapping->descriptor : -1;
}

bool is_whole(const DataPtr& data) {
  const auto* mapping = data.context_as<FileMapping>(mapped_ops);
  EBB_REQUIRE(mapping != nullptr, "is_whole", "the pointer is not one of a mapped file");
  return mapping->end <= file_bytes(mapping->descriptor, "[is_whole] cannot ask for the size");
}

}  // namespace ebb::inline v0
