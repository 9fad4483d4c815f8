// SPDX-License-Identifier: Apache-2.0
// The tagging tests can fail: with restoring switched off, each form finds mis-tagged storages. A
// program of its own, since threads are left with owners that are not theirs. [gc.owner]
#include "domain_impl.h"
#include "slot.h"
#include "support/executor_choice.h"
#include "tagging.h"

#include <doctest/doctest.h>

using namespace ebb::test;

namespace {

// Never destroyed: slots go on naming its owners.
SharedArena& without_restoring() {
  static SharedArena* const shared = [] {
    auto* made = new SharedArena;
    made->rt.domain()->impl().skip_restore = true;
    return made;
  }();
  return *shared;
}

// The main thread starts each form as a fresh one would.
class FreshSlot {
 public:
  FreshSlot() : saved_(ebb::detail::slot()) {}
  FreshSlot(const FreshSlot&) = delete;
  FreshSlot& operator=(const FreshSlot&) = delete;
  FreshSlot(FreshSlot&&) = delete;
  FreshSlot& operator=(FreshSlot&&) = delete;
  ~FreshSlot() { ebb::detail::slot() = saved_; }

 private:
  ebb::detail::Slot saved_;
};

template <class Form>
int worst_of(Form form) {
  int worst = 0;
  for (int i = 0; i < 20 && worst <= 0; ++i) {
    const FreshSlot fresh;
    worst = std::max(worst, form(without_restoring()));
  }
  return worst;
}

}  // namespace

TEST_CASE("tagging proof: stealing fails without restoring") {
  if (executor_choice() != ebb::ExecutorKind::tbb) {
    MESSAGE("skipped: these runs are on jthreads only");
    return;
  }
  CHECK(worst_of([](SharedArena& shared) { return tag_while_stealing(shared, 1000); }) > 0);
}

TEST_CASE("tagging proof: moving fails without restoring") {
  if (executor_choice() != ebb::ExecutorKind::tbb) {
    MESSAGE("skipped: these runs are on jthreads only");
    return;
  }
  CHECK(worst_of([](SharedArena& shared) { return tag_after_moving(shared); }) > 0);
}

TEST_CASE("tagging proof: nesting fails without restoring") {
  if (executor_choice() != ebb::ExecutorKind::tbb) {
    MESSAGE("skipped: these runs are on jthreads only");
    return;
  }
  CHECK(worst_of([](SharedArena& shared) { return tag_when_nested(shared); }) > 0);
}
