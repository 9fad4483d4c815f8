// SPDX-License-Identifier: Apache-2.0
// Which math a device has.
#include "cpu_math.h"
#include "cuda_module.h"
#include "host_ops.h"
#include "stream_math.h"

namespace ebb::inline v0::nn {

std::unique_ptr<DeviceMath> make_math(Runtime& rt, Device device) {
  switch (device.kind) {
    case DeviceKind::cuda:
      return std::make_unique<StreamMath>(rt, device, load_cuda_ops(device),
                                          StreamMath::Worker::device);
    case DeviceKind::sim:
      return std::make_unique<StreamMath>(rt, device, std::make_shared<HostOps>(),
                                          StreamMath::Worker::ops);
    case DeviceKind::cpu:
      break;
  }
  return std::make_unique<CpuMath>(rt);
}

Tensor bring(const DeviceMath& math, const Tensor& tensor, Place at) {
  return tensor.device() == math.device() ? tensor
                                          : tensor.to(math.runtime().owner().on(math.stream()), at);
}

}  // namespace ebb::inline v0::nn
