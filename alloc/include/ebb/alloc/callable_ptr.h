// SPDX-License-Identifier: Apache-2.0
// The slow way to a DataPtr: released by an arbitrary callable, which needs a node on the heap.
// Used where no static table of operations can be had. Any thread. [alloc.ptr]
#pragma once

#include <ebb/alloc/data_ptr.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

namespace detail {

void count_slow_callable_ptr() noexcept;

template <class F>
struct CallableNode {
  F release;

  static void run(void* context, void* data) noexcept {
    const std::unique_ptr<CallableNode> node(static_cast<CallableNode*>(context));
    node->release(data);
  }
  static constexpr PtrOps ops{run, "callable"};
};

}  // namespace detail

// Returns a pointer that calls release(data) once, on the thread that drops it; data may be null.
// Costs one heap call now and one at the release. release must not throw: that ends the program.
// Throws std::bad_alloc, or what copying release throws: data is then still the caller's.
template <class F>
DataPtr slow_callable_ptr(void* data, F release, Device device = cpu) {
  static_assert(std::is_invocable_v<F&, void*>, "release is called with the data");
  using Node = detail::CallableNode<F>;
  auto node = std::make_unique<Node>(Node{std::move(release)});
  detail::count_slow_callable_ptr();
  return {data, node.release(), Node::ops, device};
}

// Returns how many of them this process ever made: what to look at when a step should make no heap
// call, but does.
std::uint64_t slow_callable_ptrs() noexcept;

}  // namespace ebb::inline v0
