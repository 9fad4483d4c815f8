// SPDX-License-Identifier: Apache-2.0
// Address ranges of a source, cut into blocks: best fit over coalesced holes, slabs below 4 KiB.
// A heap belongs to one thread at a time; made and owned by a Pool. deallocate and give_cell may
// be called on any thread, everything else only by the owner.
#pragma once

#include <ebb/alloc/resource.h>
#include <ebb/alloc/source.h>
#include <ebb/alloc/stats.h>

#include <memory>
#include <utility>

namespace ebb::inline v0 {

class PoolCore;

// Storage structs of the layer above live in cells: type-stable memory of cell_bytes that is made
// once (see PoolOptions::construct_cell), never given back before its heap dies, and safe to read
// at any time through atomics. A free cell is linked by next.
struct Cell {
  Cell* next = nullptr;
  // A block of the cell's heap that goes with the cell, from when its holder puts it here until the
  // owner has it back, see Heap::give_block_of; and the link of cells whose block others have
  // freed.
  BlockRecord* block = nullptr;
  Cell* next_block = nullptr;
};
inline constexpr Bytes cell_bytes{256};

class Heap;

// What a captured graph uses of a heap: nobody else gets it before this ends. That may be on any
// thread, and after the end of the pool. [alloc.graph]
class HeldBlocks {
 public:
  HeldBlocks() noexcept = default;
  HeldBlocks(HeldBlocks&& other) noexcept
      : heap_(std::exchange(other.heap_, nullptr)), first_(std::exchange(other.first_, nullptr)) {}
  HeldBlocks& operator=(HeldBlocks&& other) noexcept;
  HeldBlocks(const HeldBlocks&) = delete;
  HeldBlocks& operator=(const HeldBlocks&) = delete;
  ~HeldBlocks() { release(); }

  void release() noexcept;

 private:
  friend class Heap;
  HeldBlocks(Heap& heap, BlockRecord* first) noexcept : heap_(&heap), first_(first) {}

  Heap* heap_ = nullptr;
  BlockRecord* first_ = nullptr;
};

// [alloc.heap]: best fit over coalesced holes, lowest address among equals, growing last; slabs of
// 8 KiB for sizes up to 4 KiB. Records live outside the blocks. The owner takes no lock; frees by
// other threads are pushed on a list that the owner drains. A heap is owned, parked or seized, or,
// when its pool has closed while blocks were alive, orphaned: the last free then destroys it. In a
// forked child requests are refused (allocate throws ForkedError), and frees do nothing. [rt.fork]
class Heap final : public Resource {
 public:
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  Heap(Heap&&) = delete;
  Heap& operator=(Heap&&) = delete;
  ~Heap() override;

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  // The same with the record alone: null is a refusal. For who keeps the record only.
  [[nodiscard]] BlockRecord* take_block(Bytes bytes, Align align, Stream stream) noexcept;
  void give_block(BlockRecord& block) noexcept;
  // From now on the live block is used by another stream of its device as well: once it is given
  // back, its memory is used again only after both. By a holder of the block, on any thread.
  // Nothing in a heap whose pool has no order.
  void note_use(BlockRecord& block, Stream stream) noexcept;
  // Whether stream is the live block's own, or was noted. Always in a heap whose pool has no order.
  bool is_used_on(const BlockRecord& block, Stream stream) const noexcept;
  // From here to end_hold, blocks outside a plan's range that are given back are held instead, for
  // a graph that is being captured; false: they are held already. Owner only. [alloc.graph]
  [[nodiscard]] bool begin_hold() noexcept;
  // Returns them, and with them the range of the plan that the last iteration followed. user: the
  // stream that the graph is launched on.
  HeldBlocks end_hold(Stream user) noexcept;
  std::optional<Bytes> try_revoke(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override;

  // Returns a block at exactly address (a multiple of 64 within this heap), or a false block when
  // any byte of [address, address + bytes) is taken or outside what the heap has reserved.
  // Grows the heap when the range lies beyond its end. [alloc.replay]
  [[nodiscard]] Block try_allocate_at(void* address, Bytes bytes) noexcept;
  // Returns whether no live block has a byte in range; range must lie in this heap's reserved
  // address space, else false.
  bool is_free(Range range) const noexcept;

  // Returns a cell, or null when the system refuses memory. Owner only.
  Cell* take_cell() noexcept;
  // A cell with a block that goes with it, in one step; null when either is refused. Owner only.
  [[nodiscard]] Cell* take_cell_with_block(Bytes bytes, Align align, Stream stream) noexcept;
  // The way back. Owner only, once for each, and not in a forked child.
  void give_cell_with_block(Cell& cell) noexcept;
  // Gives the block back that a taken cell of this heap names; the cell stays taken. By another
  // thread than the owner this touches the cell only, and leaves the block's record, which the
  // owner needs again, in the owner's cache. Any thread, once for each block.
  void give_block_of(Cell& cell) noexcept;
  // Gives a cell of this heap back. Any thread, exactly once.
  void give_cell(Cell* cell) noexcept;

  // Takes back what other threads have freed since. Called by allocation when needed.
  void drain() noexcept;
  // Gives idle whole pages back to the source. Returns how many bytes.
  Bytes trim() noexcept;

  // Any thread: figures written by the owner, each read on its own.
  MemoryStats stats() const noexcept;
  // Any thread: whether the calling thread owns this heap.
  bool is_mine() const noexcept;
  // Any thread: whether this process was forked from the one that made the heap.
  bool in_child() const noexcept;

 private:
  friend class HeldBlocks;
  friend class PoolCore;
  friend class Replay;
  class Impl;
  explicit Heap(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ebb::inline v0
