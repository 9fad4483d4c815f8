// SPDX-License-Identifier: Apache-2.0
// Files of weights in the safetensors format (f32 only), so that other libraries can start from the
// same numbers. Used by the trainers, on one thread.
#pragma once

#include "parameter.h"

namespace ebb::inline v0::nn {

// Writes the values of parameters, whole or not at all. Throws std::runtime_error.
void save_weights(const std::string& path, const Parameters& parameters);

// Reads them back. The file must hold exactly these names with these shapes; a bias of n numbers
// may be [n] or [1, n]. Throws std::runtime_error, which says what differs; then no value has
// changed.
void load_weights(const std::string& path, const Parameters& parameters);

}  // namespace ebb::inline v0::nn
