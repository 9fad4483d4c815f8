// SPDX-License-Identifier: Apache-2.0
// Temporary files beside their target, and renaming.
#include "output_file.h"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb::inline v0::nn {

namespace {

[[noreturn]] void fail(const char* function, const std::string& path, int error) {
  throw std::runtime_error(std::string("[") + function + "] " + path + ": " +
                           std::generic_category().message(error));
}

// A file that exists until it is renamed or forgotten.
class TemporaryFile {
 public:
  TemporaryFile(const char* function, const std::string& target)
      : function_(function),
        target_(target),
        path_(target + ".tmp-" + std::to_string(getpid())),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) {
      fail(function_, target_, errno);
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile(TemporaryFile&&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
    if (!renamed_) {
      unlink(path_.c_str());
    }
  }

  void write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) {
        fail(function_, target_, errno);
      }
      bytes.remove_prefix(count < 0 ? 0 : static_cast<std::size_t>(count));
    }
  }

  void rename_to_target() {
    const int synced = fsync(descriptor_);
    const int sync_error = errno;
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (synced != 0 || closed != 0) {
      fail(function_, target_, synced != 0 ? sync_error : errno);
    }
    if (rename(path_.c_str(), target_.c_str()) != 0) {
      fail(function_, target_, errno);
    }
    renamed_ = true;
  }

 private:
  const char* function_;
  const std::string& target_;
  std::string path_;
  int descriptor_;
  bool renamed_ = false;
};

}  // namespace

void require_writable(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    fail("require_writable", path, EISDIR);
  }
  const TemporaryFile probe("require_writable", path);
}

void write_file(const std::string& path, std::string_view bytes) {
  TemporaryFile file("write_file", path);
  file.write_all(bytes);
  file.rename_to_target();
}

std::string read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    fail("read_file", path, errno);
  }
  std::string bytes;
  char buffer[1 << 14];
  std::size_t count = 0;
  errno = 0;
  while ((count = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    bytes.append(buffer, count);
  }
  const int error = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error != 0) {
    fail("read_file", path, error);
  }
  return bytes;
}

}  // namespace ebb::inline v0::nn
