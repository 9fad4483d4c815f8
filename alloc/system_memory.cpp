// SPDX-License-Identifier: Apache-2.0
// Reads the kernel's own figures, without streams: this runs where memory is short. Any thread.
#include "system_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace ebb::inline v0::detail {

namespace {

constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

// Returns the number that follows key in a file of the kernel's, else unknown.
std::size_t read_number(const char* path, std::string_view key) noexcept {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return unknown;
  }
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  const std::string_view text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) {
    return unknown;
  }
  const std::size_t digits = text.find_first_not_of(" \t", found + key.size());
  std::size_t number = unknown;
  if (digits != std::string_view::npos) {
    std::from_chars(text.data() + digits, text.data() + text.size(), number);
  }
  return number;
}

}  // namespace

std::size_t available_memory_bytes() noexcept {
  const std::size_t kib = read_number("/proc/meminfo", "MemAvailable:");
  const std::size_t machine = kib > unknown / 1024 ? unknown : kib * 1024;
  const std::size_t most = read_number("/sys/fs/cgroup/memory.max", "");
  const std::size_t used = read_number("/sys/fs/cgroup/memory.current", "");
  if (most == unknown || used == unknown) {
    return machine;
  }
  return std::min(machine, most - std::min(most, used));
}

std::size_t machine_memory_bytes() noexcept {
  static const std::size_t bytes = [] {
    struct sysinfo info {};
    return ::sysinfo(&info) == 0 ? (info.totalram + info.totalswap) * std::size_t{info.mem_unit}
                                 : unknown;
  }();
  return bytes;
}

}  // namespace ebb::inline v0::detail
