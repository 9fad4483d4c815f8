// SPDX-License-Identifier: Apache-2.0
// What the begin of an npy file says: "\x93NUMPY", a version, and a Python dictionary in text.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Any thread.
#pragma once

#include "array_form.h"
#include "byte_range.h"

namespace ebb::inline v0::detail {

// Reads and checks it: range has exactly as many bytes as the header promises. Throws LoadError,
// for elements too that no tensor has, with what to do instead.
ArrayForm read_npy_header(const ByteRange& range);

}  // namespace ebb::inline v0::detail
