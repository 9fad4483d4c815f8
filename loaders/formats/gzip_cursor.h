// SPDX-License-Identifier: Apache-2.0
// Going to any place of a gzip file without unpacking all that lies before it: the idea of Mark
// Adler's zran. While a file is unpacked once, places to go on from are noted, each with the 32 KiB
// that deflate may refer back to. Used by archives. A cursor is used by one thread at a time;
// points that are complete, by any.
#pragma once

#include "positioned_file.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {

struct Inflater;

// Where unpacking can go on: at the border of two deflate blocks.
struct GzipPoint {
  std::uint64_t packed = 0;    // offset of the first byte not yet looked at
  std::uint64_t unpacked = 0;  // how many bytes came out before
  int bits = 0;                // of the byte before it, its upper ones, belong to what follows
  std::vector<std::uint8_t> window = {};
};

// The points of one file, in order. At most as many as would keep 128 MiB of windows: then every
// second one is dropped and the distance doubles. So it is 1 MiB for files of up to 4 GiB unpacked.
class GzipPoints {
 public:
  static constexpr std::uint64_t distance_min = std::uint64_t{1} << 20;
  static constexpr std::size_t count_max = 4096;

  // Returns whether a point at this offset is far enough from the last one.
  bool is_due(std::uint64_t unpacked) const noexcept;
  void add(GzipPoint point);
  // Returns the last point that is not beyond the offset. There must be one.
  const GzipPoint& before(std::uint64_t unpacked) const noexcept;
  std::size_t size() const noexcept { return points_.size(); }

 private:
  std::vector<GzipPoint> points_;
  std::uint64_t distance_ = distance_min;
};

// Unpacks a gzip file from any point of it. Several gzip files one after the other are one, as
// gunzip has it. Every failure is a LoadError that names the file, stage gzip, and the packed
// offset. The file must outlive the cursor.
class GzipCursor {
 public:
  explicit GzipCursor(const PositionedFile& file);  // at the beginning
  GzipCursor(const GzipCursor&) = delete;
  GzipCursor& operator=(const GzipCursor&) = delete;
  GzipCursor(GzipCursor&&) = delete;
  GzipCursor& operator=(GzipCursor&&) = delete;
  ~GzipCursor();

  // Goes to a point of this file.
  void seek(const GzipPoint& point);
  // Fills out as far as there are bytes; returns how many. Checksums are compared where a cursor
  // came to them from the beginning of their part.
  std::size_t read(std::span<std::byte> out);
  // Unpacks bytes that nobody wants. Throws where the file ends before.
  void skip(std::uint64_t bytes);
  // How many bytes came out, counted from the beginning of the file.
  std::uint64_t offset() const noexcept { return offset_; }
  // From now on notes points, as far apart as they must be. Null: no longer.
  void note(GzipPoints* points) noexcept { points_ = points; }

 private:
  enum class At { header, data, trailer };

  bool refill();
  bool start_part();
  void skip_trailer();
  void inflate_some(std::span<std::byte> out);
  void note_point();
  std::uint64_t packed_offset() const noexcept { return packed_end_ - ahead_.size(); }
  [[noreturn]] void fail(const std::string& text) const;

  const PositionedFile& file_;
  std::unique_ptr<Inflater> inflater_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> ahead_;  // of buffer_: read and not yet used
  std::uint64_t packed_end_ = 0;      // of ahead_, in the file
  std::uint64_t offset_ = 0;
  At at_ = At::header;
  bool is_raw_ = false;  // after seek: zlib sees no header, so it compares no checksum
  GzipPoints* points_ = nullptr;
};

}  // namespace ebb::inline v0::detail
