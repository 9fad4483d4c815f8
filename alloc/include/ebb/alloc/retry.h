// SPDX-License-Identifier: Apache-2.0
// An adaptor that does not take a first no: it calls back, waits for memory to come back, searches
// again, and fails at a deadline. [alloc.adaptor]
// Allocation as the upstream's thread rule says; deallocate on any thread.
#pragma once

#include <ebb/alloc/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ebb::inline v0 {

struct RetryOptions {
  // Called after a refusal, on the thread that asked, with no lock held; it may free things, also
  // through this adaptor. attempt counts from 1. May be null.
  void (*on_refusal)(void* context, Bytes asked, std::uint32_t attempt) noexcept = nullptr;
  void* context = nullptr;
  // How often a refused request calls back, waits and searches again.
  std::uint32_t attempts = 3;
  // The longest time that one request waits, over all attempts. A block given back through this
  // adaptor ends a wait early. Zero: do not wait.
  std::chrono::milliseconds wait{0};
};

class Retry final : public Resource {
 public:
  // upstream must outlive this. Throws std::invalid_argument for a negative wait.
  Retry(Resource& upstream, RetryOptions options);

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "retry"; }

  // Requests that were refused at first, and those of them that got a block after all.
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t recovered() const noexcept { return recovered_.load(std::memory_order_relaxed); }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Block try_again(Bytes bytes, Align align, Stream stream) noexcept;
  void wait_for_free(std::uint64_t seen, Deadline deadline) noexcept;

  Resource& upstream_;
  const RetryOptions options_;
  std::atomic<std::uint64_t> frees_{0};
  std::atomic<std::uint32_t> waiters_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> recovered_{0};
  std::mutex mutex_;  // for the waits only
  std::condition_variable freed_;
};

}  // namespace ebb::inline v0
