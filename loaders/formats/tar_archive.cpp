// SPDX-License-Identifier: Apache-2.0
// Indexing an archive, and reading its members. See the header for the thread rule.
#include "tar_archive.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

class PlainInput final : public TarInput {
 public:
  using TarInput::TarInput;

  std::size_t read(std::span<std::byte> out) override {
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), file().bytes() - offset_));
    file().read_at(offset_, out.first(part), "tar");
    offset_ += part;
    return part;
  }
  void skip(std::uint64_t bytes) override {
    if (bytes > file().bytes() - offset_) {
      fail(file().bytes(), "truncated in a member: get the archive again");
    }
    offset_ += bytes;
  }
  std::uint64_t offset() const noexcept override { return offset_; }
  std::uint64_t bytes_max() const noexcept override { return file().bytes(); }

 private:
  std::uint64_t offset_ = 0;
};

// What is unpacked is kept until it is too much.
class GzipInput final : public TarInput {
 public:
  GzipInput(const PositionedFile& file, const TarLimits& limits, GzipPoints& points,
            std::vector<std::byte>& kept)
      : TarInput(file), limits_(limits), cursor_(file), kept_(kept) {
    cursor_.note(&points);
  }

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t count = cursor_.read(out);
    if (cursor_.offset() > limits_.unpacked_bytes) {
      fail(cursor_.offset(),
           "unpacked it has more than max_bytes = " + std::to_string(limits_.unpacked_bytes) +
               " bytes: raise it where the file is to be trusted");
    }
    if (cursor_.offset() > limits_.kept_bytes) {
      std::vector<std::byte>().swap(kept_);
    } else {
      kept_.insert(kept_.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return count;
  }
  void skip(std::uint64_t bytes) override {
    std::array<std::byte, 16384> passed;
    while (bytes > 0) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, passed.size()));
      if (read(std::span(passed).first(part)) != part) {
        fail(cursor_.offset(), "truncated in a member: get the archive again");
      }
      bytes -= part;
    }
  }
  std::uint64_t offset() const noexcept override { return cursor_.offset(); }
  std::uint64_t bytes_max() const noexcept override {
    constexpr std::uint64_t deflate_ratio_max = 1032;  // a match of 258 bytes in 2 bits
    return file().bytes() * deflate_ratio_max;
  }

 private:
  const TarLimits& limits_;
  GzipCursor cursor_;
  std::vector<std::byte>& kept_;
};

}  // namespace

TarArchive::TarArchive(std::string_view function, const std::filesystem::path& path,
                       const TarLimits& limits, const Take& take)
    : file_(function, path) {
  std::unique_ptr<TarInput> input;
  if (is_gzip()) {
    input = std::make_unique<GzipInput>(file_, limits, points_, kept_);
  } else {
    input = std::make_unique<PlainInput>(file_);
  }
  TarReader reader(*input, limits.member_bytes);
  while (const auto member = reader.next()) {
    take(*member);
  }
  if (!kept_.empty()) {
    points_ = {};
    kept_.shrink_to_fit();
  }
}

bool TarArchive::is_gzip() const {
  std::array<std::byte, 2> begin;
  if (file_.bytes() < begin.size()) {
    return false;
  }
  file_.read_at(0, begin, "tar");
  return begin[0] == std::byte{0x1f} && begin[1] == std::byte{0x8b};
}

void TarArchive::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (!kept_.empty()) {
    std::copy_n(kept_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return;
  }
  if (points_.size() == 0) {
    file_.read_at(offset, out, "tar");
    return;
  }
  // After an exception the cursor is not used again.
  std::unique_ptr<GzipCursor> cursor = take_cursor(offset);
  cursor->skip(offset - cursor->offset());
  if (cursor->read(out) != out.size()) {
    file_.fail(LoadErrorKind::corrupt, "tar", cursor->offset(),
               "the file was cut short after it was opened: restore it, and open it again");
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(cursor));
}

// Returns a cursor that stands before offset, not further away than the last point.
std::unique_ptr<GzipCursor> TarArchive::take_cursor(std::uint64_t offset) const {
  const GzipPoint& point = points_.before(offset);
  std::unique_ptr<GzipCursor> cursor;
  {
    const std::lock_guard lock(mutex_);
    // The nearest one before offset; without one the furthest behind, which is the least likely to
    // be where somebody goes on.
    const auto rank = [&](const std::unique_ptr<GzipCursor>& it) {
      const bool is_near = it->offset() <= offset && it->offset() >= point.unpacked;
      return std::pair(is_near, is_near ? it->offset() : ~it->offset());
    };
    const auto best =
        std::max_element(idle_.begin(), idle_.end(),
                         [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    if (best != idle_.end()) {
      cursor = std::move(*best);
      idle_.erase(best);
    }
  }
  if (cursor == nullptr) {
    cursor = std::make_unique<GzipCursor>(file_);
    cursor->seek(point);
  } else if (cursor->offset() > offset || cursor->offset() < point.unpacked) {
    cursor->seek(point);
  }
  return cursor;
}

}  // namespace ebb::inline v0::detail
