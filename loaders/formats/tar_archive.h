// SPDX-License-Identifier: Apache-2.0
// A tar archive, plain or gzipped, of which any member is read at any time. Used by the data set of
// pictures. Any number of threads at once.
#pragma once

#include "gzip_cursor.h"
#include "positioned_file.h"
#include "tar_reader.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace ebb::inline v0::detail {

struct TarLimits {
  std::uint64_t member_bytes = 0;
  std::uint64_t unpacked_bytes = 0;  // of a gzipped archive altogether
  std::uint64_t kept_bytes = 0;      // a gzipped archive of up to so many stays in memory, unpacked
};

// Every failure is a LoadError that names the file, with function in front.
class TarArchive {
 public:
  using Take = std::function<void(const TarMember&)>;

  // Goes through all of it once, and calls take for each regular file, in order. A plain archive is
  // read at its headers only; a gzipped one is unpacked, and its checksum compared.
  TarArchive(std::string_view function, const std::filesystem::path& path, const TarLimits& limits,
             const Take& take);

  // Reads bytes of a member. Plain: one read. Gzipped, and not kept: what lies between them and the
  // last point, at most about 1 MiB (see GzipPoints), is unpacked first, or what lies after the
  // place where another call ended.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  const PositionedFile& file() const noexcept { return file_; }

 private:
  bool is_gzip() const;
  std::unique_ptr<GzipCursor> take_cursor(std::uint64_t offset) const;

  PositionedFile file_;
  GzipPoints points_;
  std::vector<std::byte> kept_;                            // all that is unpacked, or nothing
  mutable std::mutex mutex_;                               // guards idle_
  mutable std::vector<std::unique_ptr<GzipCursor>> idle_;  // as many as there were calls at once
};

}  // namespace ebb::inline v0::detail
