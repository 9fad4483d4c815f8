// SPDX-License-Identifier: Apache-2.0
// The supervised pointer: owns one block, or wraps foreign memory, and knows how to release it.
// Used by storages and by whoever hands memory to ebb. One owner at a time: not thread-safe.
#pragma once

#include <ebb/alloc/device.h>

#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

// How a kind of memory is released: one static table per kind, never freed. release may be null:
// "not mine". It is called once per DataPtr, on the thread that drops it, and must not throw.
struct PtrOps {
  void (*release)(void* context, void* data) noexcept;
  const char* name;
};

namespace detail {
// What a pointer that was moved from has in place of its operations.
inline constexpr PtrOps moved_from_ops{nullptr, "moved from"};
// Prints which function was called on such a pointer, and aborts: always, at every level of checks.
[[noreturn]] void used_after_move(const char* function) noexcept;
}  // namespace detail

// 32 bytes, move-only; making, moving and destroying one never touches the heap. Release runs
// exactly once, also when data is null but a context is held. A moved-from DataPtr is null and
// false, may be assigned, reset and destroyed; asking it to change hands or operations aborts.
// [alloc.ptr]
//
//   static constexpr ebb::PtrOps free_ops{[](void*, void* p) noexcept { std::free(p); }, "malloc"};
//   ebb::DataPtr p(std::malloc(64), nullptr, free_ops, ebb::cpu);
class DataPtr {
 public:
  constexpr DataPtr() noexcept = default;
  // Takes ownership of data and context; ops must outlive it (use a static table).
  constexpr DataPtr(void* data, void* context, const PtrOps& ops, Device device) noexcept
      : data_(data), context_(context), ops_(&ops), device_(device) {}
  DataPtr(DataPtr&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        context_(std::exchange(other.context_, nullptr)),
        ops_(std::exchange(other.ops_, &detail::moved_from_ops)),
        device_(other.device_) {}
  DataPtr& operator=(DataPtr&& other) noexcept {
    if (this != &other) {
      DataPtr taken(std::move(other));  // first, since other may go with what is released here
      std::swap(data_, taken.data_);
      std::swap(context_, taken.context_);
      std::swap(ops_, taken.ops_);
      std::swap(device_, taken.device_);
    }
    return *this;
  }
  DataPtr(const DataPtr&) = delete;
  DataPtr& operator=(const DataPtr&) = delete;
  ~DataPtr() { reset(); }

  // Releases what is held, now; afterwards the pointer is null and false.
  void reset() noexcept {
    const PtrOps* ops = std::exchange(ops_, nullptr);
    void* data = std::exchange(data_, nullptr);
    void* context = std::exchange(context_, nullptr);
    if (ops != nullptr && ops->release != nullptr && (data != nullptr || context != nullptr)) {
      ops->release(context, data);
    }
  }

  void* get() const noexcept { return data_; }
  void* context() const noexcept { return context_; }
  // Null for an empty or moved-from pointer, and once the context was given up.
  const PtrOps* ops() const noexcept { return ops_ != &detail::moved_from_ops ? ops_ : nullptr; }
  Device device() const noexcept { return device_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  // Returns the typed context when this pointer was made with ops, else null.
  template <class T>
  T* context_as(const PtrOps& ops) const noexcept {
    return ops_ == &ops ? static_cast<T*>(context_) : nullptr;
  }

  // Gives the context up: the caller releases it from now on, and this pointer releases nothing
  // (data stays readable). Returns null when there is none; then nothing changes. Aborts after a
  // move.
  void* release_context() noexcept {
    require_not_moved("DataPtr::release_context");
    if (context_ != nullptr) {
      ops_ = nullptr;
    }
    return std::exchange(context_, nullptr);
  }

  // Replaces the operations when they are still expected. A plain compare and set by the sole
  // owner, not an atomic operation. Returns whether it replaced them. Aborts after a move.
  bool compare_exchange_ops(const PtrOps& expected, const PtrOps& desired) noexcept {
    require_not_moved("DataPtr::compare_exchange_ops");
    if (ops_ != &expected) {
      return false;
    }
    ops_ = &desired;
    return true;
  }

 private:
  void require_not_moved(const char* function) const noexcept {
    if (ops_ == &detail::moved_from_ops) [[unlikely]] {
      detail::used_after_move(function);
    }
  }

  void* data_ = nullptr;
  void* context_ = nullptr;
  const PtrOps* ops_ = nullptr;
  Device device_;
};

static_assert(sizeof(DataPtr) == 32 && std::is_nothrow_move_constructible_v<DataPtr>);

}  // namespace ebb::inline v0
