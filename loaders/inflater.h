// SPDX-License-Identifier: Apache-2.0
// zlib's unpacking of one stream, ended with this. Used by readers of packed files, by one thread
// at a time.
#pragma once

#include <zlib.h>

#include <new>

namespace ebb::inline v0::detail {

struct Inflater {
  static constexpr int gzip_format = MAX_WBITS + 16;
  static constexpr int raw_format = -MAX_WBITS;

  // Throws std::bad_alloc.
  explicit Inflater(int format) {
    if (inflateInit2(&stream, format) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  Inflater(Inflater&&) = delete;
  Inflater& operator=(Inflater&&) = delete;
  ~Inflater() { inflateEnd(&stream); }

  // Begins another stream. Throws std::bad_alloc.
  void restart(int format) {
    if (inflateReset2(&stream, format) != Z_OK) {
      throw std::bad_alloc();
    }
  }

  z_stream stream{};
};

}  // namespace ebb::inline v0::detail
