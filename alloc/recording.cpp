// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include <new>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

// An iteration that allocates more hardly repeats, and would be planned for long.
constexpr std::size_t entries_most = std::size_t{1} << 16;

}  // namespace

void Recording::begin() noexcept {
  give_up();
  on_ = true;
}

void Recording::unmark() noexcept {
  for (HeapRecord* const record : alive_) {
    if (record != nullptr) {
      record->clear_mark();
    }
  }
}

void Recording::give_up() noexcept {
  unmark();
  entries_.clear();
  alive_.clear();
  freed_elsewhere_.clear();
  on_ = false;
}

void Recording::add(HeapRecord* record, const SequenceEntry& entry) noexcept {
  if (!on_) {
    return;
  }
  if (entries_.size() == entries_most) {
    return give_up();
  }
  try {
    entries_.push_back(entry);
    alive_.push_back(nullptr);
    if (freed_elsewhere_.capacity() < entries_.capacity()) {
      freed_elsewhere_.reserve(entries_.capacity());  // deaths are noted where nothing may fail
    }
  } catch (const std::bad_alloc&) {
    return give_up();
  }
  if (record != nullptr) {
    alive_.back() = record;
    record->set_mark(entries_.size() - 1);
  }
}

bool Recording::note_death(HeapRecord& record, bool elsewhere) noexcept {
  const std::size_t number = record.mark();
  if (number >= alive_.size() || alive_[number] != &record) {
    return false;
  }
  alive_[number] = nullptr;
  record.clear_mark();
  entries_[number].dies = now();
  if (elsewhere) {
    freed_elsewhere_.push_back(static_cast<std::uint32_t>(number));
  }
  return true;
}

void Recording::join() noexcept {
  for (const std::uint32_t number : freed_elsewhere_) {
    entries_[number].dies = now();
  }
  freed_elsewhere_.clear();
}

AllocationSequence Recording::end() noexcept {
  join();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (alive_[i] != nullptr) {
      entries_[i].dies = now();
      if (entries_[i].kind == AllocationKind::block) {
        entries_[i].kind = AllocationKind::outliving;
      }
    }
  }
  AllocationSequence sequence = std::move(entries_);
  give_up();
  return sequence;
}

}  // namespace ebb::inline v0::detail
