// SPDX-License-Identifier: Apache-2.0
// Moving stragglers to the runtime's ownership, and giving up their memory where the policy says
// so. [gc.policy]
#include "deferred.h"
#include "scan.h"
#include "slot.h"
#include "stragglers.h"

#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace ebb::inline v0::detail {
namespace {

// How often the scan is repeated for storages that are just being made or released by another
// thread; after that the record rests until they are done. Who makes one looks for the end of the
// generation itself when it is there.
constexpr int adoption_rounds = 200;

// Moves one storage over. False when it died or was transferred meanwhile.
bool adopt(StorageCell& cell, OwnerRecord& record, std::uint64_t thread) noexcept {
  Domain::Impl& impl = record.domain->impl();
  OwnerRecord& runtime = *impl.long_lived;
  const std::int64_t bytes = signed_bytes(cell.bytes);
  // First the new count, then the word, then the old count: no reader sees too little.
  runtime.add(bytes, thread);
  impl.count_adopted(bytes);
  cell.set(storage_marked);
  cell.adopted.store(bytes + 1, std::memory_order_release);
  if (cell.owner.transfer_from(record, runtime)) {
    record.subtract(bytes, thread);
    return true;
  }
  runtime.subtract(bytes, thread);
  cell.uncount_adopted(impl);
  return false;
}

// Drops a strong reference; a release that has become ours is put on the list, since finalizers are
// not to run within a scan.
void drop(StorageCell& cell, Cell*& to_release) noexcept {
  const std::uint64_t before =
      cell.counts.fetch_sub(StorageHead::one_strong, std::memory_order_acq_rel);
  if (StorageHead::strong_in(before) == 1) {
    cell.next = std::exchange(to_release, &cell);
  }
}

// A tracked storage's own weak reference keeps its holders from assuming that they are the last, so
// that it may be retained here. Gives the memory up, and returns how many bytes of pages went;
// nothing for what cannot be revoked: strings, foreign memory, what somebody holds by address. With
// replace_mutex held, which keeps resize and swap away, and who finds the flag until it is known
// whether it stays.
std::optional<Bytes> revoke(StorageCell& cell, Domain::Impl& impl, Cell*& to_release) noexcept {
  if (!cell.has(storage_tracked) || cell.has(storage_elements | storage_revoked) ||
      cell.device != cpu || !cell.try_retain()) {
    return std::nullopt;
  }
  std::optional<Bytes> gone;
  cell.flags.fetch_or(storage_revoked, std::memory_order_seq_cst);
  BlockRecord* const block = cell.owned_block();
  // Pinned memory is on the CPU too, but a device may still copy from it.
  if (block != nullptr && block->stream.device == cpu &&
      cell.holders.load(std::memory_order_seq_cst) == 0) {
    gone = block->top->try_revoke(block->block(block->data));
  }
  if (gone.has_value()) {
    cell.change_adopted(impl, -signed_bytes(*gone));
  } else {
    cell.flags.fetch_and(static_cast<std::uint8_t>(~storage_revoked), std::memory_order_seq_cst);
  }
  drop(cell, to_release);
  return gone;
}

}  // namespace

Adopted adopt_stragglers(OwnerRecord& record, Policy policy) noexcept {
  Domain::Impl& impl = record.domain->impl();
  const std::uint64_t thread = this_thread_number();
  Adopted adopted;
  Cell* to_release = nullptr;
  {
    const std::lock_guard guard(impl.replace_mutex);
    for_each_owned(record, [&](StorageCell& cell) {
      if (!adopt(cell, record, thread)) {
        return;
      }
      ++adopted.count;
      adopted.bytes += cell.bytes;
      if (policy != Policy::revoke) {
        return;
      }
      if (const std::optional<Bytes> gone = revoke(cell, impl, to_release)) {
        ++adopted.revoked_count;
        adopted.revoked_bytes += *gone;
      }
    });
  }
  release_all(to_release);
  return adopted;
}

Adopted adopt_all(OwnerRecord& record, Policy policy) noexcept {
  Adopted all;
  for (int round = 0; round < adoption_rounds && record.live() != 0; ++round) {
    const Adopted adopted = adopt_stragglers(record, policy);
    all.count += adopted.count;
    all.bytes += adopted.bytes;
    all.revoked_count += adopted.revoked_count;
    all.revoked_bytes += adopted.revoked_bytes;
    if (record.live() != 0) {
      std::this_thread::yield();
    }
  }
  record.pool.begin_cell_epoch();
  return all;
}

}  // namespace ebb::inline v0::detail
