// SPDX-License-Identifier: Apache-2.0
// Bridges to and from std::pmr: containers on a heap of ebb, and ebb on somebody's
// memory_resource. Host memory only. [alloc.resource]
#pragma once

#include <ebb/alloc/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>

namespace ebb::inline v0 {

// For containers. Allocation as the upstream's thread rule says; deallocation on any thread. A
// pointer to the block's record lies in front of the bytes. Throws OutOfMemory.
//
//   ebb::PmrResource memory(heap);
//   std::pmr::vector<float> values(1000, &memory);
class PmrResource final : public std::pmr::memory_resource {
 public:
  // upstream must outlive this, and hand out memory of the host.
  explicit PmrResource(Resource& upstream) noexcept : upstream_(upstream) {}

  Resource& upstream() const noexcept { return upstream_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override;
  // Only itself.
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

  Resource& upstream_;
};

// A resource over a memory_resource, which is called under a lock: any thread. A block's record
// lies in front of its bytes, so each costs 64 bytes more, or its alignment where that is larger.
// What upstream throws is a refusal.
class FromPmr final : public Resource {
 public:
  // upstream must outlive this.
  explicit FromPmr(std::pmr::memory_resource& upstream) noexcept : upstream_(upstream) {}

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "pmr"; }

  // What is live, as asked for.
  Bytes live() const noexcept { return Bytes{live_.load(std::memory_order_relaxed)}; }
  std::uint64_t blocks_live() const noexcept {
    return blocks_live_.load(std::memory_order_relaxed);
  }

 private:
  std::pmr::memory_resource& upstream_;
  std::mutex mutex_;  // guards the calls of upstream_
  // Relaxed: figures.
  std::atomic<std::size_t> live_{0};
  std::atomic<std::uint64_t> blocks_live_{0};
};

}  // namespace ebb::inline v0
