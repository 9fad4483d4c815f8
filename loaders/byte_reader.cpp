// SPDX-License-Identifier: Apache-2.0
// Reading plain and gzipped files, with errors that say where. One thread at a time.
#include "byte_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ebb::inline v0::detail {

struct ByteReader::Inflater {
  z_stream stream{};
  bool between_members = false;

  Inflater() {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream, MAX_WBITS + gzip_only) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  Inflater(Inflater&&) = delete;
  Inflater& operator=(Inflater&&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

ByteReader::ByteReader(std::string_view function, const std::filesystem::path& path)
    : function_(function), source_(path.string()) {
  // Not blocking: opening a pipe must not wait for its writer.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) {
    fail_system("open", errno);
  }
  try {
    struct stat status {};
    if (::fstat(file_, &status) != 0) {
      fail_system("open", errno);
    }
    if (!S_ISREG(status.st_mode)) {
      fail(LoadErrorKind::io, "open", 0,
           S_ISDIR(status.st_mode) ? "it is a directory: name the file in it"
                                   : "it is not a regular file");
    }
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
    if (refill() && ahead_.size() >= 2 && ahead_[0] == 0x1f && ahead_[1] == 0x8b) {
      inflater_ = std::make_unique<Inflater>();
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ByteReader::~ByteReader() {
  ::close(file_);
}

std::uint64_t ByteReader::bytes_max() const noexcept {
  constexpr std::uint64_t deflate_ratio_max = 1032;  // a match of 258 bytes in 2 bits
  return is_gzip() ? file_bytes_ * deflate_ratio_max : file_bytes_;
}

std::size_t ByteReader::read(std::span<std::uint8_t> out) {
  const std::size_t count = is_gzip() ? read_gzip(out) : read_plain(out);
  offset_ += count;
  return count;
}

// Reads on when nothing is ahead. Returns whether something is ahead then.
bool ByteReader::refill() {
  while (ahead_.empty()) {
    const ssize_t count = ::read(file_, buffer_.data(), buffer_.size());
    if (count > 0) {
      ahead_ = std::span(buffer_).first(static_cast<std::size_t>(count));
      packed_offset_ += ahead_.size();
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      fail_system("read", errno);
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
      if (inflater_->between_members) {
        break;
      }
      fail_gzip("the gzip stream ends early: the file is truncated, get it again");
    }
    if (std::exchange(inflater_->between_members, false)) {
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
      inflater_->between_members = true;  // another may follow: gzip files can be concatenated
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail_gzip(std::string("corrupt gzip data (") + (z.msg != nullptr ? z.msg : "no reason") +
                "): get the file again");
    }
  }
  return done;
}

void ByteReader::fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                      std::string text) const {
  throw LoadError(function_, {.kind = kind,
                              .stage = std::string(stage),
                              .source = source_,
                              .offset = offset,
                              .text = std::move(text)});
}

void ByteReader::fail_gzip(std::string text) const {
  fail(LoadErrorKind::corrupt, "gzip", packed_offset_ - ahead_.size(), std::move(text));
}

void ByteReader::fail_system(const char* stage, int error) const {
  throw LoadError(function_, {.kind = LoadErrorKind::io,
                              .stage = stage,
                              .source = source_,
                              .offset = packed_offset_,
                              .text = std::generic_category().message(error)});
}

}  // namespace ebb::inline v0::detail
