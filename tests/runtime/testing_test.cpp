// SPDX-License-Identifier: Apache-2.0
// The header for embedders' tests, used as an embedder would.
#include <ebb/runtime/testing.h>

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

using namespace ebb;

namespace {

// An embedder's step, which keeps a tensor by mistake when asked to.
struct Model {
  std::vector<Tensor> history;
  bool leaks = false;

  void step() {
    const Tensor hidden = zeros({64, 32});
    const Tensor loss = full({1}, 0.5);
    if (leaks) {
      history.push_back(loss);
    }
  }
  static constexpr std::uint32_t loss_line = __LINE__ - 5;
};

}  // namespace

TEST_CASE("testing: a step that leaves nothing behind passes, one that does is named") {
  Runtime rt;
  testing::Scope scope(rt);
  Model model;
  scope.run(5, [&](Iteration&) { model.step(); });
  testing::expect_nothing_alive(rt);

  model.leaks = true;
  scope.open();
  model.step();
  REQUIRE(scope.alive().size() == 1);
  CHECK(scope.alive()[0].place.line == Model::loss_line);
  CHECK(testing::live_at(rt, "testing_test.cpp", Model::loss_line) == 1);
  CHECK(testing::live_at(rt, "other.cpp", Model::loss_line) == 0);
  CHECK_THROWS_WITH_AS(scope.close(), doctest::Contains("f32[1] cpu"), StragglerError);
  CHECK_THROWS_WITH_AS(testing::expect_nothing_alive(rt),
                       doctest::Contains("[expect_nothing_alive] 1 storage (4 B) alive"),
                       std::logic_error);
  model.history.clear();
  testing::expect_nothing_alive(rt);
  scope.run(1, [&](Iteration& it) { CHECK(it.is_open()); });
}

TEST_CASE("testing: a scope is opened and closed in turn, and waits for nothing") {
  ManualClock clock;
  Runtime rt({.clock = &clock});
  testing::Scope scope(rt);
  CHECK_THROWS_AS(scope.close(), std::logic_error);
  CHECK_THROWS_AS(scope.iteration(), std::logic_error);
  scope.open();
  CHECK_THROWS_AS(scope.open(), std::logic_error);
  const Tensor kept = scope.iteration().keep(zeros({2}));
  CHECK(scope.close().clean());
  scope.open();
  auto bound = bind([] {});
  CHECK_THROWS_WITH_AS(scope.close(), doctest::Contains("1 job not ended"), StragglerError);
  CHECK(testing::live(rt).size() == 1);
  CHECK(clock.waits() == 0);
}

TEST_CASE("testing: an exception of the step leaves the scope to be closed by hand") {
  Runtime rt;
  testing::Scope scope(rt);
  CHECK_THROWS_AS(scope.run(3, [](Iteration&) { throw std::runtime_error("step"); }),
                  std::runtime_error);
  CHECK(scope.close().clean());
}

TEST_CASE("testing: what only waits to be released is not alive") {
  Runtime rt;
  Tensor deferred = zeros(rt, {4});
  Storage storage = deferred.storage();
  storage.defer_release();
  storage.reset();
  deferred = Tensor();
  testing::expect_nothing_alive(rt);
}
