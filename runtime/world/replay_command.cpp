// SPDX-License-Identifier: Apache-2.0
#include "replay_command.h"

#include "fields.h"
#include "replay_report.h"
#include "trace_deviation.h"
#include "trace_file.h"
#include "trace_memory.h"
#include "trace_plans.h"
#include "trace_player.h"

#include <ebb/alloc/replay.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace ebb::world {

namespace {

struct Arguments {
  std::string file;
  std::string mode = "planned";
  std::optional<double> deviate;
  std::uint64_t seed = 1;
  bool touch = false;
  bool json = false;
};

using Clock = std::chrono::steady_clock;

constexpr PlayOptions only_time{.measure = Measure::time, .touch = false};

// Each memory is played twice, each time from the begin: what measures space would be part of the
// time.
void play_heap(const Trace& trace, bool planned, const PlayOptions& options, ReplayReport& report) {
  const auto play_once = [&](const PlayOptions& how) {
    PlanSet plans;
    PlanSet* const followed = planned ? &plans : nullptr;
    HeapMemory memory(trace, followed);
    Played played = play(trace, memory, followed, how);
    report.stats = plans.stats();
    report.plans = plans.plans().size();
    return played;
  };
  const Played space = play_once(options);
  const Played time = play_once(only_time);
  summarise(trace, space, time, report);
}

void play_system(const Trace& trace, const PlayOptions& options, ReplayReport& report) {
  SystemMemory memory;
  const Played space = play(trace, memory, options);
  summarise(trace, space, play(trace, memory, only_time), report);
}

ReplayReport replay(const Arguments& arguments) {
  const Clock::time_point start = Clock::now();
  ReplayReport report;
  report.mode = arguments.mode;
  Trace trace = read_trace_file(arguments.file);
  report.packed = pack_iterations(trace);
  if (arguments.deviate) {
    trace = with_deviations(trace, *arguments.deviate, arguments.seed);
  }
  const PlayOptions options{.measure = Measure::space, .touch = arguments.touch};
  if (arguments.mode == "system") {
    play_system(trace, options, report);
  } else {
    play_heap(trace, arguments.mode == "planned", options, report);
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

int run(const Arguments& arguments) {
  try {
    const ReplayReport report = replay(arguments);
    arguments.json ? print_json(report) : print_text(report);
    return 0;
  } catch (const BrokenBlock& broken) {
    std::fprintf(stderr, "ebb: %s\n", broken.what());
    return 1;
  }
}

std::string check_percent(const std::string& text) {
  return check_real_number(text, 100, "percentage");
}

}  // namespace

void add_replay_command(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand(
      "replay", "Play a trace of allocations, following plans of its iterations");
  command
      .add_option("file", arguments->file,
                  "CSV, also gzipped: a,thread,id,bytes; f,thread,id; i,thread,iteration")
      ->required();
  command
      .add_option("--mode", arguments->mode,
                  "planned (the default); heap: without plans; system: malloc, whose reserved is "
                  "what the process grows by, so with --touch only")
      ->check(CLI::IsMember({"planned", "heap", "system"}));
  CLI::Option* const deviate =
      command
          .add_option("--deviate", arguments->deviate,
                      "Then play the iterations once more, with so many percent of the allocations "
                      "left out, added, resized or freed late")
          ->check(check_percent);
  command.add_option("--seed", arguments->seed, "Of the deviations; 1 by default")
      ->check(check_whole_number)
      ->needs(deviate);
  command.add_flag("--touch", arguments->touch,
                   "Write into every page of every block, and check it before the free");
  command.add_flag("--json", arguments->json, "Print one JSON object");
  command.callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace ebb::world
