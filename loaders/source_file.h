// SPDX-License-Identifier: Apache-2.0
// A regular file that data comes from, open to be read, and what is said when that fails. Used by
// readers of files. Any thread.
#pragma once

#include <ebb/loaders/error.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace ebb::inline v0::detail {

// Every failure is a LoadError that names the file, with function in front.
class SourceFile {
 public:
  // Throws kind io when there is no such file, or it is no regular one.
  SourceFile(std::string_view function, const std::filesystem::path& path);
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;
  SourceFile(SourceFile&& other) noexcept;
  SourceFile& operator=(SourceFile&&) = delete;
  ~SourceFile();

  int descriptor() const noexcept { return descriptor_; }
  // The size when it was opened.
  std::uint64_t bytes() const noexcept { return bytes_; }
  const std::string& source() const noexcept { return source_; }

  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string text) const;
  // With the system's reason. error: its number.
  [[noreturn]] void fail_system(std::string_view stage, std::uint64_t offset, int error) const;

 private:
  std::string function_;
  std::string source_;
  std::uint64_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace ebb::inline v0::detail
