// SPDX-License-Identifier: Apache-2.0
// The memory of one batch, and where it stands. Used by the loader's core, which says what guards
// the members.
#pragma once

#include <ebb/alloc/stream.h>
#include <ebb/gc/clock.h>
#include <ebb/gc/storage.h>
#include <ebb/loaders/order.h>
#include <ebb/loaders/sample.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace ebb::inline v0::detail {

// free -> queued -> opening -> open -> ready or failed -> leased -> free. From any state but leased
// a new epoch leads to free, once no thread is busy with the slot.
enum class SlotState : std::uint8_t { free, queued, opening, open, ready, failed, leased };

// What was fetched of one sample, or why it was not.
struct Fetched {
  bool is_there = false;
  Storage bytes;
  std::exception_ptr error;
};

template <class Core>
struct BatchSlot {
  static constexpr std::size_t none = ~std::size_t{0};

  // Set at construction.
  Core* core = nullptr;
  Storage memory;

  // Guarded by the core's mutex.
  SlotState state = SlotState::free;
  std::uint64_t generation = 0;  // of the core when the ticket was assigned
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;
  std::size_t samples = 0;
  std::size_t range = 1;              // how many of them a thread takes at once
  std::size_t claimed = 0;            // of the samples, in order
  std::size_t done = 0;               // how many of those are over
  std::size_t fetch_next = 0;         // the first that no thread fetches
  unsigned busy = 0;                  // threads that work on it
  bool by_workers = false;            // whether any of them was a worker
  std::size_t failed_at = none;       // the lowest that failed
  std::exception_ptr error;           // why
  std::vector<std::size_t> left_out;  // places that are skipped; has room for a whole batch
  TimePoint since;                    // that it is open
  std::shared_ptr<Core> hold;         // while leased: the core outlives its leases
  WeakStorage lease;                  // while leased: to count the holders
  Order order{OrderKind::sequential, 0, 0, 0};
  std::vector<Fetched> fetched;  // as many as a batch has, where threads fetch
  Storage on_device;             // while ready, where batches are copied to a device
  StreamPoint copied;            // covers that copy

  // Of the thread that opens the ticket; of all that work on it, each at its own places, while it
  // is open; then of the consumer's. Their capacity is a whole batch.
  std::vector<std::uint64_t> indices;
  std::vector<std::int64_t> lengths;  // empty where no field varies
  std::vector<FieldSpot> spots;       // with the rows of this batch
  std::int64_t longest = 0;
};

}  // namespace ebb::inline v0::detail
