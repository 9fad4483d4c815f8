// SPDX-License-Identifier: Apache-2.0
// Numbers that the system keeps of this process. Used by tests and benchmarks. Any thread.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

namespace ebb::test {

// Returns a number of /proc/self/status, such as "Threads:" or "VmRSS:" (in KiB). Throws
// std::runtime_error when there is none of that name.
inline long self_status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long value = 0;
    if (word == key && status >> value) {
      return value;
    }
  }
  throw std::runtime_error("[self_status] /proc/self/status has no " + key);
}

// The same in bytes, for what is told in KiB.
inline std::size_t self_status_bytes(const std::string& key) {
  return static_cast<std::size_t>(self_status(key)) * 1024;
}

}  // namespace ebb::test
