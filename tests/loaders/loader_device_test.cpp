// SPDX-License-Identifier: Apache-2.0
// Batches that the loader itself brings to a device: right whatever is late, and beside the loop.
// notes/loaders.md section 4 item 13. [load.slots] [alloc.cuda]
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
#include <string>
#include <vector>

using namespace ebb;

namespace {

struct Rows {
  struct Local {};
  std::uint64_t size() const { return 200; }
  std::uint64_t fingerprint() const { return 6; }
  std::string name() const { return "rows"; }
  Schema schema() const { return {{{"x", DType::i64, {64}}, {"y", DType::i32, {}}}}; }
  void load(std::uint64_t index, Local& /*local*/, const SampleContext& /*context*/,
            SampleWriter& writer) const {
    const auto x = writer.field<std::int64_t>(0);
    std::iota(x.begin(), x.end(), static_cast<std::int64_t>(index) * 1000);
    writer.field<std::int32_t>(1)[0] = static_cast<std::int32_t>(index);
  }
};

std::int64_t sum_of(const Batch& batch) {
  std::int64_t sum = 0;
  for (const std::uint64_t index : batch.indices()) {
    sum += static_cast<std::int64_t>(index) * 1000 * 64 + 63 * 64 / 2;
  }
  return sum;
}

struct DeviceRun {
  SimMachine machine;
  Runtime rt{{.executor = ebb::test::executor_choice(),
              .devices = {cpu, machine.device()},
              .backend = machine.backend()}};
  DeviceStream compute{rt, machine.device()};
  Loop loop{rt, {.name = "device batches", .warmup = 0}};
  std::vector<std::int64_t> expected;
  std::vector<std::int64_t> results;

  // The sums by the compute stream's thread; nothing of a step waits for them.
  void run(Loader& loader, std::uint64_t steps) {
    results.resize(steps);
    const StreamScope scope(rt, compute);
    while (expected.size() < steps) {
      for (auto& it : loop.over(loader)) {
        if (expected.size() == steps) {
          break;
        }
        const auto [x, y] = it.template fields<2>();
        CHECK(x.device() == machine.device());
        CHECK(y.shape() == Shape{it.batch().size()});
        launch_host(rt, compute,
                    [data = x.template data<const std::int64_t>(), count = x.elements(),
                     result = &results[expected.size()]] {
                      *result = std::accumulate(data, data + count, std::int64_t{0});
                    });
        expected.push_back(sum_of(it.batch()));
      }
    }
    loop.finish();
    REQUIRE(machine.drain(std::chrono::seconds(60)));
  }
};

}  // namespace

TEST_CASE("loader device: batches are right though copies and the loop's stream are late") {
  const std::uint64_t steps = std::min<std::uint64_t>(ebb::test::stress(2000) / 20, 10000);
  for (const unsigned depth : {1u, 2u, 4u}) {
    for (const unsigned workers : {0u, 2u}) {
      CAPTURE(depth);
      CAPTURE(workers);
      DeviceRun run;
      run.machine.set_delay(run.compute, std::chrono::microseconds(200));
      Loader loader(run.rt, Rows{},
                    {.batch = 8,
                     .seed = 3,
                     .workers = workers,
                     .depth = depth,
                     .device = run.machine.device()});
      run.run(loader, steps);
      CHECK(run.results == run.expected);
      CHECK(run.machine.violations().empty());
      CHECK(run.rt.stats().undeclared_uses == 0);
      CHECK(loader.stats().copy.samples >= 8);
    }
  }
}

TEST_CASE("loader device: a steady step asks the driver for no memory") {
  DeviceRun run;
  Loader loader(run.rt, Rows{}, {.batch = 8, .depth = 2, .device = run.machine.device()});
  run.run(loader, 50);
  const auto commits = [&] {
    return run.machine.counts().of(SimCall::commit) + run.machine.counts().of(SimCall::pin) +
           run.machine.counts().of(SimCall::decommit);
  };
  const std::uint64_t before = commits();
  run.expected.clear();
  run.run(loader, 200);
  CHECK(run.results == run.expected);
  CHECK(commits() == before);
}

TEST_CASE("loader device: no slot is filled anew before its copy is over") {
  DeviceRun run;
  Loader loader(run.rt, Rows{},
                {.batch = 8, .workers = 2, .depth = 1, .device = run.machine.device()});
  std::vector<Tensor> kept;
  std::vector<std::int64_t> sums;
  loader.begin_epoch(0);
  while (const auto batch = loader.next()) {  // dropped at once, while it may still be copied
    kept.push_back(batch->field(0));
    sums.push_back(sum_of(*batch));
  }
  REQUIRE(run.machine.drain(std::chrono::seconds(60)));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Tensor back = kept[i].to(run.rt.owner().on(Stream{}));
    const auto values = back.span<const std::int64_t>();
    CHECK(std::accumulate(values.begin(), values.end(), std::int64_t{0}) == sums[i]);
  }
}

TEST_CASE("loader device: a device that refuses memory is told at the batch, and asked again") {
  DeviceRun run;
  Loader loader(run.rt, Rows{}, {.batch = 8, .workers = 1, .device = run.machine.device()});
  run.machine.fail(SimCall::copy);
  std::string text;
  try {
    loader.next();
  } catch (const LoadError& error) {
    text = error.what();
    CHECK(error.kind() == LoadErrorKind::device);
  }
  CHECK(text.find("stage copy") != std::string::npos);
  loader.begin_epoch(0);
  CHECK(loader.next().has_value());
}
