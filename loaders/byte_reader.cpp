// SPDX-License-Identifier: Apache-2.0
// Reading plain and gzipped files, with errors that say where. One thread at a time.
#include "byte_reader.h"

#include "inflater.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <unistd.h>

namespace ebb::inline v0::detail {

ByteReader::ByteReader(std::string_view function, const std::filesystem::path& path)
    : file_(function, path) {
  if (refill() && ahead_.size() >= 2 && ahead_[0] == 0x1f && ahead_[1] == 0x8b) {
    inflater_ = std::make_unique<Inflater>(Inflater::gzip_format);
  }
}

ByteReader::~ByteReader() = default;

std::uint64_t ByteReader::bytes_max() const noexcept {
  constexpr std::uint64_t deflate_ratio_max = 1032;  // a match of 258 bytes in 2 bits
  return is_gzip() ? file_.bytes() * deflate_ratio_max : file_.bytes();
}

std::size_t ByteReader::read(std::span<std::uint8_t> out) {
  const std::size_t count = is_gzip() ? read_gzip(out) : read_plain(out);
  offset_ += count;
  return count;
}

// Reads on when nothing is ahead. Returns whether something is ahead then.
bool ByteReader::refill() {
  while (ahead_.empty()) {
    const ssize_t count = ::read(file_.descriptor(), buffer_.data(), buffer_.size());
    if (count > 0) {
      ahead_ = std::span(buffer_).first(static_cast<std::size_t>(count));
      packed_offset_ += ahead_.size();
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      file_.fail_system("read", packed_offset_, errno);
    }
  }
  return true;
}

std::size_t ByteReader::read_plain(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size() && refill()) {
    const std::size_t part = std::min(out.size() - done, ahead_.size());
    std::memcpy(out.data() + done, ahead_.data(), part);
    ahead_ = ahead_.subspan(part);
    done += part;
  }
  return done;
}

std::size_t ByteReader::read_gzip(std::span<std::uint8_t> out) {
  z_stream& z = inflater_->stream;
  std::size_t done = 0;
  while (done < out.size()) {
    if (!refill()) {
      if (between_members_) {
        break;
      }
      fail_gzip("the gzip stream ends early: the file is truncated, get it again");
    }
    if (std::exchange(between_members_, false)) {
      if (ahead_[0] != 0x1f) {
        fail_gzip("bytes that are no gzip follow the gzip stream");
      }
      inflateReset(&z);
    }
    constexpr std::size_t step = 1u << 30;  // zlib counts in unsigned int
    z.next_in = const_cast<Bytef*>(ahead_.data());
    z.avail_in = static_cast<uInt>(ahead_.size());
    z.next_out = out.data() + done;
    z.avail_out = static_cast<uInt>(std::min(out.size() - done, step));
    const uInt room = z.avail_out;
    const int result = inflate(&z, Z_NO_FLUSH);
    ahead_ = ahead_.last(z.avail_in);
    done += room - z.avail_out;
    if (result == Z_STREAM_END) {
      between_members_ = true;  // another may follow: gzip files can be concatenated
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail_gzip(std::string("corrupt gzip data (") + (z.msg != nullptr ? z.msg : "no reason") +
                "): get the file again");
    }
  }
  return done;
}

void ByteReader::fail_gzip(std::string text) const {
  fail(LoadErrorKind::corrupt, "gzip", packed_offset_ - ahead_.size(), std::move(text));
}

}  // namespace ebb::inline v0::detail
