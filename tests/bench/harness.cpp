// SPDX-License-Identifier: Apache-2.0
// Running the sides of a benchmark in turn, and what comes out of it.
#include "harness.h"

#include "child.h"

#include <ebb/alloc/version.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>

#include <unistd.h>

namespace ebb::bench {
namespace {

using Samples = std::map<std::string, std::vector<double>>;  // by figure

// How much a figure moves between runs of the same program: largest over least, less one.
double noise(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high > 0 && *low > 0 ? *high / *low - 1 : *high - *low;
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

std::string load_now() {
  return first_line("/proc/loadavg", "");
}

nlohmann::json machine() {
  return {{"processor", first_line("/proc/cpuinfo", "model name")},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"load", load_now()},
          {"compiler", __VERSION__},
          {"ebb", ebb::version()}};
}

struct Options {
  std::string json_path;
  std::string side;
  std::string part;
  int rounds = 0;
  Effort effort;
};

Options parse(const Benchmark& benchmark, int argc, char** argv) {
  Options options;
  options.rounds = benchmark.rounds;
  if (const char* const folder = std::getenv("EBB_BENCH_JSON")) {
    options.json_path = std::string(folder) + "/" + benchmark.name + ".json";
  }
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") {
      options.effort.quick = true;
      continue;
    }
    if (++i == argc) {
      throw std::invalid_argument("'" + option + "' is no option, or lacks its value");
    }
    if (option == "--json") {
      options.json_path = argv[i];
    } else if (option == "--side") {
      options.side = argv[i];
    } else if (option == "--part") {
      options.part = argv[i];
    } else if (option == "--rounds" && std::atoi(argv[i]) > 0) {
      options.rounds = std::atoi(argv[i]);
    } else {
      throw std::invalid_argument("there is no option " + option + " " + argv[i]);
    }
  }
  return options;
}

void print_header(const Benchmark& benchmark, const Options& options,
                  const nlohmann::json& machine) {
  std::printf("%s, %s, medians of %d runs%s\n%s, %ld cores, load %s\n", benchmark.name.c_str(),
              benchmark.unit.c_str(), options.rounds,
              options.effort.quick ? " (quick: the figures mean nothing)" : "",
              machine["processor"].get<std::string>().c_str(), machine["cores"].get<long>(),
              machine["load"].get<std::string>().c_str());
}

// Names what cannot run here, once each.
nlohmann::json tell_left_out(const Benchmark& benchmark) {
  std::map<std::string, std::string> left_out = benchmark.left_out;
  for (const Side& side : benchmark.sides) {
    if (!side.missing.empty()) {
      left_out[side.name] = side.missing;
    }
  }
  for (const auto& [name, why] : left_out) {
    std::printf("left out: %s (%s)\n", name.c_str(), why.c_str());
  }
  return left_out;
}

std::map<std::string, Samples> measure(const Benchmark& benchmark, const Options& options) {
  std::map<std::string, Samples> samples;
  for (int round = 0; round < options.rounds; ++round) {
    for (const Side& side : benchmark.sides) {
      if (side.missing.empty() && (options.part.empty() || options.part == side.part)) {
        for (const auto& [figure, value] : run_child(side, options.effort)) {
          samples[side.name][figure].push_back(value);
        }
      }
    }
  }
  if (samples.empty()) {
    throw std::invalid_argument("nothing to run" +
                                (options.part.empty() ? "" : " in part " + options.part));
  }
  return samples;
}

// In the order of the sides, ours first.
std::vector<std::string> names_of(const Benchmark& benchmark) {
  std::vector<std::string> names;
  for (const Side& side : benchmark.sides) {
    if (std::find(names.begin(), names.end(), side.name) == names.end()) {
      names.push_back(side.name);
    }
  }
  return names;
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
  const std::vector<std::string> names = names_of(benchmark);
  for (const std::string& figure : figures) {
    std::printf("%-28s", figure.c_str());
    double ours = 0;
    for (const std::string& name : names) {
      const auto found = samples.find(name);
      if (found == samples.end() || found->second.count(figure) == 0) {
        continue;
      }
      const std::vector<double>& values = found->second.at(figure);
      const double middle = median(values);
      out["figures"][figure][name] = middle;
      out["noise"][figure][name] = noise(values);
      std::printf("  %s %.4g", name.c_str(), middle);
      if (name == names.front()) {
        ours = middle;
      } else if (ours > 0) {
        out["ratios"][figure][name] = middle / ours;
        std::printf(" (x%.2f)", middle / ours);
      }
      std::printf(" +-%.0f%%", 50 * noise(values));
    }
    std::printf("\n");
  }
  return out;
}

void run_all(const Benchmark& benchmark, const Options& options) {
  nlohmann::json result = {{"name", benchmark.name}, {"unit", benchmark.unit}};
  result["machine"] = machine();
  result["rounds"] = options.rounds;
  result["quick"] = options.effort.quick;
  print_header(benchmark, options, result["machine"]);
  result["left_out"] = tell_left_out(benchmark);
  result.update(summarise(benchmark, measure(benchmark, options)));
  result["machine"]["load_after"] = load_now();
  if (benchmark.report && options.part.empty()) {
    benchmark.report(result);
  }
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    file << result.dump(2) << std::endl;
    if (!file) {
      throw std::runtime_error("cannot write " + options.json_path);
    }
  }
}

}  // namespace

void lift_figures(nlohmann::json& result, const std::string& side) {
  nlohmann::json lifted;
  for (const auto& [figure, by_side] : result.at("figures").items()) {
    if (by_side.contains(side)) {
      lifted[nlohmann::json::json_pointer("/" + figure)] = by_side.at(side);
    }
  }
  result.update(lifted);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double undisturbed(std::vector<double> times) {
  const auto quartile = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
  std::nth_element(times.begin(), quartile, times.end());
  return *quartile;
}

std::string first_existing(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) == 0) {
      return path;
    }
  }
  return {};
}

int run(const Benchmark& benchmark, int argc, char** argv) {
  try {
    const Options options = parse(benchmark, argc, argv);
    if (!options.side.empty()) {
      return run_side(benchmark, options.side, options.part, options.effort);
    }
    run_all(benchmark, options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}

}  // namespace ebb::bench
