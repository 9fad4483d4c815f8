// SPDX-License-Identifier: Apache-2.0
// Zero mis-tagged storages on TBB, in each of the three forms. [gc.owner]
#include "tagging.h"

#include "support/executor_choice.h"

#include <doctest/doctest.h>

using namespace ebb::test;

namespace {
constexpr int repeats = 100;
}

TEST_CASE("tagging: in one shared arena with 1,000 loader tasks to steal") {
  if (executor_choice() != ebb::ExecutorKind::tbb) {
    MESSAGE("skipped: these runs are on jthreads only");
    return;
  }
  SharedArena shared;
  for (int i = 0; i < repeats; ++i) {
    CHECK(tag_while_stealing(shared, 1000) == 0);
  }
}

TEST_CASE("tagging: a worker that moves from loader to step work brings no owner along") {
  if (executor_choice() != ebb::ExecutorKind::tbb) {
    MESSAGE("skipped: these runs are on jthreads only");
    return;
  }
  SharedArena shared;
  int moved = 0;
  for (int i = 0; i < repeats; ++i) {
    const int mistagged = tag_after_moving(shared);
    CHECK(mistagged <= 0);
    moved += mistagged >= 0 ? 1 : 0;
  }
  CHECK(moved > 0);  // else the form was never tried
  MESSAGE("the worker moved in ", moved, " of ", repeats, " rounds");
}

TEST_CASE("tagging: step work nested in a loader task") {
  if (executor_choice() != ebb::ExecutorKind::tbb) {
    MESSAGE("skipped: these runs are on jthreads only");
    return;
  }
  SharedArena shared;
  for (int i = 0; i < repeats; ++i) {
    CHECK(tag_when_nested(shared) == 0);
  }
}
