// SPDX-License-Identifier: Apache-2.0
// The bare guard: one line in a loop that exists already. The rest is that loop.
#include <ebb/ebb.h>

#include <cstdio>
#include <vector>

int main() {
  const std::vector<std::vector<float>> my_batches(10, std::vector<float>(1024, 0.5f));

  ebb::Runtime rt;
  ebb::Loop loop(rt, {.name = "train"});
  double sum = 0;
  for (const auto& batch : my_batches) {
    ebb::Iteration it(loop);  // first in the body, so it closes after every local
    ebb::Tensor squares = ebb::empty({1024});
    float* out = squares.data<float>();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      out[i] = batch[i] * batch[i];
    }
    sum += static_cast<double>(out[0]);
  }
  loop.finish();  // throws what the guards' destructors could not

  const ebb::LoopStats used = loop.stats();
  std::printf("%llu iterations, live peak %zu bytes, sum %g\n",
              static_cast<unsigned long long>(used.iterations), used.live_peak.count(), sum);
  return sum == 2.5 && used.iterations == 10 && used.stragglers == 0 ? 0 : 1;
}
