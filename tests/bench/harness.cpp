// SPDX-License-Identifier: Apache-2.0
// Running the sides of a benchmark in turn, and what comes out of it.
#include "harness.h"

#include <ebb/alloc/version.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <unistd.h>

namespace ebb::bench {
namespace {

using Samples = std::map<std::string, std::vector<double>>;  // by figure

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// How much a figure moves between runs of the same program: largest over least, less one.
double noise(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high / *low - 1;
}

std::string own_path() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (size < 0) {
    throw std::runtime_error("[bench] cannot read /proc/self/exe");
  }
  return {path.data(), static_cast<std::size_t>(size)};
}

std::string command_of(const Side& side) {
  std::string command = "env";
  for (const auto& [name, value] : side.environment) {
    command += value.empty() ? " -u '" + name + "'" : " '" + name + "=" + value + "'";
  }
  return command + " '" + own_path() + "' --side '" + side.name + "'";
}

// Runs one side once and reads its "figure value" lines.
Figures run_child(const Side& side) {
  std::FILE* const pipe = ::popen(command_of(side).c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("[bench] cannot start " + side.name);
  }
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  if (::pclose(pipe) != 0) {
    throw std::runtime_error("[bench] " + side.name + " failed");
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

int run_side(const Benchmark& benchmark, const std::string& name) {
  for (const Side& side : benchmark.sides) {
    if (side.name == name) {
      for (const auto& [figure, value] : side.measure()) {
        std::printf("%s %.9g\n", figure.c_str(), value);
      }
      return 0;
    }
  }
  std::fprintf(stderr, "bench: no side is called '%s'\n", name.c_str());
  return 2;
}

std::string first_line(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(key, 0) == 0) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? line : line.substr(colon + 2);
    }
  }
  return "unknown";
}

nlohmann::json machine() {
  return {{"processor", first_line("/proc/cpuinfo", "model name")},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"load", first_line("/proc/loadavg", "")},
          {"compiler", __VERSION__},
          {"ebb", ebb::version()}};
}

void print_header(const Benchmark& benchmark, const nlohmann::json& machine) {
  std::printf("%s, %s, medians of %d runs\n%s, %ld cores, load %s\n", benchmark.name.c_str(),
              benchmark.unit.c_str(), benchmark.rounds,
              machine["processor"].get<std::string>().c_str(), machine["cores"].get<long>(),
              machine["load"].get<std::string>().c_str());
}

// Prints one line per figure and returns the same as JSON.
nlohmann::json summarise(const Benchmark& benchmark,
                         const std::map<std::string, Samples>& samples) {
  nlohmann::json out;
  std::set<std::string> figures;
  for (const auto& [side, by_figure] : samples) {
    for (const auto& [figure, values] : by_figure) {
      figures.insert(figure);
    }
  }
  for (const std::string& figure : figures) {
    std::printf("%-28s", figure.c_str());
    double ours = 0;
    for (const Side& side : benchmark.sides) {
      const auto found = samples.find(side.name);
      if (found == samples.end() || found->second.count(figure) == 0) {
        continue;
      }
      const std::vector<double>& values = found->second.at(figure);
      const double middle = median(values);
      out["figures"][figure][side.name] = middle;
      out["noise"][figure][side.name] = noise(values);
      std::printf("  %s %.4g", side.name.c_str(), middle);
      if (side.name == benchmark.sides.front().name) {
        ours = middle;
      } else if (ours > 0) {
        out["ratios"][figure][side.name] = middle / ours;
        std::printf(" (x%.2f)", middle / ours);
      }
      std::printf(" +-%.0f%%", 50 * noise(values));
    }
    std::printf("\n");
  }
  return out;
}

}  // namespace

std::string first_existing(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) == 0) {
      return path;
    }
  }
  return {};
}

int run(const Benchmark& benchmark, int argc, char** argv) {
  std::string json_path;
  if (const char* const folder = std::getenv("EBB_BENCH_JSON")) {
    json_path = std::string(folder) + "/" + benchmark.name + ".json";
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--side") {
      return run_side(benchmark, argv[i + 1]);
    }
    if (option == "--json") {
      json_path = argv[i + 1];
    }
  }
  try {
    nlohmann::json result = {{"name", benchmark.name}, {"unit", benchmark.unit}};
    result["machine"] = machine();
    print_header(benchmark, result["machine"]);
    std::map<std::string, Samples> samples;
    for (const Side& side : benchmark.sides) {
      if (!side.missing.empty()) {
        std::printf("left out: %s (%s)\n", side.name.c_str(), side.missing.c_str());
        result["left_out"][side.name] = side.missing;
      }
    }
    for (int round = 0; round < benchmark.rounds; ++round) {
      for (const Side& side : benchmark.sides) {
        if (side.missing.empty()) {
          for (const auto& [figure, value] : run_child(side)) {
            samples[side.name][figure].push_back(value);
          }
        }
      }
    }
    result.update(summarise(benchmark, samples));
    if (!json_path.empty()) {
      std::ofstream(json_path) << result.dump(2) << "\n";
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}

}  // namespace ebb::bench
