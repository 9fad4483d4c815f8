// SPDX-License-Identifier: Apache-2.0
// One operation of a simulated stream. Made by a caller, run and dropped by a queue. Each belongs
// to one thread at a time. [alloc.sim]
#pragma once

#include "backend.h"
#include "sim/pages.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace ebb::inline v0 {

// One recording of an event.
struct SimMark {
  // Released by the queue that gets there. Acquired by queues that wait for it, and by callers who
  // are told that it is done, only.
  std::atomic<bool> is_done{false};
  // When callers may be told, in nanoseconds of the steady clock. Relaxed: written before is_done.
  std::atomic<std::int64_t> told_from{0};
};

struct SimCopy {
  void* to;
  const void* from;  // not used where there is a copy of what was there
  CopyRows rows;
  std::vector<std::byte> staged;  // of a pageable source: the rows, close together
};

struct SimFill {
  void* to;
  FillPattern pattern;
  std::size_t count;
};

struct SimHostCall {
  void (*function)(void* context);
  void* context;
};

struct SimRecord {
  std::shared_ptr<SimMark> mark;
  // What the event was recorded as before. It is dropped here, since a caller that drops the last
  // reference would be ordered after the queue.
  std::shared_ptr<SimMark> before;
};

struct SimWait {
  std::shared_ptr<SimMark> mark;
};

struct SimWork {
  std::variant<SimCopy, SimFill, SimHostCall, SimRecord, SimWait> what;
  std::vector<SimTouch> touches;

  bool is_legal() const noexcept;
};

// Moves the bytes.
void run(const SimCopy& copy) noexcept;
void run(const SimFill& fill) noexcept;
// Returns the rows of a source, close together.
std::vector<std::byte> stage(const void* from, const CopyRows& rows);

}  // namespace ebb::inline v0
