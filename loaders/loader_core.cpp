// SPDX-License-Identifier: Apache-2.0
// Tickets and workers: which slot is filled next, and by whom. [load.slots]
#include "loader_core.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

Order Loader::Core::order_of(std::uint64_t epoch) const {
  return Order(*options.order, {.size = data.size(),
                                .batch = static_cast<std::uint64_t>(options.batch),
                                .seed = options.seed,
                                .epoch = epoch});
}

bool Loader::Core::run_without_workers(Lock& lock) noexcept {
  if (executor_ == nullptr || domain_->has_ended() || executor_->concurrency() > 1) {
    return false;
  }
  lock.unlock();
  const bool ran = executor_->run_one();
  lock.lock();
  return ran;
}

Loader::Core::Slot* Loader::Core::find(std::uint64_t seq) noexcept {
  const std::uint64_t generation = generation_.load(std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.state != SlotState::free && slot.state != SlotState::leased &&
        slot.generation == generation && slot.seq == seq) {
      return &slot;
    }
  }
  return nullptr;
}

Loader::Core::Slot* Loader::Core::find_free() noexcept {
  for (Slot& slot : slots_) {
    if (slot.state == SlotState::free && (stage_ == nullptr || stage_->is_done(slot.copied))) {
      return &slot;
    }
  }
  return nullptr;
}

bool Loader::Core::is_current(const Slot& slot) const noexcept {
  return slot.generation == generation_.load(std::memory_order_relaxed);
}

std::size_t Loader::Core::claimable(const Slot& slot) const noexcept {
  if (is_current(slot) && slot.state == SlotState::queued) {
    return slot.samples;
  }
  // The state is asked first: the error of a slot that has failed is the consumer's.
  if (!is_current(slot) || slot.state != SlotState::open || slot.error != nullptr) {
    return 0;
  }
  std::size_t end = slot.samples;
  if (options.fetch_threads != 0) {
    end = slot.claimed;
    while (end < slot.samples && slot.fetched[end].is_there) {
      ++end;
    }
  }
  return end - slot.claimed;
}

Loader::Core::Slot* Loader::Core::find_work() noexcept {
  Slot* lowest = nullptr;
  for (Slot& slot : slots_) {
    if ((lowest == nullptr || slot.seq < lowest->seq) && claimable(slot) != 0) {
      lowest = &slot;
    }
  }
  return lowest;
}

std::size_t Loader::Core::tasks_wanted() const noexcept {
  std::size_t ranges = 0;
  for (const Slot& slot : slots_) {
    ranges += (claimable(slot) + slot.range - 1) / slot.range;
  }
  return ranges;
}

void Loader::Core::assign(Slot& slot, std::uint64_t seq) noexcept {
  const auto batch = static_cast<std::uint64_t>(options.batch);
  const RankShare share = options.rank.share(batch, std::min(batch, epoch_samples - seq * batch));
  slot.state = SlotState::queued;
  slot.generation = generation_.load(std::memory_order_relaxed);
  slot.epoch = epoch_;
  slot.seq = seq;
  slot.first = seq * batch + share.first;
  slot.samples = static_cast<std::size_t>(share.count);
  slot.padding = static_cast<std::size_t>(share.padding);
  slot.range = range_size(slot.samples);
  slot.claimed = 0;
  slot.done = 0;
  slot.by_workers = false;
  slot.fetch_next = 0;
  slot.failed_at = Slot::none;
  slot.left_out.clear();
  slot.order = order_;
  next_ticket_ = std::max(next_ticket_, seq + 1);
}

// Without the mutex, by the one thread that is busy with the slot.
void Loader::Core::clear(Slot& slot) noexcept {
  slot.error = nullptr;
  slot.on_device = {};
  for (detail::Fetched& it : slot.fetched) {
    drop(it);
  }
}

void Loader::Core::pump(Lock& lock) noexcept {
  EBB_ASSERT_VALID(*this);
  if (workers_.empty() || closing_ || !begun_ || epoch_error_ != nullptr) {
    return;
  }
  while (next_ticket_ < batches && next_ticket_ - deliver_ < ahead_) {
    Slot* const slot = find_free();
    if (slot == nullptr) {
      break;
    }
    assign(*slot, next_ticket_);
  }
  const std::size_t wanted = tasks_wanted();
  for (Worker& worker : workers_) {
    if (idle_tasks_ >= wanted) {
      break;
    }
    if (!worker.submitted && !submit(lock, worker)) {
      break;
    }
  }
}

bool Loader::Core::submit(Lock& lock, Worker& worker) noexcept {
  worker.submitted = true;
  worker.hold = shared_from_this();
  ++idle_tasks_;
  ++tasks_;
  lock.unlock();
  try {
    // The task must not become a job of the iteration that happens to be open here. [gc.owner]
    const OwnerScope scope(owner_, HeapStay::with_scope);
    executor_->submit(worker);
    lock.lock();
    return true;
  } catch (...) {
    if (!submit_failed_.exchange(true, std::memory_order_relaxed)) {
      domain_->log(LogLevel::warning,
                   "[Loader] the executor refuses load tasks: next() fills the batches itself; "
                   "said once");
    }
  }
  lock.lock();
  worker.submitted = false;
  worker.hold.reset();  // never the last one: the caller holds the core
  --idle_tasks_;
  --tasks_;
  return false;
}

void Loader::Core::work(Worker& worker) noexcept {
  // Declared first, to go last: it may end the core, and with it the worker.
  const std::shared_ptr<Core> hold = std::move(worker.hold);
  Lock lock(mutex_);
  --idle_tasks_;
  workers_late_ = false;
  if (Slot* const slot = find_work()) {
    slot->by_workers = true;
    help(lock, *slot, worker.hands);
  }
  worker.submitted = false;
  --tasks_;
  pump(lock);
  if (closing_) {
    changed_.notify_all();
  }
}

void Loader::Core::help(Lock& lock, Slot& slot, Hands& hands) noexcept {
  hands.current.store(no_index, std::memory_order_relaxed);
  hands.at = &slot;
  ++slot.busy;
  if (slot.state == SlotState::queued) {
    open_ticket(lock, slot, hands.order);
  }
  Range range;
  range.first = slot.claimed;
  range.count = std::min(slot.range, claimable(slot));
  if (range.count != 0) {
    slot.claimed += range.count;
    lock.unlock();
    fill(slot, hands, range);
    lock.lock();
    take_in(slot, range);
    to_fetch_.notify_all();
  }
  hands.at = nullptr;
  leave(lock, slot);
  if (range.error != nullptr) {  // of another sample than the first: foreign, so not with the mutex
    lock.unlock();
    range.error = nullptr;
    lock.lock();
  }
}

// Finds out which samples the batch has. Nobody else claims any before that is known.
void Loader::Core::open_ticket(Lock& lock, Slot& slot, OrderScratch& scratch) noexcept {
  slot.state = SlotState::opening;
  slot.since = domain_->clock().now();
  std::exception_ptr error;
  lock.unlock();
  try {
    const OwnerScope scope(owner_, HeapStay::with_scope);
    find_samples(slot, scratch);
  } catch (...) {
    error = load_error(slot, no_index, std::current_exception(), "order");
  }
  for (detail::Fetched& it : slot.fetched) {
    it = {};  // what it says is of another batch
  }
  lock.lock();
  slot.state = SlotState::open;
  slot.samples = slot.indices.size();
  slot.range = std::min(slot.range, std::max<std::size_t>(slot.samples, 1));
  slot.error = std::move(error);
  to_fetch_.notify_all();
}

// What a range came to. Of several that fail the first one counts, as it would for one thread.
void Loader::Core::take_in(Slot& slot, Range& range) noexcept {
  slot.done += range.count;
  if (range.error != nullptr && range.failed_at < slot.failed_at) {
    slot.failed_at = range.failed_at;
    std::swap(slot.error, range.error);
  }
  slot.left_out.insert(slot.left_out.end(), range.left_out.begin(), range.left_out.end());
}

bool Loader::Core::is_complete(const Slot& slot) const noexcept {
  return slot.done == slot.samples && slot.error == nullptr && is_current(slot);
}

// The last thread that is busy with a slot says what has become of it.
void Loader::Core::leave(Lock& lock, Slot& slot) noexcept {
  const bool is_last = slot.busy == 1;
  if (is_last && is_complete(slot) && (stage_ != nullptr || !slot.left_out.empty())) {
    lock.unlock();
    std::exception_ptr error = complete(slot);
    lock.lock();
    slot.error = std::move(error);
  }
  if (is_last && !is_current(slot)) {
    lock.unlock();
    clear(slot);
    lock.lock();
    slot.state = SlotState::free;
  } else if (is_last && slot.error != nullptr) {
    slot.state = SlotState::failed;
  } else if (is_last && is_complete(slot)) {
    slot.state = SlotState::ready;
  }
  --slot.busy;
  if (slot.state != SlotState::open) {
    changed_.notify_all();
  }
}

void Loader::Core::cancel_tickets(Lock& lock) noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.busy == 0 && slot.state != SlotState::leased && slot.state != SlotState::free) {
      ++slot.busy;
      leave(lock, slot);
    }
  }
}

bool Loader::Core::is_valid() const noexcept {
  std::uint32_t leased = 0;
  for (const Slot& slot : slots_) {
    leased += slot.hold != nullptr ? 1 : 0;
    if ((slot.hold != nullptr && slot.state != SlotState::leased) ||
        (slot.busy != 0 && is_current(slot) && slot.state != SlotState::open &&
         slot.state != SlotState::opening) ||
        slot.done > slot.claimed || slot.claimed > slot.samples) {
      return false;
    }
  }
  return leased <= slots_.size() && deliver_ <= next_ticket_ && next_ticket_ <= batches &&
         idle_tasks_ <= tasks_ && tasks_ <= workers_.size() + options.fetch_threads;
}

}  // namespace ebb::inline v0
