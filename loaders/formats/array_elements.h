// SPDX-License-Identifier: Apache-2.0
// The elements of an array of a file as those of a tensor, in memory. Any thread.
#pragma once

#include "array_form.h"
#include "byte_range.h"

#include <cstddef>
#include <memory>

namespace ebb::inline v0::detail {

// Returns whether the bytes of the range are the elements, in C order.
inline bool is_as_in_memory(const ArrayForm& form) noexcept {
  return form.format.is_plain() && (!form.fortran_order || form.shape.dims() < 2);
}

// Returns all elements, converted and in C order, aligned to 64. Throws LoadError, of kind memory
// too.
std::shared_ptr<const std::byte> array_elements(const ByteRange& range, const ArrayForm& form);

// Returns the message for an element that does not fit.
std::string too_large_text(std::uint64_t element);

}  // namespace ebb::inline v0::detail
