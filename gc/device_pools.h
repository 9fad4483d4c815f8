// SPDX-License-Identifier: Apache-2.0
// A domain's memory besides the CPU's own: for each device a pool of its memory and one of pinned
// host memory. Private to gc. Any thread. [alloc.cuda]
#pragma once

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/pool.h>
#include <ebb/gc/domain.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace ebb::inline v0::detail {

// One pool, which is made, and the driver's context with it, when something is first asked of it.
class DevicePool {
 public:
  enum class Kind : std::uint8_t { device, pinned };

  // size: all the memory that there is to have; 0: not known.
  DevicePool(DeviceContext& context, Kind kind, Bytes limit, Bytes size) noexcept;
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;
  DevicePool(DevicePool&&) = delete;
  DevicePool& operator=(DevicePool&&) = delete;
  ~DevicePool() = default;

  // Returns a heap that the calling thread owns until it parks it. Blocks keep keep_alive. Throws
  // OutOfMemory, DeviceError, and std::invalid_argument once the pool has closed.
  Heap& acquire(const std::shared_ptr<void>& keep_alive);
  // Returns the pool, or null when nothing was asked of it yet. It may have closed.
  const PoolHandle* made() const noexcept { return made_.load(std::memory_order_acquire); }
  bool is_pinned() const noexcept { return kind_ == Kind::pinned; }
  MemoryStats stats() const noexcept;
  Bytes limit() const noexcept { return limit_; }
  Bytes size() const noexcept { return size_; }
  Bytes trim() const noexcept;
  // From now on no heap is taken; storages live on.
  void close() noexcept;

  // The stream that a block is taken on: the one asked for; for pinned memory a stream on which
  // nothing is ever queued. So its blocks are used again only when all streams that used them were
  // seen to be done, since the host, which writes them next, is in no stream's order. Once the pool
  // was made.
  Stream stream_for(Stream asked) const noexcept { return is_pinned() ? host_stream_ : asked; }

  // Of no other pool of this process.
  const std::uint64_t number;

 private:
  const PoolHandle& make(const std::shared_ptr<void>& keep_alive);

  DeviceContext& context_;
  const Kind kind_;
  const Bytes limit_;
  const Bytes size_;
  // Release and acquire: who sees it sees the handle and the stream.
  std::atomic<const PoolHandle*> made_{nullptr};
  std::mutex mutex_;  // guards the making and the closing: the next three
  std::optional<Pool> pool_;
  std::optional<PoolHandle> handle_;
  bool closed_ = false;
  Stream host_stream_;
};

// One device of a domain.
class DeviceMemory {
 public:
  DeviceMemory(const DomainDevice& device, std::size_t its_index);

  DeviceContext& context() const noexcept { return *context_; }

 private:
  const std::shared_ptr<DeviceContext> context_;  // before the pools, which use it

 public:
  const std::size_t index;  // among those of its domain
  DevicePool memory;
  DevicePool pinned;
};

}  // namespace ebb::inline v0::detail
