// SPDX-License-Identifier: Apache-2.0
// Storages of an iteration that follows its plan. Single-threaded.
#pragma once

#include <cstddef>

namespace ebb::bench {

// Returns nanoseconds for a storage of so many bytes, made and dropped, over about count of them.
// Throws std::logic_error where the iterations did not follow a plan.
double planned_ns(std::size_t bytes, int count);

}  // namespace ebb::bench
