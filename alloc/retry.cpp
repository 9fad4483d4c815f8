// SPDX-License-Identifier: Apache-2.0
// Waiting for memory, by a count of frees. Any thread but for allocation, which is the upstream's.
#include "layer.h"

#include <ebb/alloc/retry.h>

namespace ebb::inline v0 {

Retry::Retry(Resource& upstream, RetryOptions options) : upstream_(upstream), options_(options) {
  EBB_REQUIRE(options.wait >= std::chrono::milliseconds(0), "Retry", "the wait is negative");
}

Block Retry::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  Block block = upstream_.try_allocate(bytes, align, stream);
  if (!block) [[unlikely]] {
    block = try_again(bytes, align, stream);
  }
  return detail::take_over(block, *this);
}

Block Retry::try_again(Bytes bytes, Align align, Stream stream) noexcept {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const Deadline now = std::chrono::steady_clock::now();
  // A wait beyond what the clock can say is as long as it can say.
  const bool endless =
      options_.wait > std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::max() - now);
  const Deadline deadline = endless ? Deadline::max() : now + options_.wait;
  for (std::uint32_t attempt = 1; attempt <= options_.attempts; ++attempt) {
    // Counted before the search, so that a free between the search and the wait ends the wait.
    const std::uint64_t seen = frees_.load();
    if (options_.on_refusal != nullptr) {
      options_.on_refusal(options_.context, bytes, attempt);
    }
    // What the callback freed is found before anything is waited for.
    Block block = upstream_.try_allocate(bytes, align, stream);
    if (!block && options_.wait != std::chrono::milliseconds(0)) {
      wait_for_free(seen, deadline);
      block = upstream_.try_allocate(bytes, align, stream);
    }
    if (block) {
      recovered_.fetch_add(1, std::memory_order_relaxed);
      return block;
    }
  }
  return {};
}

// Sequentially consistent, as frees_ and waiters_ in deallocate: of a thread that counts a free and
// then looks for waiters, and one that counts itself and then looks for frees, one sees the other.
void Retry::wait_for_free(std::uint64_t seen, Deadline deadline) noexcept {
  std::unique_lock lock(mutex_);
  waiters_.fetch_add(1);
  freed_.wait_until(lock, deadline, [&] { return frees_.load() != seen; });
  waiters_.fetch_sub(1);
}

void Retry::deallocate(const Block& block) noexcept {
  EBB_ASSERT(detail::is_from(block, *this));  // else freed twice, or another's
  detail::hand_down(block, upstream_);
  frees_.fetch_add(1);
  if (waiters_.load() != 0) [[unlikely]] {
    // The lock: whoever found no free above is asleep before it is woken.
    const std::lock_guard lock(mutex_);
    freed_.notify_all();
  }
}

OutOfMemoryInfo Retry::explain(Bytes asked) const {
  return detail::explain_through(*this, upstream_, asked);
}

}  // namespace ebb::inline v0
