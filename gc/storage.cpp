// SPDX-License-Identifier: Apache-2.0
// Making, charging and transferring storages. [gc.count] [gc.storage]
#include "domain_impl.h"
#include "slot.h"
#include "storage_birth.h"
#include "storage_cell.h"
#include "stragglers.h"

#include <ebb/gc/error.h>
#include <ebb/gc/storage.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace ebb::inline v0 {
namespace detail {
namespace {

Domain::Impl& owner_impl(const StorageCell& cell) noexcept {
  return cell.owner.record()->domain->impl();
}

// Whether owner is the iteration that this thread has open, on the host: what most storages are
// made for.
[[gnu::always_inline]] inline bool is_own(const Owner& owner, const Slot& s) noexcept {
  return s.own != nullptr && owner.record() == s.own &&
         s.own->generation.load(std::memory_order_relaxed) == owner.generation() &&
         owner.stream().device == cpu;
}

// Gives a storage that its caller holds the weak reference that scans ask for. The caller's strong
// one keeps all others from assuming meanwhile that they are the last.
void track(StorageCell& cell) noexcept {
  cell.counts.fetch_add(StorageHead::one_weak, std::memory_order_relaxed);
  if ((cell.flags.fetch_or(storage_tracked, std::memory_order_relaxed) & storage_tracked) != 0) {
    cell.counts.fetch_sub(StorageHead::one_weak, std::memory_order_relaxed);
  }
}

}  // namespace

void StorageHead::set(StorageFlag flag) noexcept {
  flags.fetch_or(flag, std::memory_order_relaxed);
}

bool StorageHead::try_retain() noexcept {
  std::uint64_t now = counts.load(std::memory_order_relaxed);
  while (strong_in(now) != 0) {
    // Acquire: pairs with the release of earlier holders' writes through their handles.
    if (counts.compare_exchange_weak(now, now + one_strong, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

}  // namespace detail

Storage Storage::make(const Owner& owner, Bytes bytes, Align align, const Birth& birth) {
  const detail::Slot& s = detail::kept_slot();
  if (!detail::is_own(owner, s)) [[unlikely]] {
    return make_slowly(owner, bytes, align, birth);
  }
  Cell* const taken =
      detail::take_cell_with_block(s.replay, *s.heap, bytes, align, owner.stream(), birth.place);
  if (taken == nullptr) [[unlikely]] {
    return make_after_refusal(owner, bytes, align, birth);
  }
  OwnerRecord& record = *s.own;
  record.charge_own(detail::signed_bytes(bytes));
  const std::uint64_t sequence = record.next_sequence();
  detail::StorageCell& cell = detail::cell_of(*taken);
  detail::publish(cell, cell.block->data, bytes, cpu, birth,
                  {record, *s.heap, s.thread, sequence, s.phase});
  return Storage(&cell);
}

Storage Storage::make_after_refusal(const Owner& owner, Bytes bytes, Align align,
                                    const Birth& birth) {
  if (!detail::make_room(*owner.record(), bytes, cpu)) {
    detail::fail_for_memory({"Storage::make", bytes, birth.place}, *owner.record(),
                            *detail::slot().heap);
  }
  return make_slowly(owner, bytes, align, birth);
}

Storage Storage::make_slowly(const Owner& owner, Bytes bytes, Align align, const Birth& birth) {
  if (owner.stream().device != cpu) [[unlikely]] {
    return make_on_device(owner, bytes, align, birth);
  }
  detail::Charge charge(owner, bytes, "Storage::make");
  detail::HeapLease lease(charge.record());
  Heap& heap = lease.heap();
  Cell* const taken = detail::take_with_room(charge.record(), bytes, cpu, [&] {
    return lease.take_cell_with_block(bytes, align, owner.stream(), birth.place);
  });
  if (taken == nullptr) {
    detail::fail_for_memory({"Storage::make", bytes, birth.place}, charge.record(), heap);
  }
  detail::StorageCell& cell = detail::cell_of(*taken);
  const BlockRecord& block = *cell.block;
  detail::note_unowned(charge.record());
  detail::publish(cell, block.data, bytes, block.stream.device, birth, charge.maker(heap));
  charge.commit(cell);
  return Storage(&cell);
}

Storage Storage::wrap(const Owner& owner, DataPtr data, Bytes bytes, const Birth& birth) {
  // More than any address space has; so that the sums of reports stay in range.
  if (bytes >= Bytes{std::size_t{1} << 56}) {
    throw std::invalid_argument("[Storage::wrap] no memory has " + std::to_string(bytes.count()) +
                                " bytes");
  }
  detail::Charge charge(owner, bytes, "Storage::wrap");
  const detail::HeapLease lease(charge.record());
  auto* const cell =
      static_cast<detail::StorageCell*>(static_cast<void*>(lease.heap().take_cell()));
  if (cell == nullptr) {
    detail::fail_for_memory({"Storage::wrap", cell_bytes, birth.place}, charge.record(),
                            lease.heap());
  }
  detail::note_unowned(charge.record());
  std::construct_at(&cell->ptr, std::move(data));  // over one that holds nothing
  detail::publish(*cell, cell->ptr.get(), bytes, cell->ptr.device(), birth,
                  charge.maker(lease.heap()));
  charge.commit(*cell);
  return Storage(cell);
}

void Storage::set_name(const char* name) noexcept {
  detail::StorageCell& cell = detail::cell_of(head_);
  cell.set(detail::storage_marked);
  cell.name.store(name, std::memory_order_relaxed);
}

void Storage::add_finalizer(void (*finalizer)(void* context) noexcept, void* context) {
  detail::StorageCell& cell = detail::cell_of(head_);
  detail::owner_impl(cell).mark.require_own_process("Storage::add_finalizer");
  auto fresh = std::make_unique<detail::Finalizer>(detail::Finalizer{finalizer, context, nullptr});
  cell.set(detail::storage_marked);
  const std::lock_guard lock(detail::owner_impl(cell).finalizer_mutex);
  detail::Finalizer** end = &cell.finalizers;
  while (*end != nullptr) {
    if ((*end)->call == finalizer && (*end)->context == context) {
      return;
    }
    end = &(*end)->next;
  }
  *end = fresh.release();
}

void Storage::transfer(const Owner& owner) noexcept {
  detail::StorageCell& cell = detail::cell_of(head_);
  Domain& domain = *owner.record()->domain;
  if (domain.in_child()) {
    return;
  }
  const std::uint64_t thread = detail::this_thread_number();
  const std::int64_t bytes = detail::signed_bytes(cell.bytes);
  OwnerRecord* target = owner.record();
  if (!target->charge(owner.generation(), bytes, thread)) {
    target = domain.impl().long_lived;
    target->add(bytes, thread);
  } else if (target->tracks) {
    detail::track(cell);
  }
  cell.set(detail::storage_moved);
  target->has_immigrants.store(true, std::memory_order_relaxed);
  // The caller holds a reference, so the storage cannot die: only other transfers race.
  OwnerRecord& old = cell.owner.transfer(*target);
  cell.uncount_adopted(domain.impl());
  old.subtract(bytes, thread);
  detail::follow_close(cell, *target, owner.generation(), thread);
}

void Storage::check_revoked(const char* function) const {
  Domain::Impl& domain = detail::owner_impl(detail::cell_of(head_));
  bool stays = true;
  if (!domain.in_child()) {  // where a thread of the parent may have held the lock
    const std::lock_guard lock(domain.replace_mutex);
    stays = revoked();
  }
  if (stays) {
    fail_revoked(function);
  }
}

void Storage::fail_revoked(const char* function) const {
  const detail::StorageCell& cell = detail::cell_of(head_);
  throw RevokedError("[" + std::string(function) + "] the memory of the storage made at " +
                     cell.birth.place.file + ":" + std::to_string(cell.birth.place.line) +
                     " was given up when its iteration " + std::to_string(cell.iteration) +
                     " closed (policy revoke): keep() what is to outlive an iteration");
}

StorageHolder::StorageHolder(Storage storage, const char* who, const char* function)
    : storage_(std::move(storage)) {
  detail::StorageHead& head = *storage_.head_;
  detail::cell_of(&head).holder.store(who, std::memory_order_relaxed);
  head.holders.fetch_add(1, std::memory_order_seq_cst);
  if ((head.flags.load(std::memory_order_seq_cst) & detail::storage_revoked) != 0) {
    try {
      storage_.check_revoked(function);
    } catch (...) {
      head.holders.fetch_sub(1, std::memory_order_relaxed);
      throw;
    }
  }
}

StorageHolder& StorageHolder::operator=(StorageHolder&& other) noexcept {
  release();
  storage_ = std::move(other.storage_);
  return *this;
}

void StorageHolder::release() noexcept {
  if (storage_) {
    storage_.head_->holders.fetch_sub(1, std::memory_order_relaxed);
    storage_.reset();
  }
}

OwnerKind Storage::owner_kind() const noexcept {
  return owner_record()->kind;
}

const OwnerRecord* Storage::owner_record() const noexcept {
  return detail::cell_of(head_).owner.record();
}

WeakStorage::~WeakStorage() {
  if (head_ != nullptr) {
    detail::storage_drop_weak(head_);
  }
}

Storage WeakStorage::lock() const noexcept {
  if (head_ == nullptr) {
    return {};
  }
  return head_->try_retain() ? Storage(head_) : Storage();
}

}  // namespace ebb::inline v0
