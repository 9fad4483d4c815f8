// SPDX-License-Identifier: Apache-2.0
// Starting a side as a child process and reading the figures that it prints.
#include "child.h"

#include <array>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include <unistd.h>

namespace ebb::bench {
namespace {

std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (size < 0) {
    throw std::runtime_error("[bench] cannot read /proc/self/exe");
  }
  return {path.data(), static_cast<std::size_t>(size)};
}

std::string command_of(const Side& side, const Effort& effort) {
  std::string command = "env";
  for (const auto& [name, value] : side.environment) {
    command += value.empty() ? " -u '" + name + "'" : " '" + name + "=" + value + "'";
  }
  return command + " '" + own_path() + "' --side '" + side.name + "' --part '" + side.part + "'" +
         (effort.quick ? " --quick" : "");
}

}  // namespace

Figures run_child(const Side& side, const Effort& effort) {
  const std::string what = side.name + " (" + side.part + ")";
  std::FILE* const pipe = ::popen(command_of(side, effort).c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("[bench] cannot start " + what);
  }
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  if (::pclose(pipe) != 0) {
    throw std::runtime_error("[bench] " + what + " failed");
  }
  Figures figures;
  std::istringstream lines(output);
  std::string name;
  double value = 0;
  while (lines >> name >> value) {
    figures[name] = value;
  }
  return figures;
}

int run_side(const Benchmark& benchmark, const std::string& name, const std::string& part,
             const Effort& effort) {
  for (const Side& side : benchmark.sides) {
    if (side.name == name && side.part == part) {
      for (const auto& [figure, value] : side.measure(effort)) {
        std::printf("%s %.9g\n", figure.c_str(), value);
      }
      return 0;
    }
  }
  std::fprintf(stderr, "bench: no side is called '%s' in part '%s'\n", name.c_str(), part.c_str());
  return 2;
}

}  // namespace ebb::bench
