// SPDX-License-Identifier: Apache-2.0
// The shared part of keep in its forms. Private to runtime. Any thread.
#pragma once

#include <ebb/runtime/tensor.h>

#include <stdexcept>

namespace ebb::inline v0::detail {

// Moves the tensor's storage to owner and returns the tensor; a view of a loader's batch is
// copied instead.
Tensor keep_in(const Tensor& tensor, Owner owner, Place at);

}  // namespace ebb::inline v0::detail
