// SPDX-License-Identifier: Apache-2.0
// What streams find in the memory that they use: each write and each look is queued, so that who
// has memory too early spoils what another one still looks at. Used by the tests of device memory.
#pragma once

#include "device_fixture.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ebb::test {

class Content {
 public:
  explicit Content(DeviceContext& context) : context_(context) {}

  // Has the block's own stream fill it.
  void write(const Block& block, unsigned char byte) {
    context_.fill(block.data, {.bits = byte}, block.bytes.count(), block.stream);
  }
  // Has a stream look whether it has nothing but byte in it.
  void look_at(const Block& block, unsigned char byte, Stream on) {
    left_.fetch_add(1);
    context_.call(
        look,
        new Look{static_cast<const unsigned char*>(block.data), block.bytes.count(), byte, this},
        on);
  }
  // Waits for all looks, and returns whether all of them found what they were to find.
  bool is_right() { return context_.wait_for_all(soon()) && left_ == 0 && wrong_ == 0; }

 private:
  struct Look {
    const unsigned char* data;
    std::size_t bytes;
    unsigned char wanted;
    Content* content;
  };
  static void look(void* context) {
    const std::unique_ptr<Look> it(static_cast<Look*>(context));
    if (!std::all_of(it->data, it->data + it->bytes,
                     [&](unsigned char byte) { return byte == it->wanted; })) {
      it->content->wrong_.fetch_add(1);
    }
    it->content->left_.fetch_sub(1);
  }

  DeviceContext& context_;
  std::atomic<std::uint64_t> wrong_{0};
  std::atomic<std::uint64_t> left_{0};
};

}  // namespace ebb::test
