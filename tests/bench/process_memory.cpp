// SPDX-License-Identifier: Apache-2.0
// Reading /proc/self and getrusage.
#include "process_memory.h"

#include <fstream>
#include <stdexcept>
#include <string>

#include <sys/resource.h>

namespace ebb::bench {
namespace {

std::uint64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::uint64_t kib = 0;
  while (status >> word) {
    if (word == key && status >> kib) {
      return kib * 1024;
    }
  }
  throw std::runtime_error("[process_memory] /proc/self/status has no " + key);
}

}  // namespace

std::uint64_t minor_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

std::uint64_t resident_bytes() {
  return status_bytes("VmRSS:");
}

std::uint64_t resident_peak_bytes() {
  return status_bytes("VmHWM:");
}

void forget_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::endl;
  if (!file) {
    throw std::runtime_error("[process_memory] the peak of resident memory cannot be reset");
  }
}

}  // namespace ebb::bench
