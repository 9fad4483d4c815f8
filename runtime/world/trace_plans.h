// SPDX-License-Identifier: Apache-2.0
// How low each iteration of a trace can be packed, each on its own. Used by `ebb replay`. Pure, any
// thread.
#pragma once

#include "trace.h"

#include <ebb/alloc/plan.h>

#include <vector>

namespace ebb::world {

struct PackedIteration {
  Bytes max_live;
  Bytes height;
};

// Packs what the iterating thread allocates in each iteration; what lives on ends with it. Throws
// std::logic_error for a wrong plan, which is a defect of ebb, and std::bad_alloc.
std::vector<PackedIteration> pack_iterations(const Trace& trace);

}  // namespace ebb::world
