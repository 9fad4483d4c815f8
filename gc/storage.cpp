// SPDX-License-Identifier: Apache-2.0
// Making, charging and transferring storages. [gc.count] [gc.storage]
#include "deferred.h"
#include "domain_impl.h"
#include "slot.h"
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

void note_late(Domain& domain) noexcept {
  Domain::Impl& impl = domain.impl();
  impl.storages_late.fetch_add(1, std::memory_order_relaxed);
  if (!impl.late_logged.exchange(true, std::memory_order_relaxed)) {
    domain.log(LogLevel::warning,
               "a storage was made for an iteration that had already closed (a task or a bound "
               "function ran late): it is charged to the runtime; said once");
  }
}

// After the storage's word names record, which the generation wanted was charged in: if that has
// closed meanwhile, the close may have looked before the word was there, so the storage goes on to
// the runtime here. Either this sees the end, or one of the close's scans sees the word.
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

// What a storage is born with.
struct Maker {
  OwnerRecord& record;
  Heap& home;
  std::uint64_t thread;
  std::uint64_t sequence;  // its number in the record
  const char* phase;
};

// One storage charged to whom it belongs: the wanted owner, or the runtime when that has closed.
// Undone unless commit() is called.
class Charge {
 public:
  [[gnu::always_inline]] Charge(const Owner& owner, Bytes bytes, const char* function)
      : record_(owner.record()),
        generation_(owner.generation()),
        bytes_(signed_bytes(bytes)),
        thread_(this_thread_number()) {
    if (record_ == nullptr) {
      throw std::invalid_argument("[" + std::string(function) + "] the owner is empty");
    }
    if (!record_->charge(owner.generation(), bytes_, thread_)) {
      charge_runtime(function);
    }
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  Charge(Charge&&) = delete;
  Charge& operator=(Charge&&) = delete;
  ~Charge() {
    if (record_ != nullptr) {
      record_->subtract(bytes_, thread_);
    }
  }

  OwnerRecord& record() const noexcept { return *record_; }
  // Of the storage that is charged; once.
  Maker maker(Heap& home) const noexcept {
    const bool mine = record_->opener.load(std::memory_order_relaxed) == thread_;
    return {*record_, home, thread_,
            mine ? record_->next_sequence()
                 : record_->remote_sequence.fetch_add(1, std::memory_order_relaxed),
            slot().phase};
  }
  // cell names the record now. This thread's own iteration cannot have closed meanwhile.
  void commit(StorageCell& cell) noexcept {
    if (record_->opener.load(std::memory_order_relaxed) != thread_) [[unlikely]] {
      follow_close(cell, *record_, generation_, thread_);
    }
    record_ = nullptr;
  }

 private:
  void charge_runtime(const char* function) {
    Domain& domain = *record_->domain;
    Domain::Impl& impl = domain.impl();
    record_ = impl.long_lived;
    if (!record_->charge(impl.long_lived_generation, bytes_, thread_)) {
      record_ = nullptr;
      impl.throw_unusable(function);
    }
    note_late(domain);
  }

  OwnerRecord* record_;
  std::uint64_t generation_;
  std::int64_t bytes_;
  std::uint64_t thread_;
};

// Every heap is on the host as yet: its memory must not pass for a device's.
[[noreturn, gnu::cold]] void refuse_device(Device device) {
  throw std::invalid_argument("[Storage::make] there is no memory on " + to_string(device) +
                              " yet: wrap memory of your own");
}

// Runs deferred releases for a request that was refused. Returns whether there were any. The slot's
// heap is in use meanwhile, so a finalizer that wants another one must not park it.
bool make_room(const OwnerRecord& record) noexcept {
  Slot& s = slot();
  if (s.defer_releases) {
    return false;
  }
  Heap* const heap = s.heap;
  const bool inherited = s.heap_inherited;
  s.heap_inherited = heap != nullptr;
  const bool any = record.domain->impl().deferred.run(nullptr);
  if (s.heap == heap) {
    s.heap_inherited = inherited;
  }
  return any;
}

// Whether owner is the iteration that this thread has open, on the host: what most storages are
// made for.
[[gnu::always_inline]] inline bool is_own(const Owner& owner, const Slot& s) noexcept {
  return s.own != nullptr && owner.record() == s.own &&
         s.own->generation.load(std::memory_order_relaxed) == owner.generation() &&
         owner.stream().device == cpu;
}

void note_unowned(const OwnerRecord& record) noexcept {
  if (!slot().owner && !fallback_owner()) [[unlikely]] {
    record.domain->impl().storages_unowned.fetch_add(1, std::memory_order_relaxed);
  }
}

// Clears what the last storage of a cell was marked with.
[[gnu::cold, gnu::noinline]] void clear_marks(StorageCell& cell) noexcept {
  cell.flags.store(0, std::memory_order_relaxed);
  cell.name.store(nullptr, std::memory_order_relaxed);
  cell.adopted.store(0, std::memory_order_relaxed);
  cell.finalizers = nullptr;
}

// Fills a fresh cell, which has the bytes already, and publishes it. Writes are what making a
// storage takes longest for.
[[gnu::always_inline]] inline void publish(StorageCell& cell, void* data, Bytes bytes,
                                           Device device, const Birth& birth,
                                           const Maker& maker) noexcept {
  if (cell.flags.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    clear_marks(cell);
  }
  std::uint64_t counts = StorageHead::only_one;
  if (maker.record.tracks) [[unlikely]] {
    counts += StorageHead::one_weak;
    cell.flags.store(storage_tracked, std::memory_order_relaxed);
  }
  cell.counts.store(counts, std::memory_order_relaxed);
  cell.data = data;
  cell.bytes = bytes;
  cell.device = device;
  cell.home = &maker.home;
  cell.thread = maker.thread;
  cell.sequence = maker.sequence;
  cell.iteration = maker.record.iteration;
  cell.phase = maker.phase;
  // Part by part: they were written a moment ago in pieces of other sizes, for which a wide load
  // would wait.
  cell.birth.place.file = birth.place.file;
  cell.birth.place.line = birth.place.line;
  cell.birth.note.format = birth.note.format;
  if (birth.note.format != nullptr) {
    cell.birth.note.bytes = birth.note.bytes;
  }
  cell.owner.set(maker.record);
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
  if (!detail::make_room(*owner.record())) {
    detail::fail_for_memory("Storage::make", *owner.record(), *detail::slot().heap, bytes);
  }
  return make_slowly(owner, bytes, align, birth);
}

Storage Storage::make_slowly(const Owner& owner, Bytes bytes, Align align, const Birth& birth) {
  if (owner.stream().device != cpu) [[unlikely]] {
    detail::refuse_device(owner.stream().device);
  }
  detail::Charge charge(owner, bytes, "Storage::make");
  detail::HeapLease lease(charge.record());
  Heap& heap = lease.heap();
  const auto take = [&] {
    return lease.take_cell_with_block(bytes, align, owner.stream(), birth.place);
  };
  Cell* taken = take();
  if (taken == nullptr && detail::make_room(charge.record())) {
    taken = take();
  }
  if (taken == nullptr) {
    detail::fail_for_memory("Storage::make", charge.record(), heap, bytes);
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
    detail::fail_for_memory("Storage::wrap", charge.record(), lease.heap(), cell_bytes);
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
