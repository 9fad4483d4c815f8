// SPDX-License-Identifier: Apache-2.0
// The heaps and the byte budget of one loader, or of the runtime. Threads take a heap from the
// pool, use it without locks and park it again. Thread-safe: one lock, never taken by allocation.
#pragma once

#include <ebb/alloc/heap.h>

#include <chrono>
#include <memory>
#include <string>

namespace ebb::inline v0 {

class DeviceContext;

struct PoolOptions {
  std::string name = "pool";
  Bytes limit{0};                           // of reserved bytes over all heaps; 0 means none
  Bytes reservation{std::size_t{1} << 32};  // address space per heap at first; more in chunks
  bool bypass = false;                      // every block straight from the system (EBB_BYPASS=1)
  // Constructs the layer above's struct in a fresh cell, once per cell. May be null.
  void (*construct_cell)(void* cell) noexcept = nullptr;
  // Held until the pool and its last heap are gone: what the releases of blocks need alive.
  std::shared_ptr<void> keep_alive = nullptr;
  // Where records and cells get their pages; null means the system source. Must be host memory.
  Source* records = nullptr;
  // How long a request that the limit refuses waits for others to free something, before it is
  // refused: back-pressure for threads that run ahead. 0: not at all.
  std::chrono::milliseconds limit_wait{0};
  // The device whose streams use the memory, which keep_alive keeps: blocks are then used again in
  // the order of its streams, and have a multiple of 256 bytes. Null: only threads use it.
  DeviceContext* order = nullptr;
};

// Destroying a pool destroys its idle heaps; a heap with live blocks, or owned by a thread, lives
// on until the last block is freed and the thread has parked it.
class Pool {
 public:
  // source must outlive the pool's last block. Makes no heap yet.
  Pool(Source& source, PoolOptions options);
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  Pool(Pool&& other) noexcept;
  Pool& operator=(Pool&& other) noexcept;
  ~Pool();

  // Returns a heap that the calling thread owns until it parks it: a parked one, else a new one.
  // Throws OutOfMemory when the system refuses address space, and ForkedError in a forked child of
  // the process that made the pool; there the others do nothing. [rt.fork]
  Heap& acquire();
  // Ends the calling thread's ownership of heap, which may belong to a pool that is gone.
  static void park(Heap& heap) noexcept;
  // Whether the pool of a heap that the calling thread owns has ended.
  static bool has_ended(const Heap& heap) noexcept;
  // Returns whether heap belongs to this pool.
  bool owns(const Heap& heap) const noexcept;

  // Sums over the heaps, those that other threads own included.
  MemoryStats stats() const noexcept;
  // Gives idle pages of parked heaps, and of the calling thread's, back. Returns how many bytes.
  Bytes trim() noexcept;
  // Calls visit(context, cell) for every cell that was handed out since the epoch since began, and
  // for some others, free ones too; since 0 leaves none out. Heaps that other threads own are
  // included: read cells through atomics only.
  void for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                     void* context) const;
  // Epochs divide the life of a pool, so that a walk can leave out the cells of long ago: each walk
  // that looks for recent cells ends with begin_cell_epoch. Any thread.
  std::uint64_t cell_epoch() const noexcept;
  void begin_cell_epoch() const noexcept;

  const std::string& name() const noexcept;
  Bytes limit() const noexcept;

 private:
  friend class PoolHandle;
  std::shared_ptr<PoolCore> core_;
};

// A way to a pool that others may close meanwhile, which costs a heap or a handle nothing: it keeps
// the pool's bookkeeping, not the pool. Copyable; any thread.
class PoolHandle {
 public:
  explicit PoolHandle(const Pool& pool) noexcept;

  // As Pool's. Once the pool has closed, acquire throws std::invalid_argument, and the others find
  // no heap.
  Heap& acquire() const;
  MemoryStats stats() const noexcept;
  Bytes trim() const noexcept;
  void for_each_cell(std::uint64_t since, void (*visit)(void* context, Cell* cell),
                     void* context) const;
  std::uint64_t cell_epoch() const noexcept;
  void begin_cell_epoch() const noexcept;

 private:
  std::shared_ptr<PoolCore> core_;
};

}  // namespace ebb::inline v0
