// SPDX-License-Identifier: Apache-2.0
// How DLPack names the dtypes: one table for both ways. Private to runtime; pure: any thread.
#pragma once

#include <ebb/runtime/interop/dlpack.h>

namespace ebb::inline v0::detail {

// Returns the type code; with the size of an element it names one dtype. Not for strings, which
// DLPack does not know.
constexpr std::uint8_t dlpack_code(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return dlpack::code_float;
    case DType::bf16:
      return dlpack::code_bfloat;
    case DType::u8:
      return dlpack::code_uint;
    case DType::boolean:
      return dlpack::code_bool;
    default:
      return dlpack::code_int;
  }
}

}  // namespace ebb::inline v0::detail
