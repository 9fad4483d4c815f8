// SPDX-License-Identifier: Apache-2.0
// How much memory the system has and could still give. Used where the kernel would end processes
// rather than refuse a request. Any thread; no heap call.
#pragma once

#include <cstddef>

namespace ebb::inline v0::detail {

// Returns the bytes that this process could still use without swapping, as the kernel estimates:
// of the machine and, where one is set, of its control group. All ones where nobody says.
std::size_t available_memory_bytes() noexcept;

// Returns the bytes of the machine's memory and swap space, free or not, as they were when first
// asked for. All ones where nobody says.
std::size_t machine_memory_bytes() noexcept;

}  // namespace ebb::inline v0::detail
