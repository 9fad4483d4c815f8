// SPDX-License-Identifier: Apache-2.0
// A source that refuses the n-th call that can fail, or reservations above a size. Used by tests
// that demand that what failed left nothing behind. Any thread.
#pragma once

#include <ebb/alloc/source.h>

#include <atomic>
#include <cstdint>
#include <limits>

namespace ebb::test {

class FailingSource final : public Source {
 public:
  explicit FailingSource(Source& inner) : inner_(inner) {}

  // The call number at, counted from now and from 1, is refused, and times - 1 calls after it.
  void fail_at(std::uint64_t at, std::uint64_t times = 1) {
    calls_ = 0;
    first_ = at;
    times_ = times;
  }
  void never_fail() { fail_at(0, 0); }
  // Reservations of more than bytes are refused, as under a limit of address space.
  void refuse_reservations_above(Bytes bytes) { reservation_max_ = bytes.count(); }
  // Calls to reserve and commit since the last fail_at.
  std::uint64_t calls() const { return calls_; }

  Range reserve(Bytes bytes) noexcept override {
    if (fails() || bytes.count() > reservation_max_) {
      return {};
    }
    return inner_.reserve(bytes);
  }
  void release(Range range) noexcept override { inner_.release(range); }
  bool commit(Range range) noexcept override { return !fails() && inner_.commit(range); }
  void decommit(Range range) noexcept override { inner_.decommit(range); }
  Bytes page_size() const noexcept override { return inner_.page_size(); }
  Device device() const noexcept override { return inner_.device(); }
  const char* name() const noexcept override { return "failing"; }

 private:
  bool fails() noexcept {
    const std::uint64_t call = ++calls_;
    return call >= first_ && call - first_ < times_;
  }

  Source& inner_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> first_{0};
  std::atomic<std::uint64_t> times_{0};
  std::atomic<std::size_t> reservation_max_{std::numeric_limits<std::size_t>::max()};
};

}  // namespace ebb::test
