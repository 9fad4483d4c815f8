// SPDX-License-Identifier: Apache-2.0
// Files of lifetimes: CSV, plain or gzipped, with the columns id, lower, upper and size, upper
// exclusive. Used by `ebb plan`. Values and functions, any thread.
#pragma once

#include <ebb/alloc/plan.h>

#include <string>
#include <vector>

namespace ebb::world {

struct PlanFile {
  std::vector<std::string> names;       // the ids of the file
  std::vector<PlanInterval> intervals;  // by whose own ids the names are found
};

// The header names the columns, in any order; others are not looked at. Throws std::runtime_error
// with the file and the line for what is no number, is negative, empty or comes twice.
PlanFile read_plan_file(const std::string& path);

// Writes id, lower, upper, size and offset. Throws std::runtime_error.
void write_plan_file(const std::string& path, const PlanFile& file, const Plan& plan);

}  // namespace ebb::world
