// SPDX-License-Identifier: Apache-2.0
// What an index of an epoch's order costs, by kind of order and size. For the benchmark of loaders.
#pragma once

#include "harness.h"

namespace ebb::bench {

Figures measure_orders(const Effort& effort);

// The order as a list that std::shuffle has mixed: cheap once it is there.
Figures measure_shuffled_list(const Effort& effort);

}  // namespace ebb::bench
