// SPDX-License-Identifier: Apache-2.0
// Thrust on a stream with its temporary memory from an iteration, for thrust_test.cpp: nvcc
// compiles the one, a C++ compiler the other. Nothing waits for the stream but the reduction.
// [rt.tensor]
#pragma once

#include <ebb/gc/raw_memory.h>

#include <cstdint>

namespace ebb::test {

// stream is a cudaStream_t; the values are the device's.
void sort_on(RawMemory memory, void* stream, std::uint32_t* first, std::uint32_t* last);
std::uint64_t sum_on(RawMemory memory, void* stream, const std::uint32_t* first,
                     const std::uint32_t* last);

}  // namespace ebb::test
