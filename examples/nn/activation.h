// SPDX-License-Identifier: Apache-2.0
// What a layer applies to its sums. A value. Used by all math.
#pragma once

namespace ebb::inline v0::nn {

enum class Activation { none, relu, tanh };

}  // namespace ebb::inline v0::nn
