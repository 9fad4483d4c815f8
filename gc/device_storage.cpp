// SPDX-License-Identifier: Apache-2.0
// Storages on devices, and in pinned host memory. [gc.owner] [rt.stream]
#include "device_heaps.h"
#include "device_pools.h"
#include "storage_birth.h"
#include "stragglers.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/error.h>
#include <ebb/gc/storage.h>

#include <string>

namespace ebb::inline v0 {
namespace detail {
namespace {

// A cell with a block of a device's pool.
struct Request {
  Bytes bytes;
  Align align;
  Stream stream;
  const Place& place;
};

// The replay of what this thread makes on devices; null outside of plans. Pinned memory has none:
// a replay orders streams, and the host, which writes it, is in no stream's order.
Replay* device_replay(const DevicePool& pool, const DeviceHeapLease& lease) noexcept {
  const Slot& s = slot();
  const bool follows = s.replay != nullptr && !pool.is_pinned() && !lease.is_temporary();
  return follows ? s.owner.record()->devices->replay() : nullptr;
}

Cell& take_or_fail(const DeviceContext& context, const DevicePool& pool,
                   const DeviceHeapLease& lease, const OwnerRecord& record, const Request& wanted) {
  const Device device = pool.is_pinned() ? cpu : wanted.stream.device;
  Cell* const taken = take_with_room(record, wanted.bytes, device, [&] {
    return take_cell_with_block(device_replay(pool, lease), lease.heap(), wanted.bytes,
                                wanted.align, wanted.stream, wanted.place);
  });
  if (taken == nullptr && context.is_capturing()) {
    throw DeviceError("Storage::make", 0, to_string(wanted.stream.device),
                      "while a graph is captured no pages are mapped, and what is to be made at " +
                          std::string(wanted.place.file) + ":" + std::to_string(wanted.place.line) +
                          " needs some: a captured step makes what it made before");
  }
  if (taken == nullptr) {
    fail_for_memory({"Storage::make", wanted.bytes, wanted.place, pool.size()},
                    record.domain->impl(), *pool.made(), lease.heap());
  }
  return *taken;
}

}  // namespace
}  // namespace detail

void Domain::Impl::note_use(const detail::DeviceMemory& device, Stream stream) noexcept {
  const OwnerRecord* const record = Owner::current_or_none().record();
  if (record != nullptr && record->domain == &domain && record->devices != nullptr) {
    record->devices->note(device, stream);
  }
}

Storage Storage::make_on_device(const Owner& owner, Bytes bytes, Align align, const Birth& birth) {
  return make_in(owner, bytes, align, birth, false);
}

Storage Storage::make_pinned(const Owner& owner, Bytes bytes, Align align, const Birth& birth) {
  return make_in(owner, bytes, align, birth, true);
}

Storage Storage::make_in(const Owner& owner, Bytes bytes, Align align, const Birth& birth,
                         bool pinned) {
  constexpr const char* function = "Storage::make";
  detail::Charge charge(owner, bytes, function);
  OwnerRecord& record = charge.record();
  const Stream stream = owner.stream();
  detail::DeviceMemory& device = record.domain->impl().require_device(stream.device, function);
  device.context().require(stream, function);
  device.context().require_alive(function);
  EBB_REQUIRE(!pinned || !device.context().is_capturing(), function,
              "no pinned memory is made while a graph is captured, which would use it when it is "
              "somebody else's: make it before, and copy from and to it");
  detail::DevicePool& pool = pinned ? device.pinned : device.memory;
  const detail::DeviceHeapLease lease(pool, *record.domain);
  const detail::Request wanted{bytes, align, pool.stream_for(stream), birth.place};
  detail::StorageCell& cell =
      detail::cell_of(detail::take_or_fail(device.context(), pool, lease, record, wanted));
  detail::note_unowned(record);
  if (record.devices != nullptr && !pool.is_pinned()) {
    record.devices->note(device, stream);
    record.devices->note_made();
  }
  detail::publish(cell, cell.block->data, bytes, pinned ? cpu : stream.device, birth,
                  charge.maker(lease.heap()));
  charge.commit(cell);
  return Storage(&cell);
}

void Storage::used_on(Stream stream) const {
  constexpr const char* function = "Storage::used_on";
  detail::StorageCell& cell = detail::cell_of(head_);
  Domain::Impl& domain = cell.owner.record()->domain->impl();
  if (stream.device == cpu || domain.in_child() || (head_->device == cpu && !is_pinned())) {
    return;  // the CPU's own memory is whoever's it is to keep until then
  }
  detail::DeviceMemory& device = domain.require_device(stream.device, function);
  device.context().require(stream, function);
  domain.note_use(device, stream);
  BlockRecord* const block = cell.block;
  if (block == nullptr || block->stream == stream) {
    return;  // as foreign memory is
  }
  EBB_REQUIRE(block->stream.device == stream.device, function, "the storage is of ",
              to_string(block->stream.device), ", and the stream is on ", to_string(stream.device));
  cell.home->note_use(*block, stream);
}

Domain& Storage::domain() const noexcept {
  return *detail::cell_of(head_).owner.record()->domain;
}

Stream Storage::stream() const noexcept {
  const BlockRecord* const block = detail::cell_of(head_).owned_block();
  return block != nullptr && head_->device != cpu ? block->stream : Stream{head_->device};
}

bool Storage::is_pinned() const noexcept {
  const BlockRecord* const block = detail::cell_of(head_).owned_block();
  return block != nullptr && head_->device == cpu && block->stream.device != cpu;
}

}  // namespace ebb::inline v0
