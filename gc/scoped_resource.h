// SPDX-License-Identifier: Apache-2.0
// The memory resource inside an owner record: type-stable like the record, so that containers may
// hold its address after their iteration. Private to gc. Any thread.
#pragma once

#include <ebb/alloc/place.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>

namespace ebb::inline v0 {

class OwnerRecord;

namespace detail {

class ScopedResource final : public std::pmr::memory_resource {
 public:
  explicit ScopedResource(OwnerRecord& record) noexcept : record_(record) {}

  // From now on charges generation, and gives at as the place.
  void aim(std::uint64_t generation, Place at) noexcept {
    generation_.store(generation, std::memory_order_relaxed);
    file_.store(at.file, std::memory_order_relaxed);
    line_.store(at.line, std::memory_order_relaxed);
  }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  OwnerRecord& record_;
  // Relaxed: each is read on its own, and whoever got the resource has been handed it in order.
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<const char*> file_{""};
  std::atomic<std::uint32_t> line_{0};
};

}  // namespace detail
}  // namespace ebb::inline v0
