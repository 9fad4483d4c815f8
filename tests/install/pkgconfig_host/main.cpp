// SPDX-License-Identifier: Apache-2.0
// A host built by one compiler call, g++ -std=c++20 main.cpp $(pkg-config --cflags --libs ebb):
// the bare guard in a loop that exists already. An install test and a model for hosts.
#include <ebb/ebb.h>

#include <cstdio>

int main() {
  ebb::Runtime rt;
  ebb::Loop loop(rt, {.name = "pkgconfig_host"});
  double sum = 0;
  for (int step = 0; step < 10; ++step) {
    ebb::Iteration it(loop);
    const ebb::Tensor ones = ebb::full({1}, 1);
    sum += ones.item<float>();
  }
  loop.finish();
  std::printf("ebb %s under pkg-config: %g\n", ebb::version(), sum);
  return sum == 10 ? 0 : 1;
}
