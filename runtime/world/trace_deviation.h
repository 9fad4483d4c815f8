// SPDX-License-Identifier: Apache-2.0
// Traces whose iterations do not repeat exactly. Used by `ebb replay`. Pure, any thread.
#pragma once

#include "trace.h"

#include <cstdint>

namespace ebb::world {

// Returns trace, with its iterations from the third on (the first never is like the second, and the
// second may not be) once more before the last, which may end the program. Of their allocations
// percent deviate: in equal shares, one is left out, one of another's size is put in before it for
// a short time, it has 0.5 to 2 times the size, or it is freed late. The result depends on the
// arguments only.
Trace with_deviations(const Trace& trace, double percent, std::uint64_t seed);

}  // namespace ebb::world
