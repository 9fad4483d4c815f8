// SPDX-License-Identifier: Apache-2.0
// A loader's batches on a device, each step: what arrives is what was loaded, whatever is late.
// notes/loaders.md section 4 item 13, notes/loops.md section 4 item 15. [load.slots] [alloc.cuda]
#include "support/executor_choice.h"
#include "support/test_settings.h"

#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>
#include <ebb/runtime/device_stream.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

using namespace ebb;

namespace {

constexpr std::int64_t sample_size = 64;

std::int64_t element_of(std::uint64_t index, std::int64_t at) {
  return static_cast<std::int64_t>(index) * 1000 + at;
}
std::int64_t sum_of(std::uint64_t index) {
  std::int64_t sum = 0;
  for (std::int64_t at = 0; at < sample_size; ++at) {
    sum += element_of(index, at);
  }
  return sum;
}

struct Sequences {
  struct Local {};
  std::uint64_t size() const { return 200; }
  std::uint64_t fingerprint() const { return 5; }
  std::string name() const { return "sequences"; }
  Schema schema() const { return {{{"x", DType::i64, {sample_size}}}}; }
  void load(std::uint64_t index, Local& /*local*/, const SampleContext& /*context*/,
            SampleWriter& writer) const {
    std::int64_t at = 0;
    for (std::int64_t& element : writer.field<std::int64_t>(0)) {
      element = element_of(index, at++);
    }
  }
};

// Steps that copy a batch on one stream, and add it up on another, which comes late.
struct CopiedSteps {
  explicit CopiedSteps(unsigned depth)
      : loader(rt, Sequences{}, {.batch = 8, .seed = 3, .depth = depth}) {
    machine.set_delay(copies, std::chrono::microseconds(100));
    machine.set_delay(side, std::chrono::microseconds(300));
  }

  void run(std::uint64_t steps) {
    results.resize(steps);
    while (expected.size() < steps) {
      for (auto& it : loop.over(loader)) {
        if (expected.size() == steps) {
          break;
        }
        add_up(it, it.batch());
      }
    }
    loop.finish();
    REQUIRE(machine.drain(std::chrono::seconds(60)));
  }

  // The sums by the side stream's thread; nothing of the step waits for them.
  void add_up(Iteration& it, const Batch& batch) {
    std::int64_t all = 0;
    for (const std::uint64_t index : batch.indices()) {
      all += sum_of(index);
    }
    const Tensor x = batch.field(0).to(it.owner().on(copies));
    launch(rt, side, {x}, [&](void*) {
      launch_host(rt, side,
                  [data = x.data<const std::int64_t>(), count = x.elements(),
                   result = &results[expected.size()]] {
                    *result = std::accumulate(data, data + count, std::int64_t{0});
                  });
    });
    expected.push_back(all);
  }

  SimMachine machine;
  Runtime rt{{.executor = ebb::test::executor_choice(),
              .devices = {cpu, machine.device()},
              .backend = machine.backend()}};
  DeviceStream copies{rt, machine.device()};
  DeviceStream side{rt, machine.device()};
  Loop loop{rt, {.name = "batches", .warmup = 0}};
  Loader loader;
  std::vector<std::int64_t> expected;
  std::vector<std::int64_t> results;
};

}  // namespace

TEST_CASE("device batches: late copies and late readers get what was loaded, at depth 1 and 2") {
  const std::uint64_t steps = std::min<std::uint64_t>(ebb::test::stress(2000) / 20, 10000);
  for (const unsigned depth : {1u, 2u}) {
    CAPTURE(depth);
    CopiedSteps run(depth);
    run.run(steps);
    CHECK(run.results == run.expected);
    CHECK(run.rt.stats().storages_live == 0);
    CHECK(run.machine.violations().empty());
  }
}

TEST_CASE("device batches: a slot is given back while its copy waits, and the copy is right") {
  CopiedSteps run(1);
  run.machine.hold(run.copies);
  {
    Iteration it(run.loop);
    for (int i = 0; i < 6; ++i) {  // more than there are slots
      std::optional<Batch> batch = run.loader.next();
      REQUIRE(batch.has_value());
      run.results.resize(6);
      run.add_up(it, *batch);
    }
  }
  run.machine.resume(run.copies);
  run.loop.finish();
  REQUIRE(run.machine.drain());
  CHECK(run.results == run.expected);
}

TEST_CASE("device batches: batches in pinned memory of the host's are copied without a wait") {
  SimMachine machine;
  Runtime rt({.devices = {cpu, machine.device()}, .backend = machine.backend()});
  const DeviceStream copies(rt, machine.device());
  machine.set_delay(copies, std::chrono::microseconds(200));
  std::vector<Tensor> copied;
  for (std::int32_t i = 0; i < 100; ++i) {
    const Tensor pinned = empty_pinned(rt, machine.device(), {1000}, DType::i32);
    pinned.fill_(i);  // at once: nothing may read it any more
    copied.push_back(pinned.to(rt.owner().on(copies)));
  }
  for (std::int32_t i = 0; i < 100; ++i) {
    const Tensor back = copied[static_cast<std::size_t>(i)].to(rt.owner().on(Stream{}));
    CHECK(back.data<const std::int32_t>()[999] == i);
  }
}
