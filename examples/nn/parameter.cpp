// SPDX-License-Identifier: Apache-2.0
// Making parameters and their gradients.
#include "parameter.h"

#include <ebb/runtime/random.h>

#include <utility>

namespace ebb::inline v0::nn {

Parameter make_parameter(DeviceMath& math, std::string name, std::int64_t rows,
                         std::int64_t columns, float bound, std::uint64_t seed) {
  const LongLived own(math.runtime());
  Parameter parameter{std::move(name), math.matrix(rows, columns), {}};
  // Row by row from one contiguous run of numbers on the host: the padding of rows must not show in
  // them, nor the device.
  const Tensor values = empty(math.runtime().owner().on(Stream{}), {rows, columns});
  fill_uniform(values.span<float>(), -bound, bound, Random(seed, parameter.name));
  parameter.value.copy_(values);
  return parameter;
}

const Tensor& grad_of(DeviceMath& math, Parameter& parameter) {
  if (!parameter.grad.defined()) {
    const LongLived own(math.runtime());
    parameter.grad = math.matrix(parameter.value.size(0), parameter.value.size(1));
  }
  return parameter.grad;
}

}  // namespace ebb::inline v0::nn
