// SPDX-License-Identifier: Apache-2.0
// What the conformance suite runs over: every resource as a base, every adaptor as a layer, and
// stacks of them. A new resource gets a base and a line in EBB_TEST_BASES, a new adaptor a layer.
// Used by the conformance tests; not shared between threads. [alloc.adaptor]
#pragma once

#include "heap_fixture.h"

#include <ebb/alloc/fault.h>
#include <ebb/alloc/guard.h>
#include <ebb/alloc/limit.h>
#include <ebb/alloc/log.h>
#include <ebb/alloc/pmr.h>
#include <ebb/alloc/retry.h>
#include <ebb/alloc/stats_adaptor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ebb::test {

// ---- bases: a resource, what is live in it, and whether it calls the system's heap --------------

struct HeapBase {
  static constexpr bool calls_heap = false;
  OwnHeap own{PoolOptions{.name = "heap"}};

  Resource& resource() { return own.heap; }
  std::uint64_t blocks_live() {
    own.heap.drain();
    return own.heap.stats().blocks_live;
  }
  Bytes bytes_live() const { return own.heap.stats().live; }
};

struct BypassBase {
  static constexpr bool calls_heap = true;
  OwnHeap own{PoolOptions{.name = "bypass", .bypass = true}};

  Resource& resource() { return own.heap; }
  std::uint64_t blocks_live() {
    own.heap.drain();
    return own.heap.stats().blocks_live;
  }
  Bytes bytes_live() const { return own.heap.stats().live; }
};

struct PmrBase {
  static constexpr bool calls_heap = true;
  FromPmr from{*std::pmr::new_delete_resource()};

  Resource& resource() { return from; }
  std::uint64_t blocks_live() const { return from.blocks_live(); }
  Bytes bytes_live() const { return from.live(); }
};

// Both bridges: blocks from a memory_resource, which takes its memory from a heap. The standard's
// pool between them takes its lists of chunks from there as well.
struct PmrOverHeapBase {
  static constexpr bool calls_heap = false;
  OwnHeap own{PoolOptions{.name = "below"}};
  PmrResource outward{own.heap};
  std::pmr::unsynchronized_pool_resource pool{&outward};
  FromPmr from{pool};

  Resource& resource() { return from; }
  std::uint64_t blocks_live() const { return from.blocks_live(); }
  Bytes bytes_live() const { return from.live(); }
};

#define EBB_TEST_BASES \
  ebb::test::HeapBase, ebb::test::BypassBase, ebb::test::PmrBase, ebb::test::PmrOverHeapBase

// ---- layers -------------------------------------------------------------------------------------

enum class Layer { limit, stats, log, guard, retry, fault };
inline constexpr std::array layers_all{Layer::limit, Layer::stats, Layer::log,
                                       Layer::guard, Layer::retry, Layer::fault};

template <class Adaptor>
constexpr bool is_adaptor =
    std::is_base_of_v<Resource, Adaptor>&& std::is_final_v<Adaptor> &&
    !std::is_copy_constructible_v<Adaptor> && !std::is_move_constructible_v<Adaptor>;
static_assert(is_adaptor<Limit> && is_adaptor<Stats> && is_adaptor<Log> && is_adaptor<Guard> &&
              is_adaptor<Retry> && is_adaptor<Fault>);

inline void ignore_line(void* /*context*/, const char* /*line*/, std::size_t /*length*/) noexcept {}
inline void abort_on_report(void* /*context*/, const GuardReport& report) noexcept {
  std::fprintf(stderr, "the guard reports fault %d\n", static_cast<int>(report.fault));
  std::abort();
}

// Layers over a bottom that outlives the stack, innermost first. None of them stands in the way.
class Stack {
 public:
  Stack(Resource& bottom, const std::vector<Layer>& layers) : top_(&bottom) {
    for (const Layer layer : layers) {
      add(layer);
    }
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  Stack(Stack&&) = delete;
  Stack& operator=(Stack&&) = delete;
  ~Stack() {
    while (!owned_.empty()) {
      owned_.pop_back();
    }
  }

  Resource& top() { return *top_; }

  template <class Adaptor, class... Args>
  Adaptor& put(Args&&... args) {
    auto made = std::make_unique<Adaptor>(*top_, std::forward<Args>(args)...);
    Adaptor& adaptor = *made;
    owned_.push_back(std::move(made));
    top_ = &adaptor;
    return adaptor;
  }

  void add(Layer layer) {
    switch (layer) {
      case Layer::limit:
        put<Limit>(Bytes{std::size_t{1} << 40});
        break;
      case Layer::stats:
        put<Stats>();
        break;
      case Layer::log:
        put<Log>(LogSink{ignore_line});
        break;
      case Layer::guard:
        guards_.push_back(&put<Guard>(GuardOptions{.report = abort_on_report, .quarantine = 5}));
        break;
      case Layer::retry:
        put<Retry>(RetryOptions{.attempts = 2});
        break;
      case Layer::fault:
        put<Fault>(FaultOptions{});
        break;
    }
  }

  // Nothing lies in quarantine after; from the outside in, since an inner one gets what an outer
  // one had.
  void settle() {
    for (auto guard = guards_.rbegin(); guard != guards_.rend(); ++guard) {
      (*guard)->flush();
    }
  }

 private:
  Resource* top_;
  std::vector<std::unique_ptr<Resource>> owned_;
  std::vector<Guard*> guards_;
};

// No layer, each alone, each ordered pair where pairs are wanted, and all at once in two orders.
inline std::vector<std::vector<Layer>> stacks_all(bool pairs = true) {
  std::vector<std::vector<Layer>> stacks{{}};
  for (const Layer inner : layers_all) {
    stacks.push_back({inner});
    for (std::size_t i = 0; pairs && i < layers_all.size(); ++i) {
      stacks.push_back({inner, layers_all[i]});
    }
  }
  stacks.emplace_back(layers_all.begin(), layers_all.end());
  stacks.push_back(
      {Layer::guard, Layer::fault, Layer::limit, Layer::retry, Layer::stats, Layer::log});
  return stacks;
}

// Calls body(base, stack) for every stack over a base of its own, and demands that nothing is live
// when it is done. The stack's name goes with every failure.
template <class Base, class Body>
void for_each_stack(Body body) {
  for (const std::vector<Layer>& layers : stacks_all()) {
    Base base;
    Stack stack(base.resource(), layers);
    const std::string name = stack.top().explain(Bytes{0}).resource;
    CAPTURE(name);
    body(base, stack);
    stack.settle();
    CHECK(base.blocks_live() == 0);
    CHECK(base.bytes_live() == Bytes{0});
  }
}

}  // namespace ebb::test
