// SPDX-License-Identifier: Apache-2.0
// What the trainer shows while it runs, and what it writes when it is done. Used by main.cpp, on
// the loop's thread.
#pragma once

#include "options.h"

#include <ebb/runtime/loop.h>
#include <ebb/runtime/progress.h>

#include <chrono>
#include <optional>

class Report {
 public:
  Report(const Options& options, ebb::Loop& loop, std::uint64_t steps_per_epoch);

  // Counts a step, whose loss is a scalar on any device; after the last of an epoch waits for the
  // device, and prints the mean of the loss that the loop logged.
  void step(std::int64_t samples, const ebb::Tensor& loss);
  // Stops the clock, and notes what the iterations used.
  void end_training();
  // Prints the summary, and writes the JSON file if one was asked for.
  void finish(double accuracy);

 private:
  double seconds() const;
  void print_device() const;
  void print_plan() const;
  void end_epoch();
  void write_json(double accuracy) const;

  const Options& options_;
  ebb::Loop& loop_;
  std::uint64_t steps_per_epoch_;
  std::uint64_t samples_ = 0;
  std::uint64_t steps_ = 0;
  ebb::Tensor losses_;  // of all steps, where they are made: so that nobody waits for one
  std::optional<ebb::Progress> progress_;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point end_;
  ebb::LoopStats used_;
  ebb::CacheInfo device_;  // what was used of the device's memory, where there is one
  std::optional<ebb::LoopPlans> plan_;
};
