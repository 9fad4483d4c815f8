// SPDX-License-Identifier: Apache-2.0
// Replacing what a storage holds: resize and swap. The caller is alone with the storage, save for
// a close that scans for stragglers: the replace mutex keeps the two apart. [gc.storage]
#include "domain_impl.h"
#include "element_block.h"
#include "slot.h"
#include "storage_cell.h"

#include <ebb/alloc/check.h>
#include <ebb/gc/storage.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

namespace ebb::inline v0 {
namespace {

using detail::cell_of;
using detail::StorageCell;

OwnerRecord& owner_of(const StorageCell& cell) noexcept {
  return *cell.owner.record();
}

// Throws when somebody uses the bytes by their address.
void require_unheld(detail::StorageHead* head, const char* function) {
  EBB_REQUIRE(head->holders.load(std::memory_order_seq_cst) == 0, function,
              "the storage is held by ",
              std::string(cell_of(head).holder.load(std::memory_order_relaxed)));
}

// Throws unless the storage may be resized. Returns its owner.
const OwnerRecord& resizable(detail::StorageHead* head, const char* function) {
  EBB_REQUIRE(head != nullptr, function, "the storage is empty");
  EBB_REQUIRE(!head->has(detail::storage_read_only), function, "the storage is read-only");
  EBB_REQUIRE(head->device == cpu, function, "the storage is on ", to_string(head->device),
              ", not in host memory");
  require_unheld(head, function);
  const OwnerRecord& owner = owner_of(cell_of(head));
  owner.domain->impl().mark.require_own_process(function);
  EBB_REQUIRE(owner.kind != OwnerKind::loader, function,
              "the storage is a loader's, whose slots have one size");
  return owner;
}

// Puts fresh into the cell; what was there is released without the lock. Returns whether it did:
// not when a close has revoked the storage meanwhile.
bool replace(StorageCell& cell, DataPtr fresh, Bytes bytes) noexcept {
  Domain& domain = *owner_of(cell).domain;
  const std::lock_guard lock(domain.impl().replace_mutex);
  if (cell.has(detail::storage_revoked)) {
    return false;
  }
  std::swap(cell.own_by_ptr(), fresh);
  const std::int64_t by = detail::signed_bytes(bytes) - detail::signed_bytes(cell.bytes);
  cell.data = cell.ptr.get();
  cell.bytes = bytes;
  if (by < 0) {  // only then can an earlier view pass the end
    cell.set(detail::storage_replaced);
  }
  owner_of(cell).change_bytes(by, detail::this_thread_number());
  cell.change_adopted(domain.impl(), by);
  return true;
}

// All but what is the struct's own: whether it is tracked.
void swap_flags(StorageCell& a, StorageCell& b) noexcept {
  constexpr std::uint8_t own = detail::storage_tracked;
  const std::uint8_t of_a = a.flags.load(std::memory_order_relaxed);
  const std::uint8_t of_b = b.flags.load(std::memory_order_relaxed);
  const auto mixed = [](std::uint8_t mine, std::uint8_t others) {
    return static_cast<std::uint8_t>((mine & own) | (others & ~own) | detail::storage_replaced |
                                     detail::storage_marked);
  };
  a.flags.store(mixed(of_a, of_b), std::memory_order_relaxed);
  b.flags.store(mixed(of_b, of_a), std::memory_order_relaxed);
}

// The birth and the figures that reports show go along with the memory.
void swap_contents(StorageCell& a, StorageCell& b) noexcept {
  std::swap(a.data, b.data);
  std::swap(a.bytes, b.bytes);
  std::swap(a.device, b.device);
  swap_flags(a, b);
  std::swap(a.own_by_ptr(), b.own_by_ptr());
  std::swap(a.birth, b.birth);
  std::swap(a.phase, b.phase);
  std::swap(a.sequence, b.sequence);
  std::swap(a.iteration, b.iteration);
  std::swap(a.thread, b.thread);
  std::swap(a.finalizers, b.finalizers);
  a.name.store(b.name.exchange(a.name.load(std::memory_order_relaxed), std::memory_order_relaxed),
               std::memory_order_relaxed);
}

}  // namespace

void Storage::resize(Bytes bytes) {
  constexpr const char* function = "Storage::resize";
  const OwnerRecord& owner = resizable(head_, function);
  require_memory(function);
  EBB_REQUIRE(!has_elements(), function,
              "the storage holds constructed elements: use resize_elements(count)");
  const BlockRecord* const old = cell_of(head_).owned_block();
  const Align align = old != nullptr ? std::max(old->align, default_align_cpu) : default_align_cpu;
  DataPtr fresh = own_block(detail::allocate_for(owner, bytes, align, function));
  if (const std::size_t kept = std::min(bytes, head_->bytes).count(); kept != 0) {
    std::memcpy(fresh.get(), head_->data, kept);
  }
  if (!replace(cell_of(head_), std::move(fresh), bytes)) {
    fail_revoked(function);
  }
}

void Storage::resize_elements(std::size_t count) {
  constexpr const char* function = "Storage::resize_elements";
  const OwnerRecord& owner = resizable(head_, function);
  require_memory(function);
  EBB_REQUIRE(has_elements(), function, "the storage holds plain bytes: use resize(Bytes)");
  const detail::ElementBlock& old = *detail::element_block_of(cell_of(head_).ptr);
  const ElementOps& ops = *old.ops;
  const Bytes bytes = ops.size * count;
  DataPtr fresh = detail::make_element_ptr(owner, ops, count, head_->data,
                                           std::min(count, old.count), function);
  static_cast<void>(  // elements are not revoked
      replace(cell_of(head_), std::move(fresh), bytes));
}

// NOLINTNEXTLINE(bugprone-exception-escape): as declared
void Storage::swap(Storage& other) {
  constexpr const char* function = "Storage::swap";
  EBB_REQUIRE(head_ != nullptr && other.head_ != nullptr, function, "a storage is empty");
  if (is_same(other)) {
    return;
  }
  for (const Storage* storage :
       {static_cast<const Storage*>(this), static_cast<const Storage*>(&other)}) {
    // Their streams are known by the struct that a block came with.
    EBB_REQUIRE(storage->device() == cpu && !storage->is_pinned(), function, "a storage is ",
                storage->is_pinned() ? "pinned" : "on " + to_string(storage->device()),
                ": only those in the CPU's own memory are swapped");
  }
  require_unheld(head_, function);
  require_unheld(other.head_, function);
  require_memory(function);
  other.require_memory(function);
  StorageCell& a = cell_of(head_);
  StorageCell& b = cell_of(other.head_);
  Domain::Impl& impl = owner_of(a).domain->impl();
  impl.mark.require_own_process(function);
  const std::scoped_lock lock(impl.replace_mutex, impl.finalizer_mutex);
  EBB_REQUIRE(&owner_of(a) == &owner_of(b), function,
              "the storages have different owners: keep() or copy one of them first");
  EBB_REQUIRE(owner_of(a).kind != OwnerKind::loader, function, "the storages are a loader's slots");
  for (const Storage* storage : {this, &other}) {
    if (storage->revoked()) {  // since
      storage->fail_revoked(function);
    }
  }
  const std::int64_t by = detail::signed_bytes(b.bytes) - detail::signed_bytes(a.bytes);
  a.change_adopted(impl, by);
  b.change_adopted(impl, -by);
  swap_contents(a, b);
}

}  // namespace ebb::inline v0
