// SPDX-License-Identifier: Apache-2.0
// Streams of CUDA by their own type, for hosts that compile against the CUDA toolkit. Opt-in: the
// only header of ebb that includes CUDA's. Any thread. [rt.stream]
#pragma once

#include <ebb/runtime/device_stream.h>

#include <cuda_runtime_api.h>

namespace ebb::inline v0 {

// Makes a stream of the host's known, which it destroys after the result has ended.
// cudaStreamPerThread is refused: it stands for another stream on each thread.
inline DeviceStream borrow_stream(Runtime& rt, cudaStream_t stream,
                                  Device device = {DeviceKind::cuda, 0}) {
  return borrow_stream(rt, device, static_cast<void*>(stream));
}

// Returns the handle of a stream on a CUDA device.
inline cudaStream_t cuda_stream(Runtime& rt, Stream stream) {
  return static_cast<cudaStream_t>(stream_handle(rt, stream));
}

}  // namespace ebb::inline v0
