// SPDX-License-Identifier: Apache-2.0
#include "line_reader.h"

#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace ebb::world {

namespace {

constexpr std::size_t longest_line = 65536;

std::string system_text(int error) {
  return std::system_category().message(error);
}

}  // namespace

LineReader::LineReader(std::string path) : path_(std::move(path)) {
  errno = 0;
  file_ = ::gzopen(path_.c_str(), "rb");  // reads plain files as they are
  if (file_ == nullptr) {
    throw std::runtime_error(path_ +
                             ": cannot be opened: " + system_text(errno != 0 ? errno : ENOMEM));
  }
}

LineReader::~LineReader() {
  ::gzclose(file_);
}

bool LineReader::next() {
  do {
    line_.clear();
    ++number_;
    int byte = next_byte();
    if (byte == EOF) {
      return false;
    }
    for (; byte != EOF && byte != '\n'; byte = next_byte()) {
      if (line_.size() == longest_line) {
        fail("longer than 64 KiB");
      }
      line_.push_back(static_cast<char>(byte));
    }
    if (!line_.empty() && line_.back() == '\r') {
      line_.pop_back();
    }
  } while (line_.empty());
  return true;
}

void LineReader::fail(const std::string& what) const {
  throw std::runtime_error(path_ + ", line " + std::to_string(number_) + ": " + what);
}

int LineReader::next_byte() {
  if (begin_ == end_ && !refill()) {
    return EOF;
  }
  return static_cast<unsigned char>(buffer_[begin_++]);
}

bool LineReader::refill() {
  const int got = ::gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  // A file that is cut off ends like a whole one, but leaves an error behind.
  int error = Z_OK;
  const char* text = ::gzerror(file_, &error);
  if (got < 0 || (got == 0 && error != Z_OK && error != Z_STREAM_END)) {
    fail(std::string("cannot be read: ") + (error == Z_ERRNO ? system_text(errno) : text));
  }
  begin_ = 0;
  end_ = static_cast<std::size_t>(got);
  return got > 0;
}

}  // namespace ebb::world
