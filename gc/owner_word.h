// SPDX-License-Identifier: Apache-2.0
// Who a storage is charged to, in one atomic word, with the readers that keep its cell from being
// used again. Private to gc. Any thread. [gc.count]
#pragma once

#include "owner_record.h"

#include <atomic>
#include <cstdint>

namespace ebb::inline v0::detail {

// The address of the record, with the number of pins in its low bits; no record: dead, or never
// alive. Set when a storage is made, changed by transfers (compare and exchange), cleared by the
// last release. Whoever holds a pin, or the storage itself, may read the cell's plain fields. A
// dead cell is used again by whoever removes the last pin, or by the release when there is none.
class OwnerWord {
 public:
  // Acquire: pairs with set().
  OwnerRecord* record() const noexcept { return record_in(word_.load(std::memory_order_acquire)); }

  // Release: whoever finds the record sees the fields that were written before.
  void set(OwnerRecord& record) noexcept { word_.store(number(record), std::memory_order_release); }

  // Adds a pin if the storage is alive and, unless wanted is null, charged to wanted.
  bool pin(const OwnerRecord* wanted) noexcept {
    std::uintptr_t word = word_.load(std::memory_order_relaxed);
    while (record_in(word) != nullptr && (wanted == nullptr || record_in(word) == wanted)) {
      // All pins taken: the other scans are short, and the storage may die meanwhile.
      const bool room = (word & pins) != pins;
      if (room && word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
        return true;
      }
      if (!room) {
        word = word_.load(std::memory_order_relaxed);
      }
    }
    return false;
  }
  // Returns whether the cell is free now: the caller was its last user.
  bool unpin() noexcept { return word_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  // Charges to, and returns whom it was charged to before. For a storage that lives. Acquire and
  // release: a transfer's count is seen by the release that undoes it.
  OwnerRecord& transfer(OwnerRecord& to) noexcept {
    std::uintptr_t word = word_.load(std::memory_order_acquire);
    while (
        !word_.compare_exchange_weak(word, number(to) | (word & pins), std::memory_order_acq_rel)) {
    }
    return *record_in(word);
  }
  // The same if it is still charged to from: false when it has died or was transferred.
  bool transfer_from(const OwnerRecord& from, OwnerRecord& to) noexcept {
    std::uintptr_t word = word_.load(std::memory_order_acquire);
    while (record_in(word) == &from) {
      if (word_.compare_exchange_weak(word, number(to) | (word & pins),
                                      std::memory_order_acq_rel)) {
        return true;
      }
    }
    return false;
  }

  // The last release: nobody is charged any more. Returns who was; pinned says that the caller now
  // holds a pin, because others do, and has to unpin().
  OwnerRecord& bury(bool& pinned) noexcept {
    std::uintptr_t word = word_.load(std::memory_order_relaxed);
    while (true) {
      pinned = (word & pins) != 0;
      const std::uintptr_t left = (word & pins) + (pinned ? 1 : 0);
      if (left > pins) {  // all taken: the scans are short
        word = word_.load(std::memory_order_relaxed);
      } else if (word_.compare_exchange_weak(word, left, std::memory_order_acq_rel,
                                             std::memory_order_relaxed)) {
        return *record_in(word);
      }
    }
  }

  // The same, if record is charged and nobody has pinned it. Returns whether it is buried.
  bool bury_unpinned(OwnerRecord& record) noexcept {
    std::uintptr_t word = number(record);
    return word_.compare_exchange_strong(word, 0, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t pins = 63;
  static_assert(alignof(OwnerRecord) > pins);

  static std::uintptr_t number(const OwnerRecord& record) noexcept {
    return reinterpret_cast<std::uintptr_t>(&record);
  }
  static OwnerRecord* record_in(std::uintptr_t word) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the word was made from it
    return reinterpret_cast<OwnerRecord*>(word & ~pins);
  }

  std::atomic<std::uintptr_t> word_{0};
};

}  // namespace ebb::inline v0::detail
