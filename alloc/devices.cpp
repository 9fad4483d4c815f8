// SPDX-License-Identifier: Apache-2.0
// The list of devices: the CPU from the system, the others from the backend. Any thread.
#include "backend.h"

#include <ebb/alloc/devices.h>

#include <atomic>
#include <fstream>
#include <utility>

#include <unistd.h>

namespace ebb::inline v0 {

namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "CPU";
}

Bytes cpu_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0
             ? Bytes{static_cast<std::size_t>(pages)} * static_cast<std::size_t>(page)
             : Bytes{};
}

}  // namespace

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> list{{cpu, cpu_name(), cpu_memory()}};
  for (DeviceInfo& info : make_backend()->devices()) {
    list.push_back(std::move(info));
  }
  return list;
}

std::string no_cuda_reason() {
  return make_backend()->missing();
}

// The two serial counters of the process: numbers must differ between runtimes too. [rt.global]
// Relaxed: only distinctness matters.
std::uint32_t next_stream_id(std::uint32_t lane) noexcept {
  static std::atomic<std::uint32_t> last{0};
  return (last.fetch_add(1, std::memory_order_relaxed) + 1) * Stream::lanes + lane;
}

std::uint64_t next_event_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace ebb::inline v0
