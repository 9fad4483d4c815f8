// SPDX-License-Identifier: Apache-2.0
// Storages of an iteration that follows its plan. Single-threaded.
#pragma once

#include <ebb/runtime/loop.h>

#include <cstdint>

namespace ebb::bench {

// Returns nanoseconds for a storage of so many bytes, made and dropped, over about count of them.
// Throws std::logic_error where the iterations did not follow a plan. Iterations are opened under
// the thread's current stream.
double planned_ns(ebb::Runtime& rt, ebb::Bytes bytes, int count);
// The same without a plan.
double unplanned_ns(ebb::Runtime& rt, ebb::Bytes bytes, int count);

// Returns how many iterations of a loop have followed a plan, for all that they made on one device.
std::uint64_t followed(const ebb::Loop& loop);

}  // namespace ebb::bench
