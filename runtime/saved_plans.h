// SPDX-License-Identifier: Apache-2.0
// The file of a loop's saved plans, as text. Used by Loop. Any thread, but one at a time for each
// path. [alloc.replay]
#pragma once

#include <string>
#include <string_view>

namespace ebb::inline v0::detail {

// Writes beside path, then renames: whoever reads it sees the old file or the new one. Throws
// std::runtime_error as Loop::save_plans, and leaves nothing behind then.
void write_plan_file(const std::string& path, std::string_view text);

// Throws std::runtime_error as Loop::load_plans.
std::string read_plan_file(const std::string& path);

}  // namespace ebb::inline v0::detail
