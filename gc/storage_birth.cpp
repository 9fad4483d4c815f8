// SPDX-License-Identifier: Apache-2.0
// What few storages need when they are made: an owner that has closed, memory that is short.
#include "storage_birth.h"

#include "deferred.h"

namespace ebb::inline v0::detail {
namespace {

void note_late(Domain& domain) noexcept {
  Domain::Impl& impl = domain.impl();
  impl.storages_late.fetch_add(1, std::memory_order_relaxed);
  if (!impl.late_logged.exchange(true, std::memory_order_relaxed)) {
    domain.log(LogLevel::warning,
               "a storage was made for an iteration that had already closed (a task or a bound "
               "function ran late): it is charged to the runtime; said once");
  }
}

}  // namespace

void follow_close(StorageCell& cell, OwnerRecord& record, std::uint64_t wanted,
                  std::uint64_t thread) noexcept {
  if (record.kind != OwnerKind::iteration ||
      record.generation.load(std::memory_order_seq_cst) == wanted) [[likely]] {
    return;
  }
  // The record is not opened again before its last count is gone.
  OwnerRecord& runtime = *record.domain->impl().long_lived;
  const std::int64_t bytes = signed_bytes(cell.bytes);
  runtime.add(bytes, thread);
  if (cell.owner.transfer_from(record, runtime)) {
    record.subtract(bytes, thread);
    note_late(*record.domain);
  } else {
    runtime.subtract(bytes, thread);  // adopted
  }
}

void Charge::charge_runtime(const char* function) {
  Domain& domain = *record_->domain;
  Domain::Impl& impl = domain.impl();
  record_ = impl.long_lived;
  if (!record_->charge(impl.long_lived_generation, bytes_, thread_)) {
    record_ = nullptr;
    impl.throw_unusable(function);
  }
  note_late(domain);
}

namespace {

// Not for a request of the host's that is made meanwhile.
bool ask_host(const Domain::Impl& domain, Bytes bytes, Device device) noexcept {
  Slot& s = slot();
  if (domain.options.on_out_of_memory == nullptr || s.asks_host) {
    return false;
  }
  s.asks_host = true;
  bool again = false;
  try {
    again = domain.options.on_out_of_memory(bytes, device);
  } catch (...) {  // as if it had freed nothing
  }
  slot().asks_host = false;
  return again;
}

}  // namespace

bool make_room(const OwnerRecord& record, Bytes bytes, Device device) noexcept {
  Slot& s = slot();
  if (s.defer_releases) {
    return false;
  }
  Heap* const heap = s.heap;
  const bool inherited = s.heap_inherited;
  s.heap_inherited = heap != nullptr;
  Domain::Impl& domain = record.domain->impl();
  const bool any = domain.deferred.run(nullptr) || ask_host(domain, bytes, device);
  if (s.heap == heap) {
    s.heap_inherited = inherited;
  }
  return any;
}

void note_unowned(const OwnerRecord& record) noexcept {
  if (!slot().owner && !fallback_owner()) [[unlikely]] {
    record.domain->impl().storages_unowned.fetch_add(1, std::memory_order_relaxed);
  }
}

void clear_marks(StorageCell& cell) noexcept {
  cell.flags.store(0, std::memory_order_relaxed);
  cell.name.store(nullptr, std::memory_order_relaxed);
  cell.adopted.store(0, std::memory_order_relaxed);
  cell.finalizers = nullptr;
}

}  // namespace ebb::inline v0::detail
