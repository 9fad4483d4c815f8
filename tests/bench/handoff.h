// SPDX-License-Identifier: Apache-2.0
// One thread makes and another drops: through a bounded ring (both at work at once), and in turns
// (one waits for the other). The same code for every side.
#pragma once

#include "harness.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

namespace ebb::bench {

inline constexpr int ring_handles = 256;
inline constexpr int ring_batch = 64;  // handles that are announced together, either way

// Waits until ready() holds. Gives the core away now and then: there may be fewer than threads.
template <class Ready>
void spin_until(Ready ready) {
  for (int i = 1; !ready(); ++i) {
    if (i % 1024 == 0) {
      std::this_thread::yield();
    }
  }
}

// One producer, one consumer. Counts only grow; each is written by one end.
template <class Handle>
class Ring {
 public:
  // Producer. Returns where the next batch goes, when there is room.
  Handle* wait_for_room() {
    // Acquire: pairs with drop_batch, so that slots are free of their last handles.
    spin_until([&] {
      return made_.load(std::memory_order_relaxed) - dropped_.load(std::memory_order_acquire) <=
             ring_handles - ring_batch;
    });
    return &slots_[static_cast<std::size_t>(made_.load(std::memory_order_relaxed) % ring_handles)];
  }
  // Release: the consumer sees the handles.
  void announce() { made_.fetch_add(ring_batch, std::memory_order_release); }

  // Consumer.
  void drop_batch() {
    const int dropped = dropped_.load(std::memory_order_relaxed);
    // Acquire: pairs with announce.
    spin_until([&] { return made_.load(std::memory_order_acquire) != dropped; });
    Handle* const first = &slots_[static_cast<std::size_t>(dropped % ring_handles)];
    for (int i = 0; i < ring_batch; ++i) {
      first[i] = Handle();
    }
    dropped_.store(dropped + ring_batch, std::memory_order_release);
  }

 private:
  std::array<Handle, ring_handles> slots_{};
  alignas(64) std::atomic<int> made_{0};
  alignas(64) std::atomic<int> dropped_{0};
};

template <class Maker>
void make_batch(Ring<typename Maker::Handle>& ring, Maker& maker, std::size_t bytes) {
  typename Maker::Handle* const slots = ring.wait_for_room();
  for (int i = 0; i < ring_batch; ++i) {
    slots[i] = maker.make(bytes);
  }
  ring.announce();
}

// Returns nanoseconds per handle of about count, both ends at work: what the producer needs for a
// window, the ring being full or empty all the while.
template <class Maker>
double handoff_ns(Maker& maker, std::size_t bytes, int count) {
  using Clock = std::chrono::steady_clock;
  const int batches = 1 + count / windows / ring_batch;  // of a window
  Ring<typename Maker::Handle> ring;
  std::thread dropper([&] {
    for (int batch = 0; batch < batches * windows; ++batch) {
      ring.drop_batch();
    }
  });
  std::vector<double> times;
  for (int window = 0; window < windows; ++window) {
    const auto start = Clock::now();
    for (int batch = 0; batch < batches; ++batch) {
      make_batch(ring, maker, bytes);
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    times.push_back(took.count() / (batches * ring_batch));
  }
  dropper.join();
  return undisturbed(std::move(times));
}

// Returns nanoseconds of work per handle of about count: making on this thread plus dropping on
// another, each timed on its own while the other waits, so that nothing overlaps.
template <class Maker>
double foreign_ns(Maker& maker, std::size_t bytes, int count) {
  using Clock = std::chrono::steady_clock;
  using Nanoseconds = std::chrono::duration<double, std::nano>;
  const int batches = 1 + count / ring_batch;
  Ring<typename Maker::Handle> ring;
  std::vector<double> making;
  std::vector<double> dropping;
  std::atomic<int> turn{0};  // even: making; odd: dropping
  std::thread dropper([&] {
    for (int batch = 0; batch < batches; ++batch) {
      spin_until([&] { return turn.load(std::memory_order_acquire) == 2 * batch + 1; });
      const auto start = Clock::now();
      ring.drop_batch();
      dropping.push_back(Nanoseconds(Clock::now() - start).count() / ring_batch);
      turn.store(2 * batch + 2, std::memory_order_release);
    }
  });
  for (int batch = 0; batch < batches; ++batch) {
    spin_until([&] { return turn.load(std::memory_order_acquire) == 2 * batch; });
    const auto start = Clock::now();
    make_batch(ring, maker, bytes);
    making.push_back(Nanoseconds(Clock::now() - start).count() / ring_batch);
    turn.store(2 * batch + 1, std::memory_order_release);
  }
  dropper.join();
  return undisturbed(std::move(making)) + undisturbed(std::move(dropping));
}

}  // namespace ebb::bench
