// SPDX-License-Identifier: Apache-2.0
// Plans of what iterations make on a device: saved and loaded beside those of host memory.
// [alloc.replay]
#include "device_fixture.h"
#include "support/temporary_folder.h"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ebb;
using ebb::test::DeviceRuntime;
using ebb::test::TempFolder;

namespace {

// A run of a program that makes tensors on the device and on the host.
struct Run : DeviceRuntime {
  void iterate(int times) {
    const StreamScope scope(rt, a);
    for (int i = 0; i < times; ++i) {
      Iteration it(loop, {"train.cpp", 10});
      const Tensor host = empty(it.owner().on(Stream{}), {1000}, DType::f32);
      const Tensor large = empty({300'000}, DType::f32);
      const Tensor small = empty({10}, DType::f32);
    }
    REQUIRE(loop.wait_plan());
  }
  // The sets of the place: one of host memory, one of the device's.
  std::vector<LoopPlans> plans() const {
    std::vector<LoopPlans> all = loop.plans();
    REQUIRE(all.size() == 2);
    CHECK_FALSE(all[0].on_device);
    CHECK(all[1].on_device);
    return all;
  }

  Loop loop{rt, {.warmup = 0}};
};

}  // namespace

TEST_CASE("device plans: both kinds are saved, and followed from the first iteration on") {
  const TempFolder folder;
  const std::string path = folder.path() / "plans";
  {
    Run before;
    before.iterate(3);
    for (const LoopPlans& set : before.plans()) {
      CHECK(set.plans.size() == 1);
    }
    before.loop.save_plans(path);
  }
  Run after;
  after.loop.load_plans(path);
  after.iterate(2);
  for (const LoopPlans& set : after.plans()) {
    CHECK(set.stats.followed == 2);
    CHECK(set.stats.displaced == 0);
    CHECK(set.stats.planned == 0);
  }
}

TEST_CASE("device plans: where the device's are broken, none of the host's come either") {
  const TempFolder folder;
  const std::string path = folder.path() / "plans";
  Run before;
  before.iterate(3);
  before.loop.save_plans(path);
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text.erase(text.size() - 20);  // the last set is the device's
  Run after;
  CHECK_THROWS_AS(after.loop.load_plans(folder.write("cut", text)), std::invalid_argument);
  CHECK(after.loop.plans().empty());
}
