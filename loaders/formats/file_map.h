// SPDX-License-Identifier: Apache-2.0
// A part of an opened file in memory, by mapping. Used for arrays that become tensors. Any thread.
#pragma once

#include "positioned_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ebb::inline v0::detail {

// Returns the bytes from offset on, read-only. Throws LoadError.
std::shared_ptr<const std::byte> map_part(const PositionedFile& file, std::uint64_t offset,
                                          std::uint64_t bytes);

}  // namespace ebb::inline v0::detail
