// SPDX-License-Identifier: Apache-2.0
// `ebb plan`: packs a file of lifetimes. Used by ebb.cpp. Single-threaded.
#pragma once

#include <CLI/CLI.hpp>

namespace ebb::world {

// Adds the subcommand, which sets status to 0 where the plan fits, or no capacity was asked for,
// and to 1 where it does not. Both must outlive the parsing. What it is given wrong it throws as
// std::runtime_error or std::invalid_argument.
void add_plan_command(CLI::App& app, int& status);

}  // namespace ebb::world
