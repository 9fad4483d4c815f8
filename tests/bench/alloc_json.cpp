// SPDX-License-Identifier: Apache-2.0
// From figures named like paths to the entries that the issue and DESIGN section 11 name.
#include "alloc_json.h"

#include "owned_bytes.h"

#include <nlohmann/json.hpp>

namespace ebb::bench {
namespace {

using nlohmann::json;

json ours_by_size(const json& figures, const std::string& prefix) {
  json out;
  for (const std::size_t bytes : owned_sizes) {
    out[size_name(bytes)] = figures.at(prefix + size_name(bytes)).at("ebb");
  }
  return out;
}

// Turns by_figure[prefix + size][side] round: [side][size].
json by_side_and_size(const json& by_figure, const std::string& prefix) {
  json out = json::object();
  for (const std::size_t bytes : owned_sizes) {
    const std::string figure = prefix + size_name(bytes);
    if (by_figure.contains(figure)) {
      for (const auto& [side, value] : by_figure.at(figure).items()) {
        out[side][size_name(bytes)] = value;
      }
    }
  }
  return out;
}

json replay_of(const json& figures, const std::string& trace) {
  const std::string prefix = "replay/" + trace + "/";
  json out;
  for (const auto& [figure, by_side] : figures.items()) {
    if (figure.rfind(prefix, 0) == 0) {
      for (const auto& [side, value] : by_side.items()) {
        out[side][figure.substr(prefix.size())] = value;
      }
    }
  }
  return out;
}

}  // namespace

void add_alloc_entries(json& result, const std::vector<std::string>& traces) {
  const json& figures = result.at("figures");
  const json ratios = result.value("ratios", json::object());  // empty where no rival is installed
  json entries;
  entries["planned_ns"] = ours_by_size(figures, "planned/");
  entries["unplanned_ns"] = ours_by_size(figures, "unplanned/");
  entries["foreign_ns"] = ours_by_size(figures, "foreign/");
  entries["handoff"] = by_side_and_size(ratios, "handoff/");
  entries["handoff_ns"] = by_side_and_size(figures, "handoff/");
  entries["handoff_bare"] = by_side_and_size(ratios, "bare_handoff/");
  entries["handoff_bare_ns"] = by_side_and_size(figures, "bare_handoff/");
  entries["holes_us"] = figures.at("holes_us").at("ebb");
  for (const std::string& trace : traces) {
    const json replay = replay_of(figures, trace);
    entries["reserved_over_live"][trace] = replay.at("ebb").at("reserved_over_live");
    entries["reserved_over_live_planned"][trace] =
        replay.at("ebb planned").at("reserved_over_live");
    entries["reserved_drift_bytes"][trace] = replay.at("ebb").at("reserved_drift_bytes");
    entries["replay"][trace] = replay;
  }
  result.update(entries);
}

}  // namespace ebb::bench
