// SPDX-License-Identifier: Apache-2.0
// How much memory the system could still give. Used before shared memory is reserved, since the
// kernel ends processes rather than refuse it. Any thread; no heap call.
#pragma once

#include <cstddef>

namespace ebb::inline v0::detail {

// Returns the bytes that this process could still use without swapping, as the kernel estimates:
// of the machine and, where one is set, of its control group. All ones where nobody says.
std::size_t available_memory_bytes() noexcept;

}  // namespace ebb::inline v0::detail
