// SPDX-License-Identifier: Apache-2.0
// Threads that wait for files, so that those of the executor need not. They fetch the samples of
// open tickets in the order in which those are handed out, as far ahead as the limit lets them.
#include "loader_core.h"
#include "stage_room.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace ebb::inline v0 {

// Each holds the core, so that one which does not come back from the system needs nobody to wait
// for it: shut_down does for a while. Throws std::system_error where there is no thread at all.
void Loader::Core::start_fetching() {
  for (unsigned n = 0; n < options.fetch_threads; ++n) {
    {
      const Lock lock(mutex_);
      ++tasks_;
    }
    try {
      std::thread([core = shared_from_this()]() mutable {
        core->fetch_on();
        core.reset();
      }).detach();
    } catch (const std::system_error&) {
      const Lock lock(mutex_);
      --tasks_;
      if (n == 0) {
        throw;
      }
      return;
    }
  }
}

void Loader::Core::fetch_on() noexcept {
  detail::Scratch scratch(owner_, keeps_scratch());
  Lock lock(mutex_);
  while (!closing_) {
    std::size_t place = 0;
    Slot* const slot = find_fetch(place);
    if (slot == nullptr) {
      to_fetch_.wait_for(lock, std::chrono::seconds(1));  // who opens or uses up tells
      continue;
    }
    ++slot->busy;
    ++slot->fetch_next;
    lock.unlock();
    fetch(*slot, place, scratch);
    lock.lock();
    slot->fetched[place].is_there = true;
    leave(lock, *slot);
    pump(lock);
    changed_.notify_all();
  }
  --tasks_;
  changed_.notify_all();
}

// Above the limit only what is to be handed out next is fetched: without that nothing would be
// used up.
Loader::Core::Slot* Loader::Core::find_fetch(std::size_t& place) noexcept {
  const bool is_full = fetched_.load(std::memory_order_relaxed) >= options.fetch_ahead.count();
  Slot* lowest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state == SlotState::open && is_current(slot) && slot.error == nullptr &&
        slot.fetch_next < slot.samples && (!is_full || slot.seq == deliver_) &&
        (lowest == nullptr || slot.seq < lowest->seq)) {
      lowest = &slot;
    }
  }
  place = lowest == nullptr ? 0 : lowest->fetch_next;
  return lowest;
}

void Loader::Core::fetch(Slot& slot, std::size_t place, detail::Scratch& scratch) noexcept {
  const OwnerScope scope(owner_, HeapStay::with_scope);
  detail::Fetched& it = slot.fetched[place];
  const std::uint64_t index = slot.indices[place];
  if (cache_ != nullptr && cache_->contains(index)) {
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    std::atomic<std::uint64_t> current{no_index};
    detail::RangeFill walk({.indices = std::span(slot.indices).subspan(place, 1),
                            .lengths = {},
                            .row = place,
                            .slot = nullptr,
                            .spots = {},
                            .epoch = slot.epoch,
                            .seq = slot.seq,
                            .seed = options.seed,
                            .generation = &generation_,
                            .expected = slot.generation,
                            .current = &current},
                           data.erased(), scratch);
    if (!walk.next()) {
      return;
    }
    detail::BlockRoom room(owner_, birth_);
    SampleBytes out(room);
    data.erased().fetch(index, walk.context(), out);
    it.bytes = room.take();
    fetched_.fetch_add(out.bytes().size(), std::memory_order_relaxed);
    fetch_clock_.add(1, out.bytes().size(), std::chrono::steady_clock::now() - start);
  } catch (...) {
    fetch_clock_.add_failure();
    it.error = std::current_exception();
  }
  scratch.reset();
}

void Loader::Core::drop(detail::Fetched& fetched) noexcept {
  if (fetched.bytes) {
    fetched_.fetch_sub(fetched.bytes.bytes().count(), std::memory_order_relaxed);
  }
  fetched = {.is_there = fetched.is_there, .bytes = {}, .error = nullptr};
}

}  // namespace ebb::inline v0
