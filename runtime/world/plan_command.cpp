// SPDX-License-Identifier: Apache-2.0
#include "plan_command.h"

#include "fields.h"
#include "plan_file.h"

#include <ebb/alloc/plan.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace ebb::world {

namespace {

struct Arguments {
  std::string file;
  std::optional<std::uint64_t> capacity;
  std::uint64_t align = 1;
  std::optional<std::uint64_t> nodes;
  std::optional<double> seconds;
  std::string out;
  bool json = false;
};

struct Planned {
  PlanFile file;
  Plan plan;
  double seconds = 0;
};

using Clock = std::chrono::steady_clock;

// Somebody waits for it: about six seconds, in which it solves what replay would leave.
constexpr std::uint64_t default_nodes = 8'000'000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Planned make_plan(const Arguments& arguments) {
  Planned planned{read_plan_file(arguments.file), {}, 0};
  PlanOptions options;
  if (arguments.capacity) {
    options.capacity = Bytes{*arguments.capacity};
  }
  options.nodes = default_nodes;
  const Clock::time_point start = Clock::now();
  if (arguments.seconds) {
    options.nodes = std::numeric_limits<std::uint64_t>::max();
    options.cancel = [start, most = *arguments.seconds] { return seconds_since(start) >= most; };
  }
  options.nodes = arguments.nodes.value_or(options.nodes);
  const Align align{arguments.align};
  planned.plan = plan(planned.file.intervals, align, options);
  planned.seconds = seconds_since(start);
  if (const std::optional<std::string> fault =
          validate(planned.file.intervals, align, planned.plan)) {
    throw std::logic_error("[plan] the plan is wrong, which is a defect of ebb: " + *fault);
  }
  return planned;
}

void print_json(const Arguments& arguments, const Planned& planned) {
  const Plan& plan = planned.plan;
  nlohmann::ordered_json json{{"buffers", plan.offsets.size()},
                              {"max_live", plan.max_live.count()},
                              {"height", plan.height.count()},
                              {"gap", plan.gap()},
                              {"seconds", planned.seconds},
                              {"exact", plan.exact},
                              {"nodes", plan.nodes},
                              {"cut_short", plan.cut_short}};
  if (arguments.capacity) {
    json["capacity"] = *arguments.capacity;
    json["fits"] = !plan.shortfall.has_value();
  }
  if (plan.shortfall) {
    nlohmann::ordered_json ids = nlohmann::ordered_json::array();
    for (const std::uint64_t id : plan.shortfall->ids) {
      ids.push_back(planned.file.names[id]);
    }
    json["shortfall"] = {{"moment", plan.shortfall->moment},
                         {"live", plan.shortfall->live.count()},
                         {"excess", plan.shortfall->excess.count()},
                         {"proven", plan.shortfall->proven},
                         {"ids", std::move(ids)}};
  }
  // The file's ids may be no UTF-8.
  const std::string text =
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

void print_shortfall(const Planned& planned) {
  constexpr std::size_t most_named = 10;
  const PlanShortfall& shortfall = *planned.plan.shortfall;
  std::printf(
      "does not fit: %zu bytes too many; %s\n", shortfall.excess.count(),
      shortfall.proven ? "no plan fits" : "no plan was found that fits, and none is ruled out");
  std::printf("tightest at moment %" PRIu64 ", where %zu buffers live, %zu bytes together:\n",
              shortfall.moment, shortfall.ids.size(), shortfall.live.count());
  const std::size_t named = std::min(shortfall.ids.size(), most_named);
  for (std::size_t i = 0; i < named; ++i) {
    const std::uint64_t id = shortfall.ids[i];
    const PlanInterval& interval = planned.file.intervals[id];
    std::printf("  %s, %zu bytes, alive from %" PRIu64 " to %" PRIu64 "\n",
                planned.file.names[id].c_str(), interval.size.count(), interval.lower,
                interval.upper);
  }
  if (shortfall.ids.size() > named) {
    std::printf("  and %zu smaller ones\n", shortfall.ids.size() - named);
  }
}

void print_text(const Planned& planned) {
  const Plan& plan = planned.plan;
  std::printf("buffers   %zu\n", plan.offsets.size());
  std::printf("max live  %zu\n", plan.max_live.count());
  std::printf("height    %zu\n", plan.height.count());
  std::printf("gap       %.6f\n", plan.gap());
  std::printf("exact     %s\n", plan.exact       ? "yes"
                                : plan.cut_short ? "not proven"
                                                 : "not asked for");
  std::printf("nodes     %" PRIu64 "\n", plan.nodes);
  std::printf("seconds   %.3f\n", planned.seconds);
  if (plan.shortfall) {
    print_shortfall(planned);
  }
}

std::string check_seconds(const std::string& text) {
  return check_real_number(text, 1e9, "number of seconds");
}

int run(const Arguments& arguments) {
  const Planned planned = make_plan(arguments);
  if (!arguments.out.empty()) {
    write_plan_file(arguments.out, planned.file, planned.plan);
  }
  if (arguments.json) {
    print_json(arguments, planned);
  } else {
    print_text(planned);
  }
  return planned.plan.shortfall ? 1 : 0;
}

}  // namespace

void add_plan_command(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand(
      "plan", "Pack buffers of known lifetimes into as little address space as possible");
  command
      .add_option("file", arguments->file,
                  "CSV, also gzipped: id,lower,upper,size; upper exclusive")
      ->required();
  command
      .add_option("--capacity", arguments->capacity,
                  "Bytes to fit into; status 1, and why, if that fails")
      ->check(check_whole_number);
  command.add_option("--align", arguments->align, "Of every offset: a power of two; 1 by default")
      ->check(check_whole_number);
  command
      .add_option("--nodes", arguments->nodes,
                  "Steps of the exact search; 8000000 by default, 0 for greedy orders only")
      ->check(check_whole_number);
  command
      .add_option("--seconds", arguments->seconds,
                  "Search for so long instead; the result is then not the same each time")
      ->check(check_seconds);
  command.add_option("--out", arguments->out, "Write the CSV here, with offset added");
  command.add_flag("--json", arguments->json, "Print one JSON object");
  command.callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace ebb::world
