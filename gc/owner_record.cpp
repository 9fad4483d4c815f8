// SPDX-License-Identifier: Apache-2.0
// Counting: charges, releases and jobs of one owner. [gc.count]
#include "owner_record.h"

#include <ebb/alloc/fork.h>
#include <ebb/gc/domain.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

bool OwnerRecord::charge_remotely(std::uint64_t wanted, std::int64_t bytes) noexcept {
  if (detail::is_forked_child() && domain->in_child()) [[unlikely]] {
    return false;  // waking the closing thread needs a lock that it may have held
  }
  remote_live.fetch_add(1, std::memory_order_seq_cst);
  if (generation.load(std::memory_order_seq_cst) != wanted) {
    remote_live.fetch_sub(1, std::memory_order_seq_cst);
    wake();
    return false;
  }
  remote_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void OwnerRecord::add(std::int64_t bytes, std::uint64_t thread) noexcept {
  if (opener.load(std::memory_order_relaxed) == thread) {
    ++local_live;
    local_bytes += static_cast<std::uint64_t>(bytes);
    return;
  }
  remote_bytes.fetch_add(bytes, std::memory_order_relaxed);
  remote_live.fetch_add(1, std::memory_order_seq_cst);
}

void OwnerRecord::subtract_remotely(std::int64_t bytes) noexcept {
  remote_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  remote_live.fetch_sub(1, std::memory_order_seq_cst);
  wake();
}

void OwnerRecord::change_bytes(std::int64_t by, std::uint64_t thread) noexcept {
  if (opener.load(std::memory_order_relaxed) == thread) {
    local_bytes += static_cast<std::uint64_t>(by);
  } else {
    remote_bytes.fetch_add(by, std::memory_order_relaxed);
  }
}

bool OwnerRecord::add_pending(std::atomic<std::int64_t>& pending, std::uint64_t wanted) noexcept {
  pending.fetch_add(1, std::memory_order_seq_cst);
  if (generation.load(std::memory_order_seq_cst) != wanted) {
    end_pending(pending);
    return false;
  }
  return true;
}

void OwnerRecord::end_pending(std::atomic<std::int64_t>& pending) noexcept {
  pending.fetch_sub(1, std::memory_order_seq_cst);
  wake();
}

void OwnerRecord::add_note(detail::JobNote& note) noexcept {
  const std::lock_guard lock(mutex);
  note.next = notes_;
  if (notes_ != nullptr) {
    notes_->previous = &note;
  }
  notes_ = &note;
}

void OwnerRecord::remove_note(detail::JobNote& note) noexcept {
  const std::lock_guard lock(mutex);
  (note.previous != nullptr ? note.previous->next : notes_) = note.next;
  if (note.next != nullptr) {
    note.next->previous = note.previous;
  }
}

std::vector<JobPlace> OwnerRecord::job_places() {
  std::vector<JobPlace> places;
  const std::lock_guard lock(mutex);
  for (const detail::JobNote* note = notes_; note != nullptr; note = note->next) {
    const auto found = std::find_if(places.begin(), places.end(), [note](const JobPlace& p) {
      return p.place.is_same_as(note->place);
    });
    if (found == places.end()) {
      places.push_back({note->place, 1});
    } else {
      ++found->count;
    }
  }
  return places;
}

void OwnerRecord::wake() noexcept {
  if (waiting.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
    const std::lock_guard lock(mutex);
    changed.notify_all();
  }
}

void OwnerRecord::make_remote() noexcept {
  remote_live.fetch_add(std::exchange(local_live, 0), std::memory_order_seq_cst);
  remote_bytes.fetch_add(static_cast<std::int64_t>(std::exchange(local_bytes, 0)),
                         std::memory_order_relaxed);
  opener.store(no_thread, std::memory_order_relaxed);
}

std::uint64_t OwnerRecord::open(std::uint64_t thread, std::uint64_t new_iteration) noexcept {
  iteration = new_iteration;
  sequence = 0;
  remote_sequence.store(0, std::memory_order_relaxed);
  opener.store(thread, std::memory_order_relaxed);
  // Nobody else writes it while the record is closed. Release: whoever sees the odd generation sees
  // the fields above.
  const std::uint64_t opened = generation.load(std::memory_order_relaxed) + 1;
  generation.store(opened, std::memory_order_release);
  return opened;
}

void OwnerRecord::keep_domain_for_opener() noexcept {
  const std::lock_guard lock(mutex);
  if (!opener_ended_) {
    kept_domain_ = domain->weak_from_this().lock();
  }
}

std::shared_ptr<Domain> OwnerRecord::end_opener() noexcept {
  const std::lock_guard lock(mutex);
  opener_ended_ = true;
  return std::exchange(kept_domain_, nullptr);
}

std::shared_ptr<Domain> OwnerRecord::forget_opener() noexcept {
  const std::lock_guard lock(mutex);
  return std::exchange(kept_domain_, nullptr);
}

bool OwnerRecord::store_error(std::uint64_t wanted, const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex);
  const bool is_first = first_error_ == nullptr;
  if (is_first) {
    first_error_ = error;
    has_error.store(true, std::memory_order_seq_cst);
  }
  if (generation.load(std::memory_order_seq_cst) == wanted) {
    return true;
  }
  if (is_first) {
    first_error_ = nullptr;
    has_error.store(false, std::memory_order_relaxed);
  }
  return false;
}

void OwnerRecord::store_late_error(const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex);
  if (first_error_ == nullptr) {
    first_error_ = error;
    has_error.store(true, std::memory_order_seq_cst);
  }
}

std::exception_ptr OwnerRecord::take_error() noexcept {
  if (!has_error.load(std::memory_order_seq_cst)) {
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  has_error.store(false, std::memory_order_relaxed);
  return std::exchange(first_error_, nullptr);
}

}  // namespace ebb::inline v0
