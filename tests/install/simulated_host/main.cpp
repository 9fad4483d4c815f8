// SPDX-License-Identifier: Apache-2.0
// A host's test on simulated devices, linked to ebb-sim: what it finds is what runs without a GPU.
// An install test, built with pkg-config, with CMake and with Meson.
#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>

#include <cstdio>

int main() {
  ebb::SimMachine machine({.devices = 2, .memory = ebb::Bytes{1 << 26}});
  const ebb::Device last = machine.device(1);
  machine.set_capacity(last, ebb::Bytes{1 << 22});
  const bool is_untouched = machine.is_idle() && machine.violations().empty() &&
                            machine.counts().of(ebb::SimCall::make_context) == 0;
  std::printf("ebb %s with %s\n", ebb::version(), ebb::to_string(last).c_str());
  return is_untouched && machine.memory(last).capacity == ebb::Bytes{1 << 22} ? 0 : 1;
}
