// SPDX-License-Identifier: Apache-2.0
// The members of a zip archive, stored or deflated, with zip64; by its central directory. PKWARE's
// APPNOTE 6.3. Used by the readers of npz. Any thread.
#pragma once

#include "byte_range.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {

struct ZipMember {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header = 0;  // offset of its local header
};

class ZipFile {
 public:
  // Reads the central directory. Throws LoadError.
  explicit ZipFile(std::shared_ptr<const PositionedFile> file);

  const std::vector<ZipMember>& members() const noexcept { return members_; }
  const PositionedFile& file() const noexcept { return *file_; }
  // Returns the member of that name, or null.
  const ZipMember* find(const std::string& name) const noexcept;
  // Returns what the member holds: where it lies, or unpacked into memory. All of it is read, and
  // has the CRC that the archive says. Throws LoadError, for encryption and other methods too.
  ByteRange open(const ZipMember& member) const;

 private:
  std::uint64_t data_of(const ZipMember& member) const;
  void check_crc(const ZipMember& member, std::uint32_t crc) const;

  std::shared_ptr<const PositionedFile> file_;
  std::vector<ZipMember> members_;
};

}  // namespace ebb::inline v0::detail
