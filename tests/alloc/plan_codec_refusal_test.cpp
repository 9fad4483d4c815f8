// SPDX-License-Identifier: Apache-2.0
// A text that is no saved plans is refused by line, however it came to be one. [alloc.replay]
#include "plan_text.h"
#include "replay_fixture.h"

#include <ebb/alloc/plan.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using ebb::AllocationSequence;
using ebb::Bytes;
using ebb::PlanSet;
using ebb::test::all_kinds;
using ebb::test::ReplayedHeap;
using ebb::test::text_of;
using ebb::test::with_checksum;

namespace {

void check_refused(const std::string& text, std::size_t line, const std::string& why) {
  CAPTURE(text);
  PlanSet set;
  set.load(text_of("plan 1 1\nfile before\nentry 64 0 1 1 block 0 0\n"));
  const std::string before = set.save();
  std::string message = "nothing was refused";
  try {
    set.load(text);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  const std::string begin = "[PlanSet::load] line " + std::to_string(line) + ": ";
  CHECK_MESSAGE(message.starts_with(begin), message);
  CHECK_MESSAGE(message.find(why) != std::string::npos, message);
  CHECK(set.save() == before);
}

// A plan of one file and these entries, which begin in line 6.
void check_entries_refused(const std::string& entries, std::size_t line, const std::string& why) {
  const auto count = std::count(entries.begin(), entries.end(), '\n');
  check_refused(text_of("plan 1 " + std::to_string(count) + "\nfile f\n" + entries), line, why);
}

// By the judge of plans, from what the set says of itself.
void check_valid(const PlanSet& set) {
  std::istringstream text(set.save());
  std::string line;
  for (std::size_t i = 0; i < set.plans().size(); ++i) {
    std::vector<ebb::PlanInterval> intervals;
    ebb::Plan plan;
    const AllocationSequence sequence = set.sequences()[i];
    for (std::uint64_t number = 0; number < sequence.size(); ++number) {
      const ebb::SequenceEntry& entry = sequence[number];
      do {
        REQUIRE(std::getline(text, line));
      } while (!line.starts_with("entry "));
      const std::string offset = line.substr(line.rfind(' ') + 1);
      if (offset != "-") {
        intervals.push_back({.id = number,
                             .lower = number,
                             .upper = entry.dies,
                             .size = std::max(entry.bytes, Bytes{1})});
        plan.offsets.emplace_back(std::stoull(offset));
      }
    }
    plan.height = set.plans()[i].height;
    plan.max_live = set.plans()[i].max_live;
    const auto fault = ebb::validate(intervals, ebb::default_align_cpu, plan);
    CHECK_MESSAGE(!fault, fault.value_or(""));
  }
}

}  // namespace

TEST_CASE("plan codec: other versions, granules and texts are refused") {
  check_refused("", 1, "cut off");
  check_refused("ebb-plans 1", 1, "cut off");
  check_refused("ebb-plans 2\n", 1, "'ebb-plans 2' is not 'ebb-plans 1'");
  check_refused(with_checksum("ebb-plans 10\ngranule 64\n"), 1, "is not 'ebb-plans 1'");
  check_refused("\n", 1, "'' is not");
  check_refused("ebb-plans 1\n", 1, "does not end with a checksum");
  check_refused(with_checksum("ebb-plans 1\n"), 2, "cut off");
  check_refused(with_checksum("ebb-plans 1\ngranule 256\n"), 2,
                "multiples of 256, those here of 64");
  check_refused(with_checksum("ebb-plans 1\ngrain 64\n"), 2, "'granule' should stand here");
  check_refused(with_checksum("ebb-plans 1\ngranule 64 64\n"), 2, "more than belongs here");
}

TEST_CASE("plan codec: plans of another place, and of none, are refused") {
  const auto refused = [](const std::string& line, const std::string& why) {
    check_refused(with_checksum("ebb-plans 1\ngranule 64\n" + line), 3, why);
  };
  refused("", "cut off");
  refused("plan 0 0\n", "'place' should stand here, not 'plan'");
  refused("place\n", "line is missing");
  refused("place x f\n", "line is 'x', which is no number");
  refused("place 4294967296 f\n", "4294967295 at most");
  refused("place 0\n", "name of a file is missing");
  refused("place 0 a\\b\n", "without xHH");
  refused("place 0 " + std::string(4097, 'a') + "\n", "4097 bytes");
  refused("place 10 a b.cpp\n", "the plans are of a b.cpp:10, not of :0");
  refused("place 0 f\n", "the plans are of f:0, not of :0");
  PlanSet set({}, {"train.cpp", 10});
  CHECK_THROWS_WITH_AS(set.load(text_of(all_kinds)),
                       "[PlanSet::load] line 3: the plans are of :0, not of train.cpp:10",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(set.load(text_of(all_kinds), 100),
                       "[PlanSet::load] line 102: the plans are of :0, not of train.cpp:10",
                       std::invalid_argument);
  CHECK_THROWS_AS(PlanSet({}, {std::string(4097, 'a').c_str(), 1}).save(), std::invalid_argument);
}

TEST_CASE("plan codec: a text that was cut off or changed is refused") {
  const std::string text = text_of(all_kinds);
  check_refused(text.substr(0, text.size() - 1), 11, "cut off");
  check_refused(text.substr(0, text.rfind("checksum")), 10, "does not end with a checksum");
  std::string changed = text;
  changed[changed.find("12")] = '2';
  check_refused(changed, 11, "something was changed");
  changed = text;
  changed[changed.size() - 2] = 'x';
  check_refused(changed, 11, "something was changed");
  check_refused(text + "more\n", 12, "does not end with a checksum");
  check_refused(text_of("plan 1 2\nfile f\nentry 64 0 1 1 block 0 0\n"), 7, "cut off");
  check_refused(text_of("plan 2 1\nfile f\n"), 6, "cut off");
}

TEST_CASE("plan codec: counts are not trusted") {
  check_refused(text_of("plan 0 0\n"), 4, "no entries");
  check_refused(text_of("plan 0 16777217\n"), 4, "16777216 at most");
  check_refused(text_of("plan 99999999999999999999 1\n"), 4, "16777216 at most");
  check_refused(text_of("plan 16777216 16777216\n"), 5, "cut off");
  check_refused(text_of("plan 0 16777216\n"), 5, "cut off");
  check_refused(text_of("plan -1 1\n"), 4, "'-1', which is no number");
  check_refused(text_of("plan  1\n"), 4, "'', which is no number");
  check_refused(text_of("plan 1\n"), 4, "count of entries is missing");
  check_refused(text_of("plan 1 1 1\n"), 4, "more than belongs here: '1'");
}

TEST_CASE("plan codec: names that are none are refused") {
  const auto refused = [](const std::string& line, const char* why) {
    check_refused(text_of("plan 1 1\n" + line + "\nentry 64 0 1 1 block 0 0\n"), 5, why);
  };
  refused("fil f", "'file' should stand here");
  refused("file", "'file' should stand here");
  refused("file a\\b", "without xHH");
  refused("file a\\x4", "without xHH");
  refused("file a\\x4G", "without xHH");
  refused("file a\\", "without xHH");
  refused("file a\\x00", "a byte of 0");
  refused("file a" + std::string(1, '\0'), "a byte of 0");
  refused("file " + std::string(4097, 'a'), "4097 bytes");
  PlanSet set;
  set.load(
      text_of("plan 2 1\nfile " + std::string(4096, 'a') + "\nfile \nentry 64 1 1 1 block 0 0\n"));
  CHECK(set.sequences()[0][0].place.is_same_as({"", 1}));
}

TEST_CASE("plan codec: a name that is too long is not saved") {
  ReplayedHeap replayed;
  const std::string name(4097, 'a');
  for (int i = 0; i < 2; ++i) {
    replayed.run({{100, 0}, {0, 0}}, {name.c_str(), 1});
    replayed.plans.work();
  }
  REQUIRE(replayed.plans.plans().size() == 1);
  CHECK_THROWS_AS(replayed.plans.save(), std::invalid_argument);
}

TEST_CASE("plan codec: entries that are none are refused") {
  check_entries_refused("entr 64 0 1 1 block 0 0\n", 6, "'entry' should stand here");
  check_entries_refused("entry x 0 1 1 block 0 0\n", 6, "size is 'x', which is no number");
  check_entries_refused("entry +6 0 1 1 block 0 0\n", 6, "no number");
  check_entries_refused("entry 6.5 0 1 1 block 0 0\n", 6, "no number");
  check_entries_refused("entry 64 1 1 1 block 0 0\n", 6, "no file 1");
  check_entries_refused("entry 64 0 4294967296 1 block 0 0\n", 6, "4294967295 at most");
  check_entries_refused("entry 64 0 1 0 block 0 0\n", 6, "before it is allocated");
  check_entries_refused("entry 64 0 1 2 block 0 0\n", 6, "death is '2', but 1 at most");
  check_entries_refused("entry 64 0 1 2 block 0 0\nentry 64 0 1 1 block 0 64\n", 7,
                        "entry 1 dies at 1, before it is allocated");
  check_entries_refused("entry 64 0 1 1 blob 0 0\n", 6, "kind is 'blob'");
  check_entries_refused("entry 64 0 1 1 block 64 -\n", 6, "alignment is '64', but 63 at most");
  check_entries_refused("entry 64 0 1 1 block 0\n", 6, "offset is missing");
  check_entries_refused("entry 64 0 1 1 block 0 0 0\n", 6, "more than belongs here");
  check_entries_refused("entry 64 0 1 1 block 0 0 \n", 6, "more than belongs here");
  check_entries_refused("entry 64 0 1 1 block 0 -\n", 6, "the block has no offset");
  check_entries_refused("entry 64 0 1 1 outliving 0 0\n", 6, "placed outside the plan");
  check_entries_refused("entry 64 0 1 1 block 7 0\n", 6, "placed outside the plan");
  check_entries_refused("entry 64 0 1 1 block 0 32\n", 6, "no multiple of 64");
  check_entries_refused("entry 64 0 1 1 block 0 0\nplan 0 0\n", 7, "'entry' should stand here");
}

TEST_CASE("plan codec: blocks that overlap, and absurd sizes, are refused") {
  check_entries_refused("entry 64 0 1 2 block 0 0\nentry 64 0 1 2 block 0 0\n", 4, "overlap");
  check_entries_refused("entry 65 0 1 2 block 0 0\nentry 0 0 1 2 block 0 64\n", 4, "overlap");
  check_entries_refused("entry 64 0 1 1 block 0 128\n", 6, "all blocks of the plan together");
  check_entries_refused("entry 9223372036854775745 0 1 1 block 0 0\n", 6, "at most");
  check_entries_refused("entry 18446744073709551616 0 1 1 block 0 0\n", 6, "at most");
  const std::string huge = "entry 4611686018427387904 0 1 ";
  check_entries_refused(huge + "1 block 0 0\n" + huge + "2 block 0 0\n", 7, "2^63 bytes or more");
  check_entries_refused(huge + "1 outliving 0 -\n" + huge + "2 outliving 0 -\n", 7,
                        "2^63 bytes or more");
  check_entries_refused("entry 64 0 1 1 block 0 18446744073709551552\n", 6, "at most");
}

TEST_CASE("plan codec: offsets of any kind are refused exactly where blocks overlap") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::size_t loaded = 0;
  for (std::uint64_t round = 0, rounds = ebb::test::stress(5000); round < rounds; ++round) {
    const std::size_t count = 1 + random() % 6;
    std::vector<ebb::PlanInterval> intervals;
    ebb::Plan plan;
    std::string text = "plan 1 " + std::to_string(count) + "\nfile f\n";
    for (std::size_t i = 0; i < count; ++i) {
      const ebb::PlanInterval block{.id = i,
                                    .lower = i,
                                    .upper = i + 1 + random() % (count - i),
                                    .size = Bytes{64 * (1 + random() % 3)}};
      intervals.push_back(block);
      plan.offsets.emplace_back(64 * (random() % (count + 1)));
      plan.height = std::max(plan.height, plan.offsets.back() + block.size);
      text += "entry " + std::to_string(block.size.count()) + " 0 1 " +
              std::to_string(block.upper) + " block 0 " +
              std::to_string(plan.offsets.back().count()) + "\n";
    }
    ebb::PlanOptions greedy;
    greedy.nodes = 0;
    plan.max_live = ebb::plan(intervals, ebb::default_align_cpu, greedy).max_live;
    const auto fault = ebb::validate(intervals, ebb::default_align_cpu, plan);
    PlanSet set;
    try {
      set.load(text_of(text));
      ++loaded;
      CHECK_MESSAGE(!fault, text);
    } catch (const std::invalid_argument& error) {
      const bool is_far = std::string_view(error.what()).find("together") != std::string_view::npos;
      CHECK_MESSAGE((fault || is_far), text << error.what());
    }
  }
  CHECK(loaded > 0);
}

TEST_CASE("plan codec: whatever byte of a text is changed or wherever it ends, it is refused") {
  const std::string text = text_of(all_kinds);
  std::size_t refused = 0;
  const auto load = [&](const std::string& changed) {
    PlanSet set;
    try {
      set.load(changed);
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  };
  for (std::size_t end = 0; end < text.size(); ++end) {
    load(text.substr(0, end));
  }
  CHECK(refused == text.size());
  refused = 0;
  for (std::string changed = text; char& c : changed) {
    for (int bit = 0; bit < 8; ++bit) {
      c = static_cast<char>(c ^ (1 << bit));
      load(changed);
      c = static_cast<char>(c ^ (1 << bit));
    }
  }
  CHECK(refused == 8 * text.size());
}

TEST_CASE("plan codec: with a checksum that is right, a changed text is refused or is a plan") {
  const std::uint64_t seed = ebb::test::test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const std::string body = std::string(ebb::test::head) + all_kinds + all_kinds;
  constexpr std::string_view likely = "0123456789 -\n\\xblockentry";
  std::size_t loaded = 0;
  for (std::uint64_t round = 0, rounds = ebb::test::stress(20'000); round < rounds; ++round) {
    std::string changed = body;
    for (std::uint64_t edits = 1 + random() % 3; edits != 0; --edits) {
      const std::size_t at = random() % changed.size();
      switch (random() % 4) {
        case 0:
          changed.erase(at, 1 + random() % 8);
          break;
        case 1:
          changed.insert(at, 1, likely[random() % likely.size()]);
          break;
        case 2:
          changed[at] = likely[random() % likely.size()];
          break;
        default:
          changed[at] = static_cast<char>(random());
      }
    }
    PlanSet set;
    try {
      set.load(with_checksum(changed));
    } catch (const std::invalid_argument&) {
      CHECK(set.plans().empty());
      continue;
    }
    ++loaded;
    PlanSet again;
    again.load(set.save());
    CHECK(again.save() == set.save());
    check_valid(set);
  }
  CHECK(loaded > 0);
}
