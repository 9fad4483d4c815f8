// SPDX-License-Identifier: Apache-2.0
// A host built by one compiler call: g++ main.cpp $(pkg-config --cflags --libs ebb).
// An install test, and a model for hosts. Main thread.
#include <ebb/alloc/version.h>

#include <cstdio>

int main() {
  std::printf("ebb %s under pkg-config\n", ebb::version());
  return 0;
}
