// SPDX-License-Identifier: Apache-2.0
// Opening files, and errors that say where. Any thread.
#include "source_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb::inline v0::detail {

SourceFile::SourceFile(std::string_view function, const std::filesystem::path& path)
    : function_(function), source_(path.string()) {
  // Not blocking: opening a pipe must not wait for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    fail_system("open", 0, errno);
  }
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) {
      fail_system("open", 0, errno);
    }
    if (!S_ISREG(status.st_mode)) {
      fail(LoadErrorKind::io, "open", 0,
           S_ISDIR(status.st_mode) ? "it is a directory: name the file in it"
                                   : "it is not a regular file");
    }
    bytes_ = static_cast<std::uint64_t>(status.st_size);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SourceFile::SourceFile(SourceFile&& other) noexcept
    : function_(std::move(other.function_)),
      source_(std::move(other.source_)),
      bytes_(other.bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SourceFile::~SourceFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void SourceFile::fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                      std::string text) const {
  throw LoadError(function_, {.kind = kind,
                              .stage = std::string(stage),
                              .source = source_,
                              .offset = offset,
                              .text = std::move(text)});
}

void SourceFile::fail_system(std::string_view stage, std::uint64_t offset, int error) const {
  fail(LoadErrorKind::io, stage, offset, std::generic_category().message(error));
}

}  // namespace ebb::inline v0::detail
