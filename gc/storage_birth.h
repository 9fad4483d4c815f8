// SPDX-License-Identifier: Apache-2.0
// Charging a new storage to whom it belongs, and filling in its struct. Private to gc, for whoever
// makes storages. On the thread that makes one. [gc.count]
#pragma once

#include "domain_impl.h"
#include "slot.h"
#include "storage_cell.h"

#include <ebb/gc/owner.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ebb::inline v0::detail {

// After the storage's word names record, which the generation wanted was charged in: if that has
// closed meanwhile, the close may have looked before the word was there, so the storage goes on to
// the runtime here. Either this sees the end, or one of the close's scans sees the word.
void follow_close(StorageCell& cell, OwnerRecord& record, std::uint64_t wanted,
                  std::uint64_t thread) noexcept;

// For a request that was refused: runs deferred releases, or, where there are none, asks the host
// to free something. Returns whether to ask again. The slot's heap is in use meanwhile, so a
// finalizer that wants another one must not park it.
bool make_room(const OwnerRecord& record, Bytes bytes, Device device) noexcept;

// What take returns, when it is called again as long as it returns null and room is made.
template <class Take>
Cell* take_with_room(const OwnerRecord& record, Bytes bytes, Device device, Take take) {
  constexpr int tries_most = 100;  // a host that always says that it has freed something
  Cell* taken = take();
  for (int i = 0; i < tries_most && taken == nullptr && make_room(record, bytes, device); ++i) {
    taken = take();
  }
  return taken;
}

// Counts a storage that is made on a thread that has no owner.
void note_unowned(const OwnerRecord& record) noexcept;

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
  [[gnu::cold]] void charge_runtime(const char* function);

  OwnerRecord* record_;
  std::uint64_t generation_;
  std::int64_t bytes_;
  std::uint64_t thread_;
};

// Clears what the last storage of a cell was marked with.
[[gnu::cold]] void clear_marks(StorageCell& cell) noexcept;

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

}  // namespace ebb::inline v0::detail
