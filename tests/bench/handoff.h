// SPDX-License-Identifier: Apache-2.0
// One thread makes and another drops: through a bounded ring (both at work at once), and in turns
// (one waits for the other). The same code for every side; it makes no heap call of its own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

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

// Returns nanoseconds per handle from the first that is made to the last that is dropped, both ends
// at work: the least of three passes over count handles (rounded to batches).
template <class Maker>
double handoff_ns(Maker& maker, std::size_t bytes, int count) {
  const int batches = 1 + count / ring_batch;
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    Ring<typename Maker::Handle> ring;
    std::atomic<bool> started{false};
    std::thread dropper([&] {
      started.store(true, std::memory_order_release);
      for (int batch = 0; batch < batches; ++batch) {
        ring.drop_batch();
      }
    });
    spin_until([&] { return started.load(std::memory_order_acquire); });
    const auto start = std::chrono::steady_clock::now();
    for (int batch = 0; batch < batches; ++batch) {
      typename Maker::Handle* const slots = ring.wait_for_room();
      for (int i = 0; i < ring_batch; ++i) {
        slots[i] = maker.make(bytes);
      }
      ring.announce();
    }
    dropper.join();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = pass == 0 ? took.count() : std::min(best, took.count());
  }
  return best / (batches * ring_batch);
}

// Returns nanoseconds of work per handle: making on this thread plus dropping on another, each
// timed on its own while the other waits, so that nothing overlaps. The least of three passes.
template <class Maker>
double foreign_ns(Maker& maker, std::size_t bytes, int count) {
  using Clock = std::chrono::steady_clock;
  const int batches = 1 + count / ring_batch;
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    Ring<typename Maker::Handle> ring;
    std::atomic<int> turn{0};  // even: making; odd: dropping
    Clock::duration making{};
    Clock::duration dropping{};
    std::thread dropper([&] {
      for (int batch = 0; batch < batches; ++batch) {
        spin_until([&] { return turn.load(std::memory_order_acquire) == 2 * batch + 1; });
        const auto start = Clock::now();
        ring.drop_batch();
        dropping += Clock::now() - start;
        turn.store(2 * batch + 2, std::memory_order_release);
      }
    });
    for (int batch = 0; batch < batches; ++batch) {
      spin_until([&] { return turn.load(std::memory_order_acquire) == 2 * batch; });
      const auto start = Clock::now();
      typename Maker::Handle* const slots = ring.wait_for_room();
      for (int i = 0; i < ring_batch; ++i) {
        slots[i] = maker.make(bytes);
      }
      ring.announce();
      making += Clock::now() - start;
      turn.store(2 * batch + 1, std::memory_order_release);
    }
    dropper.join();
    const double took = std::chrono::duration<double, std::nano>(making + dropping).count();
    best = pass == 0 ? took : std::min(best, took);
  }
  return best / (batches * ring_batch);
}

}  // namespace ebb::bench
