// SPDX-License-Identifier: Apache-2.0
// The consumer's side: epochs, waiting for a batch in order, leases. [load.slots]
#include "loader_core.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ebb::inline v0 {

namespace {

// How long a queued ticket waits for a worker before next() fills it itself.
constexpr Milliseconds patience{1};

}  // namespace

void Loader::Core::begin_epoch(std::uint64_t epoch) {
  require_usable("Loader::begin_epoch");
  const std::uint64_t from = restored && epoch == cursor_epoch ? cursor_seq : 0;
  restored = false;
  next_epoch = epoch + 1;
  cursor_epoch = epoch;
  cursor_seq = from;
  std::exception_ptr old_error;  // ends after the lock: exceptions are foreign code
  Lock lock(mutex_);
  cancel_tickets(lock);
  old_error = std::exchange(epoch_error_, nullptr);
  begun_ = true;
  begun_at_ = begun_at_.value_or(domain_->clock().now());
  epoch_ = epoch;
  order_ = order_of(epoch);
  next_ticket_ = from;
  deliver_ = from;
  pump(lock);
}

std::optional<Batch> Loader::Core::next() {
  require_usable("Loader::next");
  if (!begun_) {  // written by this thread only
    begin_epoch(next_epoch);
  }
  Lock lock(mutex_);
  if (epoch_error_ != nullptr) {
    const std::exception_ptr error = epoch_error_;
    lock.unlock();
    std::rethrow_exception(error);
  }
  if (deliver_ == batches) {
    return std::nullopt;
  }
  return lease(lock, wait_for_ready(lock));
}

Loader::Core::Slot& Loader::Core::wait_for_ready(Lock& lock) {
  Clock& clock = domain_->clock();
  const TimePoint from = clock.now();
  const TimePoint deadline = deadline_after(clock, options.deadline);
  const TimePoint take_over_at = workers_.empty() || workers_late_ ? from : from + patience;
  for (;;) {
    pump(lock);
    Slot* slot = find(deliver_);
    if (slot == nullptr && (slot = find_free()) != nullptr) {
      assign(*slot, deliver_);  // no workers, or the lease of this very batch failed
    }
    if (slot != nullptr && slot->state == SlotState::ready) {
      counts_.starved += clock.now() - from;
      return *slot;
    }
    if (slot != nullptr && slot->state == SlotState::failed) {
      throw_failed(lock, *slot);
    }
    const bool may_help = slot != nullptr && claimable(*slot) != 0;
    const TimePoint now = clock.now();
    if (may_help && now >= take_over_at) {
      workers_late_ = true;
      help(lock, *slot, mine_);
    } else if (now >= deadline) {
      throw_stalled(lock);
    } else {
      TimePoint until = may_help ? std::min(take_over_at, deadline) : deadline;
      if (slot == nullptr && is_copying()) {
        until = std::min(until, now + patience);  // nobody tells when a copy is over
      }
      clock.wait_until(changed_, lock, until);
    }
  }
}

bool Loader::Core::is_copying() const noexcept {
  return stage_ != nullptr && std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
           return slot.state == SlotState::free;
         });
}

Batch Loader::Core::lease(Lock& lock, Slot& slot) {
  slot.state = SlotState::leased;
  slot.hold = shared_from_this();
  lock.unlock();
  Batch batch;
  {
    // When this throws, give_back has freed the slot, and the next call fills the batch again.
    const OwnerScope scope(owner_, HeapStay::with_scope);
    batch.lease_ = Storage::wrap(owner_, DataPtr(slot.memory.data(), &slot, lease_ops, cpu),
                                 Bytes{layout_.slot_bytes}, birth_);
  }
  batch.lease_.set_read_only();
  if (stage_ != nullptr) {
    batch.on_device_ = std::move(slot.on_device);
    stage_->hand_over(batch.on_device_, slot.copied);
  }
  batch.layout_ = &layout_;
  batch.spots_ = slot.spots;
  batch.longest_ = slot.longest;
  batch.indices_ = slot.indices;
  batch.padding_ = static_cast<std::int64_t>(slot.padding);
  WeakStorage holders(batch.lease_);
  lock.lock();
  batch.epoch_ = slot.epoch;
  batch.seq_ = slot.seq;
  slot.lease = std::move(holders);
  ++deliver_;
  if (++counts_.delivered == 1) {
    counts_.first_batch = domain_->clock().now() - *begun_at_;
  }
  ++(slot.by_workers ? counts_.filled_by_workers : counts_.filled_inline);
  return batch;
}

void Loader::Core::give_back(void* context, void* /*data*/) noexcept {
  Slot& slot = *static_cast<Slot*>(context);
  Core& core = *slot.core;
  std::shared_ptr<Core> hold;  // goes last, perhaps with the core
  WeakStorage holders;
  {
    const std::lock_guard lock(core.mutex_);
    hold = std::move(slot.hold);
    holders = std::move(slot.lease);
    slot.state = SlotState::free;
  }
  core.changed_.notify_all();
}

void Loader::Core::throw_failed(Lock& lock, Slot& slot) {
  lock.unlock();
  // A failed slot is this thread's: nobody else touches it.
  const std::exception_ptr error = slot.error;
  clear(slot);
  lock.lock();
  slot.state = SlotState::free;
  epoch_error_ = error;
  lock.unlock();
  std::rethrow_exception(error);
}

}  // namespace ebb::inline v0
