// SPDX-License-Identifier: Apache-2.0
// A source whose calls take a while, so that races around growth and trimming get their chance.
// Used by stress tests. Any thread.
#pragma once

#include <ebb/alloc/source.h>

#include <chrono>
#include <thread>

namespace ebb::test {

class DelayedSource final : public Source {
 public:
  DelayedSource(Source& inner, std::chrono::microseconds delay) : inner_(inner), delay_(delay) {}

  Range reserve(Bytes bytes) noexcept override {
    std::this_thread::sleep_for(delay_);
    return inner_.reserve(bytes);
  }
  void release(Range range) noexcept override {
    std::this_thread::sleep_for(delay_);
    inner_.release(range);
  }
  bool commit(Range range) noexcept override {
    std::this_thread::sleep_for(delay_);
    return inner_.commit(range);
  }
  void decommit(Range range) noexcept override {
    std::this_thread::sleep_for(delay_);
    inner_.decommit(range);
  }
  Bytes page_size() const noexcept override { return inner_.page_size(); }
  Device device() const noexcept override { return inner_.device(); }
  const char* name() const noexcept override { return "delayed"; }

 private:
  Source& inner_;
  std::chrono::microseconds delay_;
};

}  // namespace ebb::test
