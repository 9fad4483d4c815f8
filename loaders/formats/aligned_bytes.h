// SPDX-License-Identifier: Apache-2.0
// Shared bytes of the heap, aligned as tensors need them: what readers keep of a file. Values: any
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace ebb::inline v0::detail {

// Returns uninitialised bytes, aligned to 64; never null. Throws std::bad_alloc.
inline std::shared_ptr<std::byte> allocate_aligned(std::size_t bytes) {
  constexpr std::align_val_t align{64};
  return {static_cast<std::byte*>(::operator new(bytes, align)),
          [](std::byte* data) { ::operator delete(data, align); }};
}

}  // namespace ebb::inline v0::detail
