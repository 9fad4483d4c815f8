// SPDX-License-Identifier: Apache-2.0
// The names of element types, as birth notes, messages and printed tensors show them.
// Any thread.
#include <ebb/runtime/dtype.h>

namespace ebb::inline v0 {

std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::i8:
      return "i8";
    case DType::u8:
      return "u8";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
    case DType::string:
      return "string";
  }
  return "?";
}

}  // namespace ebb::inline v0
