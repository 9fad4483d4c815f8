// SPDX-License-Identifier: Apache-2.0
// What the system says of this process: page faults and resident memory. Any thread.
#pragma once

#include <cstdint>

namespace ebb::bench {

// Minor page faults of this process so far.
std::uint64_t minor_faults();

// Bytes resident now, the program's own files included.
std::uint64_t resident_bytes();

// The most bytes that were resident since forget_resident_peak, or ever.
std::uint64_t resident_peak_bytes();

// Starts the peak anew from what is resident now. Throws std::runtime_error where the system
// refuses.
void forget_resident_peak();

}  // namespace ebb::bench
