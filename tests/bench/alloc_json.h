// SPDX-License-Identifier: Apache-2.0
// The named entries of the alloc benchmark's JSON, made from its figures. Used by its main.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ebb::bench {

// Figures are called "unplanned/64B", "foreign/64B", "handoff/64B", "bare_handoff/64B", "holes_us"
// and "replay/mlp/time_ms". Adds to result
//   unplanned_ns, foreign_ns   ours, by size
//   handoff, handoff_bare      rival over ours, by rival and size; with _ns: by side and size
//   holes_us                   ours
//   replay                     by trace and side
//   reserved_over_live, reserved_drift_bytes   ours, by trace
// Throws when a figure of ours is missing.
void add_alloc_entries(nlohmann::json& result, const std::vector<std::string>& traces);

}  // namespace ebb::bench
