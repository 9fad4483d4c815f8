// SPDX-License-Identifier: Apache-2.0
#include "replay_report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

namespace ebb::world {

namespace {

double ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

std::optional<std::size_t> find_followed_from(const Played& played) {
  const auto found = std::find_if(played.iterations.begin(), played.iterations.end(),
                                  [](const PlayedIteration& it) { return it.planned != 0; });
  return found == played.iterations.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - played.iterations.begin()));
}

std::size_t find_steady_from(const Played& played) {
  constexpr std::size_t where_none_is_followed = 2;
  std::uint64_t followed = 0;
  for (std::size_t i = 0; i < played.iterations.size(); ++i) {
    followed += played.iterations[i].followed;
    if (followed == 2) {
      return i;
    }
  }
  return std::min(where_none_is_followed, played.iterations.size());
}

std::optional<double> find_ns_per_pair(const Played& time, std::size_t steady_from) {
  std::vector<double> each;
  for (std::size_t i = steady_from; i < time.iterations.size(); ++i) {
    if (time.iterations[i].calls != 0) {
      each.push_back(time.iterations[i].ns * 2 / static_cast<double>(time.iterations[i].calls));
    }
  }
  if (each.empty()) {
    return std::nullopt;
  }
  const auto middle = each.begin() + static_cast<std::ptrdiff_t>(each.size() / 2);
  std::nth_element(each.begin(), middle, each.end());
  return *middle;
}

void raise_over_plan(std::optional<double>& figure, std::uint64_t peak, std::uint64_t before,
                     std::uint64_t height) {
  figure = std::max(figure.value_or(0), ratio(peak - std::min(peak, before), height));
}

}  // namespace

double ReplayReport::worst_gap() const {
  double worst = 0;
  for (const PackedIteration& it : packed) {
    worst = std::max(worst, plan_gap(it.height, it.max_live));
  }
  return worst;
}

double ReplayReport::overhead() const {
  return live_peak == 0 ? 1 : ratio(reserved, live_peak);
}

void summarise(const Trace& trace, const Played& space, const Played& time, ReplayReport& report) {
  report.iterations = trace.iterations();
  report.deviating = trace.deviating;
  report.pairs = trace.bytes.size();
  report.followed_from = find_followed_from(space);
  report.steady_from = find_steady_from(space);
  const auto count = [&report](const PlayedIteration& it) {
    report.live_peak = std::max(report.live_peak, it.live_peak);
    report.reserved = std::max(report.reserved, it.reserved_peak);
  };
  if (!report.followed_from) {
    count(space.before);
  }
  const std::uint64_t height = report.stats.height.count();
  for (std::size_t i = 0; i < space.iterations.size(); ++i) {
    const PlayedIteration& it = space.iterations[i];
    if (i >= report.followed_from.value_or(0)) {
      count(it);
    }
    if (i >= report.steady_from) {
      report.faults += it.faults;
    }
    if (i - trace.deviating_from < trace.deviating && height != 0) {
      raise_over_plan(report.reserved_over_plan, it.reserved_peak, it.live_before, height);
      raise_over_plan(report.live_over_plan, it.live_peak, it.live_before, height);
    }
  }
  count(space.after);
  report.played = space.iterations;
  report.ns_per_pair = find_ns_per_pair(time, report.steady_from);
}

void print_json(const ReplayReport& report) {
  const auto or_null = [](const auto& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json iterations = nlohmann::ordered_json::array();
  for (const PackedIteration& it : report.packed) {
    iterations.push_back({{"max_live", it.max_live.count()}, {"height", it.height.count()}});
  }
  nlohmann::ordered_json played = nlohmann::ordered_json::array();
  for (const PlayedIteration& it : report.played) {
    played.push_back({{"live_peak", it.live_peak},
                      {"reserved", it.reserved_peak},
                      {"followed", it.followed != 0},
                      {"displaced", it.displaced},
                      {"faults", it.faults}});
  }
  const nlohmann::ordered_json json{{"mode", report.mode},
                                    {"iterations_run", report.iterations},
                                    {"deviating", report.deviating},
                                    {"pairs", report.pairs},
                                    {"live_peak", report.live_peak},
                                    {"reserved", report.reserved},
                                    {"planned_bytes", report.stats.height.count()},
                                    {"displaced", report.stats.displaced},
                                    {"replans", report.stats.planned},
                                    {"plans", report.plans},
                                    {"followed", report.stats.followed},
                                    {"deviated", report.stats.deviated},
                                    {"followed_from", or_null(report.followed_from)},
                                    {"steady_from", report.steady_from},
                                    {"faults", report.faults},
                                    {"ns_per_pair", or_null(report.ns_per_pair)},
                                    {"reserved_over_plan", or_null(report.reserved_over_plan)},
                                    {"live_over_plan", or_null(report.live_over_plan)},
                                    {"gap", report.worst_gap()},
                                    {"seconds", report.seconds},
                                    {"iterations", std::move(iterations)},
                                    {"played", std::move(played)}};
  std::printf("%s\n", json.dump(2).c_str());
}

void print_text(const ReplayReport& report) {
  std::printf("mode       %s\n", report.mode.c_str());
  std::printf("iterations %zu", report.iterations);
  if (report.deviating != 0) {
    std::printf(", of which %zu deviate", report.deviating);
  }
  std::printf("\npairs      %" PRIu64 "\n", report.pairs);
  std::printf("live peak  %" PRIu64 "\n", report.live_peak);
  std::printf("reserved   %" PRIu64 ", %.4f of the live peak\n", report.reserved,
              report.overhead());
  if (report.mode == "planned") {
    const PlanSetStats& stats = report.stats;
    std::printf("plans      %zu, of %zu bytes at most; %" PRIu64 " were made\n", report.plans,
                stats.height.count(), stats.planned);
    std::printf("followed   %" PRIu64 " iterations; %" PRIu64 " deviated\n", stats.followed,
                stats.deviated);
    std::printf("displaced  %" PRIu64 " blocks\n", stats.displaced);
  }
  if (report.reserved_over_plan) {
    std::printf("over plan  %.4f, where what lived was %.4f of it\n", *report.reserved_over_plan,
                report.live_over_plan.value_or(0));
  }
  std::printf("faults     %" PRIu64 ", from iteration %zu of the file on\n", report.faults,
              report.steady_from);
  if (report.ns_per_pair) {
    std::printf("per pair   %.1f ns\n", *report.ns_per_pair);
  }
  std::printf("gap        %.6f, of the iteration that packs worst\n", report.worst_gap());
  std::printf("seconds    %.3f\n", report.seconds);
}

}  // namespace ebb::world
