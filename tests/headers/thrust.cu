// SPDX-License-Identifier: Apache-2.0
// A host's Thrust program with its temporary memory from ebb, for nvcc. Only compiled; the CPU
// backend's form runs in tests/alloc/thrust_test.cpp. [alloc.resource]
#include <ebb/alloc/raw_resource.h>

#include <cuda_runtime.h>

#include <thrust/device_ptr.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>

void sort(ebb::RawResource& memory, cudaStream_t stream, float* first, float* last) {
  thrust::sort(thrust::cuda::par(memory).on(stream), thrust::device_pointer_cast(first),
               thrust::device_pointer_cast(last));
}
