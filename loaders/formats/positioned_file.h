// SPDX-License-Identifier: Apache-2.0
// A regular file, read at positions: what data sets keep open when a file is too large for memory.
// Any number of threads at once. A file that is cut short meanwhile is a LoadError, which a mapping
// could not promise.
#pragma once

#include "source_file.h"

#include <ebb/loaders/dataset.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ebb::inline v0::detail {

// Every failure is a LoadError that names the file, with function in front.
class PositionedFile {
 public:
  // Throws when there is no such file, or it is no regular one.
  PositionedFile(std::string_view function, const std::filesystem::path& path)
      : file_(function, path) {}

  // Fills all of out from offset on. Throws kind corrupt when the file ends before that, and io
  // when the system refuses; with a context it is the failure of that sample.
  void read_at(std::uint64_t offset, std::span<std::byte> out,
               std::string_view stage = "read") const;
  void read_at(std::uint64_t offset, std::span<std::byte> out, const StageContext& context,
               std::string_view stage = "read") const;
  // The size when it was opened.
  std::uint64_t bytes() const noexcept { return file_.bytes(); }
  const std::string& source() const noexcept { return file_.source(); }

  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string text) const {
    file_.fail(kind, stage, offset, std::move(text));
  }

 private:
  struct Failure {
    LoadErrorKind kind;
    std::uint64_t offset;
    std::string text;
  };
  std::optional<Failure> try_read_at(std::uint64_t offset, std::span<std::byte> out) const;

  SourceFile file_;
};

// Returns a hash of a file's size and contents: of all of them up to 64 MiB, beyond that of 256
// samples of 4 KiB spread evenly over it.
std::uint64_t hash_sparsely(const PositionedFile& file, std::uint64_t hash);

}  // namespace ebb::inline v0::detail
