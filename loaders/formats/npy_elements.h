// SPDX-License-Identifier: Apache-2.0
// The elements of an npy array as those of a tensor, in memory. Any thread.
#pragma once

#include "byte_range.h"
#include "npy_header.h"

#include <cstddef>
#include <memory>

namespace ebb::inline v0::detail {

// Returns whether the bytes of the range are the elements, in C order.
inline bool is_as_in_memory(const NpyHeader& header) noexcept {
  return header.format.is_plain() && (!header.fortran_order || header.shape.dims() < 2);
}

// Returns all elements, converted and in C order, aligned to 64. Throws LoadError, of kind memory
// too.
std::shared_ptr<const std::byte> npy_elements(const ByteRange& range, const NpyHeader& header);

// Returns the message for an element that does not fit.
std::string too_large_text(std::uint64_t element);

}  // namespace ebb::inline v0::detail
