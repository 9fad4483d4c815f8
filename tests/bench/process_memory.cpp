// SPDX-License-Identifier: Apache-2.0
// Reading /proc/self and getrusage.
#include "process_memory.h"

#include "support/process_status.h"

#include <fstream>
#include <stdexcept>

#include <sys/resource.h>

namespace ebb::bench {

std::uint64_t minor_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

std::uint64_t resident_bytes() {
  return ebb::test::self_status_bytes("VmRSS:");
}

std::uint64_t resident_peak_bytes() {
  return ebb::test::self_status_bytes("VmHWM:");
}

void forget_resident_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::endl;
  if (!file) {
    throw std::runtime_error("[process_memory] the peak of resident memory cannot be reset");
  }
}

}  // namespace ebb::bench
