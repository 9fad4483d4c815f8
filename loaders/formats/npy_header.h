// SPDX-License-Identifier: Apache-2.0
// What the begin of an npy file says: "\x93NUMPY", a version, and a Python dictionary in text.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Any thread.
#pragma once

#include "byte_range.h"
#include "element_format.h"

#include <ebb/runtime/shape.h>

#include <cstdint>

namespace ebb::inline v0::detail {

struct NpyHeader {
  ElementFormat format;
  Shape shape;
  bool fortran_order = false;  // the first dimension is the fastest
  std::uint64_t data = 0;      // offset of the first element
  std::uint64_t elements = 0;
};

// Reads and checks it: range has exactly as many bytes as the header promises. Throws LoadError,
// for elements too that no tensor has, with what to do instead.
NpyHeader read_npy_header(const ByteRange& range);

}  // namespace ebb::inline v0::detail
