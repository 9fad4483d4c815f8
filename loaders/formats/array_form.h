// SPDX-License-Identifier: Apache-2.0
// How an array lies in the bytes of its file. Used by the readers of npy, npz and safetensors.
// Values: any thread.
#pragma once

#include "element_format.h"

#include <ebb/runtime/shape.h>

#include <cstdint>

namespace ebb::inline v0::detail {

struct ArrayForm {
  ElementFormat format;
  Shape shape;
  bool fortran_order = false;  // the first dimension is the fastest
  std::uint64_t data = 0;      // offset of the first element in the array's range of bytes
  std::uint64_t elements = 0;
};

}  // namespace ebb::inline v0::detail
