// SPDX-License-Identifier: Apache-2.0
// Iterations that a device repeats by itself: captured once as a graph, then launched with one call
// instead of hundreds. On the thread of their loop. [alloc.graph]
#pragma once

#include <ebb/runtime/loop.h>

#include <cstdint>
#include <memory>

namespace ebb::inline v0 {

struct GraphStats {
  std::uint64_t eager = 0;     // runs in which the body did its work itself
  std::uint64_t captures = 0;  // runs in which its work became a graph, and was launched as one
  std::uint64_t updates = 0;   // of these, those that changed the graph there was in place
  std::uint64_t launches = 0;  // runs that only launched it
  // Why the next run is to call the body by itself, as a literal; empty where it captures or
  // launches. A hundred such runs one after the other are told in the log.
  const char* why_eager = "it has not run yet";
};

// One step of a loop on a stream. run() opens an iteration and calls the body, until what that
// makes follows its plan; then once more to capture it; from then on it launches the graph, on the
// same addresses, and the body is not called. So the body does the same each time: it reads and
// writes tensors made before, whose content may change between the runs, and what it makes itself
// ends with it. While it is captured, a tensor that outlives it, keep(), item(), copies from memory
// that is not pinned and whatever else would have to run at once are errors; run() throws them, and
// the next one calls the body again. A loop without plans (LoopOptions::plans) captures only what
// makes nothing. A step that runs within a captured one of its device is part of that.
//
// Tensors of other streams of the device may be used, and what the body queues on those is part of
// the graph: each launch comes after what they were given before, and before what they are given
// later. While it is captured, other threads may use the device, but neither the streams of the
// step nor tensors of these.
//
// The memory of the step belongs to the graph until this is destroyed, or recapture() is called.
//
//   ebb::GraphStep step(loop, stream);
//   for (const auto& batch : batches) {
//     images.copy_(batch.images);  // tensors of the device, made before
//     step.run([&](ebb::Iteration&) { model.step(images, labels, loss); });
//   }
class GraphStep {
 public:
  // stream is of a device of the loop's runtime, not its default one, and lives as long as this.
  // The steps have their plan by this place, wherever run() is called.
  GraphStep(Loop& loop, Stream stream, Place at = Place::here());
  GraphStep(const GraphStep&) = delete;
  GraphStep& operator=(const GraphStep&) = delete;
  GraphStep(GraphStep&&) = delete;
  GraphStep& operator=(GraphStep&&) = delete;
  // After the loop's runtime is fine.
  ~GraphStep();

  // Runs one step, as an iteration of the loop. Throws what the body does, what the iteration's
  // opening and closing do, and DeviceError.
  template <class Body>
  void run(Body&& body) {
    auto call = [&body](Iteration& it) { body(it); };
    run_erased([](void* context, Iteration& it) { (*static_cast<decltype(call)*>(context))(it); },
               &call);
  }
  // The next run captures anew, since something that the graph has as a constant is to change: a
  // rate, a shape. Where the work keeps its shape the graph is changed in place.
  void recapture() noexcept;

  bool is_captured() const noexcept;
  GraphStats stats() const noexcept;

 private:
  using Call = void (*)(void* context, Iteration& it);
  void run_erased(Call body, void* context);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ebb::inline v0
