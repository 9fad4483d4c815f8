// SPDX-License-Identifier: Apache-2.0
// Loops that save their plans for the next run, and load those of the one before. [alloc.replay]
#include "alloc/plan_text.h"
#include "plan_rig.h"
#include "support/temporary_folder.h"

#include <ebb/runtime/loop.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::Body;
using ebb::test::quiet;
using ebb::test::run;
using ebb::test::step;
using ebb::test::TempFolder;

namespace {

constexpr Place train{"train.cpp", 10};
constexpr Place evaluate{"evaluate.cpp", 20};

void evaluation(Iteration& it) {
  const Tensor one = full(it, {5000}, 1);
  const Tensor other = full(it, {50}, 2);
}

// A run of a program: a runtime, and a loop that iterates at places.
struct Run {
  Runtime rt{quiet()};
  Loop loop{rt};

  void learn(const Place& at, const Body& body) {
    run(loop, 3, body, at);
    REQUIRE(loop.wait_plan());
  }
  LoopPlans plans_of(const Place& at) const {
    const std::vector<LoopPlans> all = loop.plans();
    const auto is_it = [&at](const LoopPlans& plans) { return plans.place.is_same_as(at); };
    REQUIRE(std::count_if(all.begin(), all.end(), is_it) == 1);
    return *std::find_if(all.begin(), all.end(), is_it);
  }
};

// The plans of a run of two places.
std::string saved_in(const TempFolder& folder) {
  const std::string path = folder.path() / "plans";
  Run before;
  before.learn(train, step);
  before.learn(evaluate, evaluation);
  before.loop.save_plans(path);
  return path;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the message.
template <class Error>
std::string refusal(Loop& loop, const std::string& path) {
  try {
    loop.load_plans(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

void check_refused(const std::string& text, std::size_t line, const std::string& why) {
  CAPTURE(text);
  const TempFolder folder;
  const std::string path = folder.write("plans", text);
  Run after;
  const std::string message = refusal<std::invalid_argument>(after.loop, path);
  const std::string begin = "[Loop::load_plans] " + path + ": line " + std::to_string(line) + ": ";
  CHECK_MESSAGE(message.starts_with(begin + why), message);
  CHECK(after.loop.plans().empty());
  after.learn(train, step);
  CHECK(after.plans_of(train).plans.size() == 1);
}

// Without the line that starts so.
std::string without(std::string text, const std::string& line) {
  const std::size_t begin = text.find("\n" + line) + 1;
  return text.erase(begin, text.find('\n', begin) + 1 - begin);
}

}  // namespace

TEST_CASE("saved plans: iterations at two places follow them from the first one on") {
  const TempFolder folder;
  const std::string path = saved_in(folder);
  Run after;
  after.loop.load_plans(path);
  REQUIRE(after.loop.plans().size() == 2);
  CHECK(after.plans_of(train).plans.size() == 1);
  CHECK(after.plans_of(train).stats.iterations == 0);
  const std::string name = "train.cpp";  // as another library has it
  for (int i = 0; i < 5; ++i) {
    run(after.loop, 1, step, train);
    run(after.loop, 1, evaluation, evaluate);
    run(after.loop, 1, step, {name.c_str(), train.line});
  }
  CHECK(after.loop.plans().size() == 2);
  CHECK(after.plans_of(train).stats.followed == 10);
  CHECK(after.plans_of(evaluate).stats.followed == 5);
  for (const LoopPlans& plans : after.loop.plans()) {
    CHECK(plans.stats.iterations == plans.stats.followed);
    CHECK(plans.stats.displaced == 0);
    CHECK(plans.stats.planned == 0);
  }
}

TEST_CASE("saved plans: what was loaded is saved again, and replaces the file as a whole") {
  const TempFolder folder;
  const std::string path = saved_in(folder);
  const std::string before = content_of(path);
  Run after;
  after.loop.load_plans(path);
  after.loop.save_plans(path);
  CHECK(content_of(path) == before);
  run(after.loop, 1, evaluation, evaluate);
  run(after.loop, 1, [](Iteration& it) { (void)full(it, {7}, 1); }, {"once.cpp", 1});
  after.loop.save_plans(path);
  CHECK(content_of(path) == before);
  using Files = std::filesystem::directory_iterator;
  CHECK(std::distance(Files(folder.path()), Files()) == 1);
}

TEST_CASE("saved plans: a loop without plans saves none, and loads that") {
  const TempFolder folder;
  const std::string path = folder.path() / "plans";
  Run before;
  before.loop.save_plans(path);
  Run after;
  after.loop.load_plans(path);
  CHECK(after.loop.plans().empty());
}

TEST_CASE("saved plans: those of places with plans come before theirs") {
  const TempFolder folder;
  const std::string path = saved_in(folder);
  Run after;
  const auto longer = [](Iteration& it) {
    step(it);
    (void)full(it, {333}, 1);
  };
  after.learn(train, longer);
  after.loop.load_plans(path);
  REQUIRE(after.plans_of(train).plans.size() == 2);
  CHECK(after.plans_of(train).plans[0].buffers == 6);
  CHECK(after.plans_of(train).plans[1].buffers == 7);
  CHECK(after.plans_of(evaluate).plans.size() == 1);
  const PlanSetStats stats = after.plans_of(train).stats;
  run(after.loop, 4, step, train);
  CHECK(after.plans_of(train).stats.followed == stats.followed + 4);
}

TEST_CASE("saved plans: a program that has changed since makes its own") {
  const TempFolder folder;
  const std::string path = saved_in(folder);
  Run after;
  after.loop.load_plans(path);
  after.learn(train, evaluation);
  run(after.loop, 4, evaluation, train);
  CHECK(after.plans_of(train).stats.followed >= 4);
  CHECK(after.plans_of(train).plans[0].buffers == 2);
}

TEST_CASE(
    "saved plans: an outer loop's are whole when the loop of the iterations within has gone") {
  const TempFolder folder;
  const std::string inner_path = folder.path() / "inner";
  const std::string outer_path = folder.path() / "outer";
  const auto iterate = [](Run& its, Loop& inner, int iterations) {
    const auto body = [&](Iteration& it) {
      const Tensor around = full(it, {2000}, 1);
      Iteration nested(inner, evaluate);
      evaluation(nested);
    };
    for (int i = 0; i < iterations; ++i) {
      run(its.loop, 1, body, train);
      REQUIRE(inner.wait_plan());
      REQUIRE(its.loop.wait_plan());
    }
  };
  {
    Run before;
    Loop inner(before.rt);
    iterate(before, inner, 12);
    before.loop.save_plans(outer_path);
    inner.save_plans(inner_path);
  }
  // The outer one's plans are its own first, of what a loop that has loaded its plans made within.
  Run after;
  for (int round = 0; round < 3; ++round) {
    if (round == 2) {
      after.loop.load_plans(outer_path);
    }
    const std::uint64_t before = round == 0 ? 0 : after.plans_of(train).stats.followed;
    Loop inner(after.rt);
    inner.load_plans(inner_path);
    iterate(after, inner, 4);
    CHECK(inner.plans().size() == 1);
    CHECK(inner.plans()[0].stats.followed == 4);
    CHECK(after.plans_of(train).stats.followed == before + (round == 0 ? 2 : 4));
  }
  after.loop.save_plans(outer_path);
  CHECK(content_of(outer_path).find("\nfile evaluate.cpp\n") != std::string::npos);
}

TEST_CASE("saved plans: plans are loaded while other threads iterate") {
  const TempFolder folder;
  const std::string path = saved_in(folder);
  const std::array<std::string, 2> names = {"train.cpp", "other.cpp"};
  Run after;
  std::vector<std::thread> threads;
  for (const std::string& name : names) {
    threads.emplace_back([&] { run(after.loop, 100, step, {name.c_str(), train.line}); });
  }
  for (int i = 0; i < 5; ++i) {
    after.loop.load_plans(path);
    after.loop.save_plans(path);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(after.loop.plans().size() == 3);
}

TEST_CASE("saved plans: a text that is none is refused, and the loop goes on without") {
  const TempFolder folder;
  const std::string text = content_of(saved_in(folder));
  const std::size_t second = text.find("ebb-plans", 1);
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  const auto lines_of_first = static_cast<std::size_t>(
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(second), '\n'));

  check_refused("no plans\n", 1, "'no plans' is not 'ebb-plans 1'");
  check_refused(text.substr(0, text.size() - 1), lines, "the text is cut off");
  check_refused(text.substr(0, text.rfind("checksum")), lines - 1,
                "the text is cut off: it does not end with a checksum");
  check_refused(text + "ebb-plans 2\n", lines + 1, "'ebb-plans 2' is not 'ebb-plans 1'");
  check_refused(without(text, "place"), lines_of_first - 1, "the checksum is '");
  check_refused(text.substr(0, text.size() - 17) + std::string(16, '0') + "\n", lines,
                "the checksum is '0000000000000000', that of the text ");
  // The second set is another granule's, and its checksum is right: nothing of the first comes.
  std::string body = text.substr(second, text.rfind("checksum") - second);
  body.replace(body.find("granule 64"), 10, "granule 32");
  check_refused(text.substr(0, second) + ebb::test::with_checksum(body), lines_of_first + 2,
                "the offsets are multiples of 32, those here of 64");
}

TEST_CASE("saved plans: files that cannot be read or written are named") {
  const TempFolder folder;
  const std::string folder_path = folder.path();
  const std::string missing = folder.path() / "none" / "plans";
  Run after;
  CHECK(refusal<std::runtime_error>(after.loop, missing) ==
        "[Loop::load_plans] " + missing + ": No such file or directory");
  CHECK(refusal<std::runtime_error>(after.loop, folder_path) ==
        "[Loop::load_plans] " + folder_path + ": Is a directory");
  CHECK_THROWS_WITH_AS(after.loop.save_plans(missing),
                       ("[Loop::save_plans] " + missing + ": No such file or directory").c_str(),
                       std::runtime_error);
  const std::string kept = folder.path() / "folder";
  std::filesystem::create_directories(kept + "/not-empty");
  CHECK_THROWS_AS(after.loop.save_plans(kept), std::runtime_error);
  using Files = std::filesystem::directory_iterator;
  CHECK(std::distance(Files(folder.path()), Files()) == 1);
  CHECK(after.loop.plans().empty());
}
