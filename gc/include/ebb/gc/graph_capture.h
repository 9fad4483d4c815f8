// SPDX-License-Identifier: Apache-2.0
// What an iteration of this thread queues on a stream, collected to a graph, and the memory that it
// uses, kept for it. For ebb's modules only: not installed. On the thread that made it.
// [alloc.graph]
#pragma once

#include <ebb/alloc/device_work.h>
#include <ebb/alloc/heap.h>
#include <ebb/gc/owner.h>

#include <cstdint>

namespace ebb::inline v0 {

class DeviceContext;

// What an iteration makes on devices.
enum class Made : std::uint8_t {
  nothing,
  as_planned,
  otherwise,
  without_plans,  // the loop has none
};

// Made before the iteration opens, and ended after it has closed: what is given back in between is
// held.
class GraphCapture {
 public:
  // Throws std::invalid_argument for a stream that is not the domain's.
  GraphCapture(Domain& domain, Stream stream);
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;
  GraphCapture(GraphCapture&&) = delete;
  GraphCapture& operator=(GraphCapture&&) = delete;
  // Lets go of what take() has not taken.
  ~GraphCapture();

  // Begins to capture, if owner, an iteration that this thread has just opened, follows a plan with
  // what it is to make on the stream, or makes nothing, and nothing else is captured on the device.
  // Returns whether it did.
  bool begin(const Owner& owner, Made made);
  // Whether the thread may keep the memory: else nothing is ever captured.
  bool is_possible() const noexcept { return heap_ != nullptr; }
  // Ends it. Returns the graph: into, if that could be changed in place.
  GraphExec end(GraphExec into);
  // Ends it without one, if it is not over.
  void abandon() noexcept;
  // Once the iteration has closed.
  HeldBlocks take() noexcept;

 private:
  DeviceContext& context_;
  const Stream stream_;
  Heap* const heap_;  // null: the thread may not keep one
  bool is_capturing_ = false;
  bool is_holding_ = false;
};

// What the iteration owner, which this thread has open, has made on devices so far.
Made made_by(const Owner& owner) noexcept;

}  // namespace ebb::inline v0
