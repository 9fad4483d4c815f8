// SPDX-License-Identifier: Apache-2.0
// `ebb replay`: plays a trace of allocations. Used by ebb.cpp. Single-threaded.
#pragma once

#include <CLI/CLI.hpp>

namespace ebb::world {

// Adds the subcommand, which sets status to 0, or to 1 where a block was found overwritten. Both
// must outlive the parsing. What it is given wrong it throws as std::runtime_error.
void add_replay_command(CLI::App& app, int& status);

}  // namespace ebb::world
