// SPDX-License-Identifier: Apache-2.0
// What the heap's tests share: a pool with one heap that the test's thread owns, and fills that
// tell blocks apart. Not shared between threads.
#pragma once

#include "support/test_settings.h"

#include <ebb/alloc/pool.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace doctest {

template <>
struct StringMaker<ebb::Bytes> {
  static String convert(ebb::Bytes bytes) { return (std::to_string(bytes.count()) + " B").c_str(); }
};

}  // namespace doctest

namespace ebb::test {

struct OwnHeap {
  explicit OwnHeap(Source& source, PoolOptions options = {})
      : pool(source, std::move(options)), heap(pool.acquire()) {}
  explicit OwnHeap(PoolOptions options = {}) : OwnHeap(system_source(), std::move(options)) {}
  OwnHeap(const OwnHeap&) = delete;
  OwnHeap& operator=(const OwnHeap&) = delete;
  OwnHeap(OwnHeap&&) = delete;
  OwnHeap& operator=(OwnHeap&&) = delete;
  ~OwnHeap() { Pool::park(heap); }

  Block take(std::size_t bytes, std::size_t align = 64) {
    return heap.allocate(Bytes{bytes}, Align{align});
  }

  Pool pool;
  Heap& heap;
};

inline std::byte* begin_of(const Block& block) {
  return static_cast<std::byte*>(block.data);
}

// 0 to 255 twice: 256 bytes from any of the first 256 on are one period of a block's fill.
inline constexpr std::size_t fill_period = 256;
inline constexpr auto fill_ramp = [] {
  std::array<unsigned char, 2 * fill_period> ramp{};
  for (std::size_t i = 0; i < ramp.size(); ++i) {
    ramp[i] = static_cast<unsigned char>(i);
  }
  return ramp;
}();

// Fills a block with bytes made from its number, and tells whether they are still there. In long
// runs, since a sanitizer would look at each byte alone.
inline void fill(const Block& block, std::uint64_t number) {
  for (std::size_t i = 0; i < block.bytes.count(); i += fill_period) {
    std::memcpy(begin_of(block) + i, &fill_ramp[number * 131 % fill_period],
                std::min(fill_period, block.bytes.count() - i));
  }
}
inline bool holds(const Block& block, std::uint64_t number) {
  for (std::size_t i = 0; i < block.bytes.count(); i += fill_period) {
    if (std::memcmp(begin_of(block) + i, &fill_ramp[number * 131 % fill_period],
                    std::min(fill_period, block.bytes.count() - i)) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace ebb::test
