// SPDX-License-Identifier: Apache-2.0
// How a host calls Thrust with an iteration's memory. [rt.tensor]
#include "thrust_calls.h"

#include <cuda_runtime_api.h>

#include <thrust/device_ptr.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>

namespace ebb::test {

void sort_on(RawMemory memory, void* stream, std::uint32_t* first, std::uint32_t* last) {
  thrust::sort(thrust::cuda::par_nosync(memory).on(static_cast<cudaStream_t>(stream)),
               thrust::device_pointer_cast(first), thrust::device_pointer_cast(last));
}

std::uint64_t sum_on(RawMemory memory, void* stream, const std::uint32_t* first,
                     const std::uint32_t* last) {
  return thrust::reduce(thrust::cuda::par_nosync(memory).on(static_cast<cudaStream_t>(stream)),
                        thrust::device_pointer_cast(first), thrust::device_pointer_cast(last),
                        std::uint64_t{0});
}

}  // namespace ebb::test
