// SPDX-License-Identifier: Apache-2.0
// What every benchmark shares: sides that run as child processes in turn, medians, ratios, one
// table and one JSON file. A benchmark is a main that calls run() with its sides. Single-threaded.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ebb::bench {

// What one run of one side measured, by name: seconds, nanoseconds or bytes, as unit says.
using Figures = std::map<std::string, double>;

// How much to measure.
struct Effort {
  bool quick = false;  // just enough to see that everything runs: the figures mean nothing
  int calls(int full) const { return quick ? 1 + full / 200 : full; }
};

// One contender: ebb itself (first), or a rival as one would deploy it.
struct Side {
  std::string name;
  std::function<Figures(const Effort&)> measure;
  // Set in the child's environment, for example LD_PRELOAD; an empty value unsets.
  std::map<std::string, std::string> environment = {};
  // Why the side cannot run here; empty: it can. Such a side is named and left out.
  std::string missing = {};
  // Which part of the benchmark this measures, in a process of its own. All sides of a part stand
  // together, so that they run in turn.
  std::string part = "all";
};

struct Benchmark {
  std::string name;
  std::string unit = "ns";
  std::vector<Side> sides;
  int rounds = 5;
  // What cannot run here, and why; the sides that are missing are added.
  std::map<std::string, std::string> left_out = {};
  // Adds the benchmark's own entries to the result, which holds figures[figure][side], noise and
  // ratios by then. Throws when a figure is missing. May be empty.
  std::function<void(nlohmann::json& result)> report = {};
};

// Runs the sides A B C A B C ... as child processes, prints the medians and the ratios rival over
// ours (above 1: ebb is better), and writes them as JSON to --json FILE, or to NAME.json in the
// folder that EBB_BENCH_JSON names. Further options: --rounds N, --quick, and --part NAME, after
// which report is not called. Returns the exit code.
int run(const Benchmark& benchmark, int argc, char** argv);

// For reports: what side has as figures["a/b"] becomes result["a"]["b"].
void lift_figures(nlohmann::json& result, const std::string& side);

// Returns the middle one. values is not empty.
double median(std::vector<double> values);

// Time is taken in windows, and the lower quartile counts: on a busy machine many windows are
// disturbed, always upwards and by much.
inline constexpr int windows = 64;

// Returns the lower quartile of times, which is not empty.
double undisturbed(std::vector<double> times);

// Returns nanoseconds per call of body, which is called count times, with 0 to count - 1.
template <class Body>
double nanoseconds_per_call(int count, Body body) {
  using Clock = std::chrono::steady_clock;
  const int size = 1 + count / windows;
  std::vector<double> times;
  for (int first = 0; first < count; first += size) {
    const int last = std::min(first + size, count);
    const auto start = Clock::now();
    for (int i = first; i < last; ++i) {
      body(i);
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - start;
    times.push_back(took.count() / (last - first));
  }
  return undisturbed(std::move(times));
}

// Returns the first of paths that exists, or nothing: where a rival's shared library may be.
std::string first_existing(const std::vector<std::string>& paths);

// Keeps the compiler from leaving out what computes value.
template <class T>
void keep_alive(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace ebb::bench
