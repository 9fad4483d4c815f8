// SPDX-License-Identifier: Apache-2.0
// What batch fits into a budget: a step is run with a few small ones, and what they allocate tells
// the rest. Used by whoever looks for a batch size, before the loop that trains. [alloc.replay]
#pragma once

#include <ebb/alloc/batch_fit.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/runtime.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace ebb::inline v0 {

struct BatchProbeOptions {
  // The batches that are run. The third and later ones check that sizes grow by a fixed number of
  // bytes with each element.
  std::vector<std::size_t> batches = {2, 3, 5};
  // For each of them: how often four iterations are begun, until four running are the same. The
  // first ones make what is made once, such as an optimizer's state.
  unsigned tries = 8;
  BatchFitOptions fit = {};
};

// What the iterations of a batch need: height + outside. The budget has that and long_lived.
struct RuntimeBatchFit : BatchFit {
  Bytes long_lived;  // in the runtime's pool between iterations: weights, an optimizer's state
};

// Runs step with small batches, really, in iterations of a loop of its own, and returns the largest
// batch whose iterations fit into the budget beside what is long-lived; with that one, or the next,
// nothing is run. The budget is for the runtime's pool, and for what a plan needs in it: a memory
// limit wants a few percent more, for iterations before the plan is there. What tasks make on other
// threads is not seen, nor what is made on devices. Call it on a thread where no iteration is open,
// and no StreamScope of a device. Throws std::invalid_argument where iterations do not repeat,
// where batches make allocations that differ in more than their sizes, as scale_sequence says,
// where nothing fits, for a runtime that bypasses its heaps, and for fewer than two batches; and
// what step throws.
//
//   const auto step = [&](ebb::Iteration& it, std::size_t batch) { ... };
//   const std::size_t batch = ebb::largest_batch(rt, 512_MiB, step).batch;
RuntimeBatchFit largest_batch(Runtime& rt, Bytes budget,
                              const std::function<void(Iteration& it, std::size_t batch)>& step,
                              const BatchProbeOptions& options = {});

}  // namespace ebb::inline v0
