// SPDX-License-Identifier: Apache-2.0
// The memory of one batch, and where it stands. Used by the loader's core, which says what guards
// the members.
#pragma once

#include <ebb/gc/clock.h>
#include <ebb/gc/storage.h>
#include <ebb/loaders/order.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace ebb::inline v0::detail {

// free -> queued -> filling -> ready or failed -> leased -> free. From any state but filling and
// leased a new epoch leads straight to free.
enum class SlotState : std::uint8_t { free, queued, filling, ready, failed, leased };

inline constexpr std::uint64_t no_index = ~std::uint64_t{0};

template <class Core>
struct BatchSlot {
  // Set at construction.
  Core* core = nullptr;
  Storage memory;

  // Guarded by the core's mutex.
  SlotState state = SlotState::free;
  std::uint64_t generation = 0;  // of the core when the ticket was assigned
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;
  std::size_t samples = 0;
  TimePoint since;             // that it is filling
  std::shared_ptr<Core> hold;  // while leased: the core outlives its leases
  WeakStorage lease;           // while leased: to count the holders
  Order order{OrderKind::sequential, 0, 0, 0};

  // Of the thread that fills it; then, once it is ready or failed, of the consumer's.
  std::vector<std::uint64_t> indices;  // its capacity is a whole batch
  std::exception_ptr error;            // what load threw

  // Relaxed: for reports, and to name the sample that failed.
  std::atomic<std::uint64_t> current{no_index};
};

}  // namespace ebb::inline v0::detail
