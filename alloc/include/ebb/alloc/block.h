// SPDX-License-Identifier: Apache-2.0
// One range of bytes handed out by a resource, and its record, which lives outside the bytes.
// Used by resources and storages. A block belongs to whoever holds it: not shared.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/data_ptr.h>
#include <ebb/alloc/stream.h>

#include <cstdint>

namespace ebb::inline v0 {

// Returns the alignment that blocks have on device unless another is asked for.
constexpr Align default_align(Device device) {
  return device.kind == DeviceKind::cpu ? default_align_cpu : default_align_cuda;
}

class Resource;
struct BlockRecord;

// Uninitialised bytes. bytes is what was asked for; the resource may have set aside more.
// A block that could not be had is false and has no record.
struct Block {
  void* data = nullptr;
  Bytes bytes;
  Align align = default_align_cpu;
  Stream stream;
  BlockRecord* record = nullptr;

  explicit operator bool() const { return record != nullptr; }
};

// The part of a block's record that every resource shares. Resources derive their own record from
// it. Owned by the resource that made it; of a live block, top and bytes are the view of the
// outermost resource, and written by whoever holds the block: an adaptor puts its own there when it
// hands the block out, and its upstream's before it gives the block down. data and note are the
// making resource's own, so that it may read them at any time.
struct BlockRecord {
  void* data = nullptr;  // where the making resource put the range; a block may begin further up
  Bytes bytes;
  Align align = default_align_cpu;
  Stream stream;
  std::uint32_t note = 0;
  // The resource that the block is given back to; null once it is, save for a cell's planned block,
  // which its heap tells from a freed one by note.
  Resource* top = nullptr;

  // The block as the outermost resource handed it out; at is where it did.
  Block block(void* at) { return {at, bytes, align, stream, this}; }
};

namespace detail {
// The operations of every pointer that owns a block; the context is its record.
extern const PtrOps block_ops;
}  // namespace detail

// Wraps a block that is the caller's into a DataPtr that gives it back to the top resource of its
// record. A false block becomes a null pointer. No heap call. [alloc.resource]
inline DataPtr own_block(const Block& block) noexcept {
  return block ? DataPtr(block.data, block.record, detail::block_ops, block.stream.device)
               : DataPtr();
}

// Returns the record when ptr was made by own_block, else null.
inline BlockRecord* record_of(const DataPtr& ptr) noexcept {
  return ptr.context_as<BlockRecord>(detail::block_ops);
}

}  // namespace ebb::inline v0
