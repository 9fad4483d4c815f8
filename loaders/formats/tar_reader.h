// SPDX-License-Identifier: Apache-2.0
// The regular files of a tar archive, one after the other. Used to index archives. One thread at a
// time.
#pragma once

#include "positioned_file.h"
#include "tar_header.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ebb::inline v0::detail {

// The bytes of an archive, plain or unpacked, from the beginning.
class TarInput {
 public:
  // The file must outlive the input.
  explicit TarInput(const PositionedFile& file) : file_(file) {}
  TarInput(const TarInput&) = delete;
  TarInput& operator=(const TarInput&) = delete;
  TarInput(TarInput&&) = delete;
  TarInput& operator=(TarInput&&) = delete;
  virtual ~TarInput() = default;

  // Fills out as far as there are bytes; returns how many.
  virtual std::size_t read(std::span<std::byte> out) = 0;
  // Passes bytes, which lie below bytes_max(). Throws LoadError where the archive ends before.
  virtual void skip(std::uint64_t bytes) = 0;
  virtual std::uint64_t offset() const noexcept = 0;
  // The archive has no more bytes than that.
  virtual std::uint64_t bytes_max() const noexcept = 0;
  // Throws LoadError of kind corrupt. offset is in the (unpacked) archive.
  [[noreturn]] void fail(std::uint64_t offset, const std::string& text) const {
    file_.fail(LoadErrorKind::corrupt, "tar", offset, text);
  }

 protected:
  const PositionedFile& file() const noexcept { return file_; }

 private:
  const PositionedFile& file_;
};

struct TarMember {
  std::string path;          // relative, without "." and ".."
  std::uint64_t offset = 0;  // of its bytes in the (unpacked) archive
  std::uint64_t bytes = 0;
};

// Folders and global headers without names or sizes are passed over. Refused by LoadError with the
// offset: paths that lead out of the archive, links, devices, pipes, sparse files, types that are
// not known, sizes beyond the archive, an archive that has no end mark or goes on after it.
class TarReader {
 public:
  // A member may have member_bytes_max bytes. input must outlive the reader.
  TarReader(TarInput& input, std::uint64_t member_bytes_max)
      : input_(input), member_bytes_max_(member_bytes_max) {}

  // Returns the next regular file, or none at the archive's end. Its bytes come next from the
  // input, as far as somebody reads them.
  std::optional<TarMember> next();

 private:
  // What extended headers say of the member that follows.
  struct Extended {
    std::optional<std::string> path;
    std::optional<std::uint64_t> bytes;
  };

  std::optional<TarHeader> read_header(std::uint64_t at);
  void read_extension(const TarHeader& header, std::uint64_t at, Extended& extended);
  void check_size(const TarHeader& header, std::uint64_t at) const;
  void check_type(const TarHeader& header, std::uint64_t at) const;
  std::string read_text(const TarHeader& header);
  void check_rest();
  [[noreturn]] void fail(std::uint64_t at, const TarMistake& mistake) const;

  TarInput& input_;
  std::uint64_t member_bytes_max_;
  std::uint64_t next_ = 0;  // offset of the next header
};

}  // namespace ebb::inline v0::detail
