// SPDX-License-Identifier: Apache-2.0
// Unpacking block by block, so that borders between blocks are seen. One thread at a time.
#include "gzip_cursor.h"

#include "inflater.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

constexpr std::size_t buffer_bytes = 65536;
constexpr std::size_t window_bytes = 32768;

}  // namespace

bool GzipPoints::is_due(std::uint64_t unpacked) const noexcept {
  return points_.empty() || unpacked - points_.back().unpacked >= distance_;
}

void GzipPoints::add(GzipPoint point) {
  if (points_.size() == count_max) {
    for (std::size_t i = 1; 2 * i < points_.size(); ++i) {
      points_[i] = std::move(points_[2 * i]);
    }
    points_.resize((points_.size() + 1) / 2);
    distance_ *= 2;
    if (!is_due(point.unpacked)) {
      return;
    }
  }
  points_.push_back(std::move(point));
}

const GzipPoint& GzipPoints::before(std::uint64_t unpacked) const noexcept {
  const auto after = std::upper_bound(
      points_.begin(), points_.end(), unpacked,
      [](std::uint64_t offset, const GzipPoint& point) { return offset < point.unpacked; });
  return *(after - 1);
}

GzipCursor::GzipCursor(const PositionedFile& file)
    : file_(file),
      inflater_(std::make_unique<Inflater>(Inflater::gzip_format)),
      buffer_(buffer_bytes) {}

GzipCursor::~GzipCursor() = default;

void GzipCursor::seek(const GzipPoint& point) {
  inflater_->restart(Inflater::raw_format);
  z_stream& z = inflater_->stream;
  packed_end_ = point.packed;
  ahead_ = {};
  if (point.bits > 0) {
    std::array<std::byte, 1> shared;
    file_.read_at(point.packed - 1, shared, "gzip");
    inflatePrime(&z, point.bits, std::to_integer<int>(shared[0]) >> (8 - point.bits));
  }
  if (!point.window.empty()) {
    inflateSetDictionary(&z, point.window.data(), static_cast<uInt>(point.window.size()));
  }
  offset_ = point.unpacked;
  at_ = At::data;
  is_raw_ = true;
}

std::size_t GzipCursor::read(std::span<std::byte> out) {
  const std::uint64_t begin = offset_;
  while (offset_ - begin < out.size()) {
    if (at_ == At::header && !start_part()) {
      break;
    }
    if (at_ == At::trailer) {
      skip_trailer();
    } else {
      inflate_some(out.subspan(static_cast<std::size_t>(offset_ - begin)));
    }
  }
  return static_cast<std::size_t>(offset_ - begin);
}

void GzipCursor::skip(std::uint64_t bytes) {
  std::array<std::byte, 16384> unwanted;
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, unwanted.size()));
    if (read(std::span(unwanted).first(part)) != part) {
      fail("the gzip stream ends early: the file is truncated, get it again");
    }
    bytes -= part;
  }
}

// Reads on when nothing is ahead. Returns whether something is ahead then.
bool GzipCursor::refill() {
  if (ahead_.empty()) {
    const std::uint64_t left = file_.bytes() - std::min(packed_end_, file_.bytes());
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer_.size()));
    file_.read_at(packed_end_, std::span(buffer_).first(part), "gzip");
    ahead_ = std::span(buffer_).first(part);
    packed_end_ += part;
  }
  return !ahead_.empty();
}

// Returns whether another gzip part begins here, rather than the end of the file.
bool GzipCursor::start_part() {
  if (!refill()) {
    return false;
  }
  if (ahead_[0] != std::byte{0x1f}) {
    fail("bytes that are no gzip follow the gzip stream");
  }
  inflater_->restart(Inflater::gzip_format);
  at_ = At::data;
  is_raw_ = false;
  return true;
}

// Passes the checksum and size that follow data of which zlib saw no header.
void GzipCursor::skip_trailer() {
  for (std::size_t left = 8; left > 0;) {
    if (!refill()) {
      fail("the gzip stream ends early: the file is truncated, get it again");
    }
    const std::size_t part = std::min(left, ahead_.size());
    ahead_ = ahead_.subspan(part);
    left -= part;
  }
  at_ = At::header;
}

// Unpacks up to the next border of two blocks, or as much as is ahead.
void GzipCursor::inflate_some(std::span<std::byte> out) {
  // What is left of a seek: bits of a byte before the point may end the data without another byte.
  if (!refill()) {
    fail("the gzip stream ends early: the file is truncated, get it again");
  }
  z_stream& z = inflater_->stream;
  constexpr std::size_t step = 1u << 30;  // zlib counts in unsigned int
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(ahead_.data()));
  z.avail_in = static_cast<uInt>(ahead_.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(std::min(out.size(), step));
  const uInt room = z.avail_out;
  const int result = inflate(&z, Z_BLOCK);
  ahead_ = ahead_.last(z.avail_in);
  offset_ += room - z.avail_out;
  if (result == Z_STREAM_END) {
    at_ = is_raw_ ? At::trailer : At::header;
  } else if (result == Z_MEM_ERROR) {
    throw std::bad_alloc();
  } else if (result != Z_OK && result != Z_BUF_ERROR) {
    fail(std::string("corrupt gzip data (") + (z.msg != nullptr ? z.msg : "no reason") +
         "): get the file again");
  } else if (points_ != nullptr) {
    note_point();
  }
}

void GzipCursor::note_point() {
  z_stream& z = inflater_->stream;
  constexpr int after_block = 128;
  constexpr int in_last_block = 64;
  if ((z.data_type & after_block) == 0 || (z.data_type & in_last_block) != 0 ||
      !points_->is_due(offset_)) {
    return;
  }
  GzipPoint point{packed_offset(), offset_, z.data_type & 7, {}};
  point.window.resize(window_bytes);
  uInt length = 0;
  if (inflateGetDictionary(&z, point.window.data(), &length) != Z_OK) {
    throw std::bad_alloc();
  }
  point.window.resize(length);
  point.window.shrink_to_fit();
  points_->add(std::move(point));
}

void GzipCursor::fail(const std::string& text) const {
  file_.fail(LoadErrorKind::corrupt, "gzip", packed_offset(), text);
}

}  // namespace ebb::inline v0::detail
