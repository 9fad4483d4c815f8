// SPDX-License-Identifier: Apache-2.0
// What the sides make and drop: bytes with a counted owner, and bare blocks, on ebb's side and over
// whatever malloc is. Handles may be dropped on any thread; making is for the maker's own thread.
#pragma once

#include <ebb/alloc/pool.h>
#include <ebb/gc/storage.h>
#include <ebb/runtime/loop.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>

namespace ebb::bench {

inline constexpr std::array<std::size_t, 4> owned_sizes{64, 1024, 16 << 10, 1 << 20};

inline std::string size_name(std::size_t bytes) {
  return bytes < 1024        ? std::to_string(bytes) + "B"
         : bytes < (1 << 20) ? std::to_string(bytes >> 10) + "KiB"
                             : std::to_string(bytes >> 20) + "MiB";
}

// Storages of an open iteration, made without a plan.
class Storages {
 public:
  using Handle = ebb::Storage;
  Storages() : loop_(rt_, {.plans = false}), it_(loop_) {}
  Handle make(std::size_t bytes) {
    return ebb::Storage::make(it_.owner(), ebb::Bytes{bytes}, ebb::default_align_cpu,
                              {ebb::Place::here()});
  }

 private:
  ebb::Runtime rt_;
  ebb::Loop loop_;
  ebb::Iteration it_;
};

// What a C++ program has instead: a shared pointer to allocated bytes.
class SharedBytes {
 public:
  using Handle = std::shared_ptr<std::byte>;
  static Handle make(std::size_t bytes) {
    return {static_cast<std::byte*>(std::malloc(bytes)), std::free};
  }
};

// Blocks of a heap that this thread owns, each with the pointer that gives it back.
class HeapBlocks {
 public:
  using Handle = ebb::DataPtr;
  HeapBlocks()
      : pool_(ebb::system_source(), ebb::PoolOptions{.name = "bench"}), heap_(pool_.acquire()) {}
  HeapBlocks(const HeapBlocks&) = delete;
  HeapBlocks& operator=(const HeapBlocks&) = delete;
  HeapBlocks(HeapBlocks&&) = delete;
  HeapBlocks& operator=(HeapBlocks&&) = delete;
  ~HeapBlocks() { ebb::Pool::park(heap_); }

  Handle make(std::size_t bytes) { return ebb::own_block(heap_.allocate(ebb::Bytes{bytes})); }
  ebb::Heap& heap() { return heap_; }

 private:
  ebb::Pool pool_;
  ebb::Heap& heap_;
};

// The same over malloc.
class MallocBlocks {
 public:
  struct Free {
    void operator()(std::byte* data) const noexcept { std::free(data); }
  };
  using Handle = std::unique_ptr<std::byte, Free>;
  static Handle make(std::size_t bytes) {
    return Handle(static_cast<std::byte*>(std::malloc(bytes)));
  }
};

// Reads where the bytes of a handle are, which is the least that its user does.
inline const void* address_of(const ebb::Storage& handle) {
  return handle.data();
}
template <class Pointer>
const void* address_of(const Pointer& handle) {
  return handle.get();
}

}  // namespace ebb::bench
