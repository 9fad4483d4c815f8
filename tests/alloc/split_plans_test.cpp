// SPDX-License-Identifier: Apache-2.0
// Saved plans of several sets in one text are told apart by where they end. [alloc.replay]
#include "plan_text.h"

#include <ebb/alloc/replay.h>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

using ebb::PlanSet;
using ebb::SavedPlans;
using ebb::split_plans;
using ebb::test::all_kinds;
using ebb::test::text_of;
using ebb::test::with_checksum;

namespace {

// 11 lines.
std::string text_at(const std::string& place) {
  return with_checksum("ebb-plans 1\ngranule 64\nplace " + place + "\n" + all_kinds);
}

void check_refused(const std::string& text, const std::string& message) {
  CAPTURE(text);
  CHECK_THROWS_WITH_AS((void)split_plans(text), ("[split_plans] " + message).c_str(),
                       std::invalid_argument);
}

}  // namespace

TEST_CASE("split plans: each part is told with its place, and loads there") {
  const std::string first = text_at("12 a b\\x0a.cpp");
  const std::string second = text_of("");
  const std::string whole = first + second + text_at("7 c.cpp");
  const std::vector<SavedPlans> parts = split_plans(whole);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].file == "a b\n.cpp");
  CHECK(parts[0].line == 12);
  CHECK(parts[0].first_line == 1);
  CHECK(parts[0].text == first);
  CHECK(parts[1].file.empty());
  CHECK(parts[1].line == 0);
  CHECK(parts[1].first_line == 12);
  CHECK(parts[1].text == second);
  CHECK(parts[2].file == "c.cpp");
  CHECK(parts[2].first_line == 16);
  for (const SavedPlans& part : parts) {
    PlanSet set({}, {part.file.c_str(), part.line});
    set.load(part.text, part.first_line);
    CHECK(set.save() == part.text);
  }
  CHECK(split_plans("").empty());
}

TEST_CASE("split plans: whatever is no set's text is refused by its line in the whole") {
  const std::string text = text_at("7 c.cpp");
  check_refused(text + "more\n", "line 12: 'more' is not 'ebb-plans 1'");
  check_refused(text + "\n", "line 12: '' is not 'ebb-plans 1'");
  check_refused(text + "ebb-plans 1", "line 12: the text is cut off");
  check_refused(text + text.substr(0, text.size() - 1), "line 22: the text is cut off");
  check_refused(text + text.substr(0, text.rfind("checksum")),
                "line 21: the text is cut off: it does not end with a checksum");
  check_refused(text + with_checksum("ebb-plans 1\ngranule 64\nplan 0 0\n"),
                "line 14: 'place' should stand here, not 'plan'");
  std::string changed = text + text_at("8 c.cpp");
  changed[changed.find("place 8") + 6] = '9';
  try {
    (void)split_plans(changed);
    FAIL("it was not refused");
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    CHECK_MESSAGE(message.starts_with("[split_plans] line 22: the checksum is "), message);
  }
}
