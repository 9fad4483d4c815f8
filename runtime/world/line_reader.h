// SPDX-License-Identifier: Apache-2.0
// A text file line by line, plain or gzipped, for the tools of the ebb command. One thread at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

struct gzFile_s;

namespace ebb::world {

class LineReader {
 public:
  // Throws std::runtime_error where the file cannot be opened.
  explicit LineReader(std::string path);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  LineReader(LineReader&&) = delete;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  // Takes the next line that is not empty, without its end. Returns false after the last. Throws
  // std::runtime_error where the file cannot be read, is cut off, or has a line longer than 64 KiB.
  bool next();
  // Valid until the next call.
  std::string_view line() const noexcept { return line_; }

  // Throws std::runtime_error with the file, the line's number and what.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  int next_byte();
  bool refill();

  std::string path_;
  gzFile_s* file_ = nullptr;
  std::array<char, 65536> buffer_{};
  std::size_t begin_ = 0;  // of what was read and not taken
  std::size_t end_ = 0;
  std::string line_;
  std::uint64_t number_ = 0;
};

}  // namespace ebb::world
