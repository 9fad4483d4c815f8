// SPDX-License-Identifier: Apache-2.0
#include "malloc_async.h"

#include "bench_device.h"
#include "device_pairs.h"

#include <ebb/alloc/devices.h>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>

namespace ebb::bench {
namespace {

void require(cudaError_t result, const char* call) {
  if (result != cudaSuccess) {
    throw std::runtime_error(std::string("[measure_malloc_async] ") + call + ": " +
                             cudaGetErrorString(result));
  }
}

void keep_what_is_freed() {
  cudaMemPool_t pool = nullptr;
  require(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
  std::uint64_t threshold = UINT64_MAX;
  require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
          "cudaMemPoolSetAttribute");
}

void make_and_drop(std::size_t bytes, cudaStream_t stream) {
  void* data = nullptr;
  require(cudaMallocAsync(&data, bytes, stream), "cudaMallocAsync");
  keep_alive(data);
  require(cudaFreeAsync(data, stream), "cudaFreeAsync");
}

double pair_ns(std::size_t bytes, cudaStream_t stream, int count) {
  for (int i = 0; i < pairs_per_iteration; ++i) {
    make_and_drop(bytes, stream);  // the pool has the memory from now on
  }
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const double ns = nanoseconds_per_call(count, [&](int) { make_and_drop(bytes, stream); });
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return ns;
}

}  // namespace

std::string malloc_async_missing() {
  return chosen_device() == ebb::DeviceKind::cuda ? ebb::no_cuda_reason()
                                                  : "a simulated device has no such allocator";
}

Figures measure_malloc_async(const Effort& effort) {
  require(cudaSetDevice(0), "cudaSetDevice");
  keep_what_is_freed();
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  Figures figures;
  for (const std::size_t bytes : pair_sizes) {
    const double ns = pair_ns(bytes, stream, effort.calls(100'000));
    figures["pair_ns/planned/" + size_name(bytes)] = ns;
    figures["pair_ns/unplanned/" + size_name(bytes)] = ns;
  }
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return figures;
}

}  // namespace ebb::bench
