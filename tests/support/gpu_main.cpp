// SPDX-License-Identifier: Apache-2.0
// The main of tests that need a CUDA device: without one they are reported as skipped (77). Used by
// tests of kind gpu. Main thread only.
#include <ebb/alloc/devices.h>

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  const std::string reason = ebb::no_cuda_reason();
  if (!reason.empty()) {
    std::printf("skipped: no CUDA device (%s)\n", reason.c_str());
    return skipped;
  }
  return doctest::Context(argc, argv).run();
}
