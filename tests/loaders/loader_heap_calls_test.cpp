// SPDX-License-Identifier: Apache-2.0
// A batch in the steady state makes no heap call and asks the system for nothing. DESIGN row 1.
#include "loader_fixture.h"
#include "support/malloc_interposer.h"

#include <doctest/doctest.h>

#include <thread>

TEST_CASE("loader: epochs after the first make no heap call, whoever fills the batches") {
  if (!ebb::test::heap_calls_counted()) {
    MESSAGE("skipped: a sanitizer build cannot count");
    return;
  }
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::ExecutorKind::jthread, .log = log.hook()});
  for (const unsigned workers : {0u, 1u, 2u}) {
    CAPTURE(workers);
    const ebb::test::Numbers data{.count = 640, .before = [](std::uint64_t, const auto& context) {
                                    context.scratch(ebb::Bytes{3000});
                                  }};
    ebb::Loader loader(rt, data, {.batch = 8, .workers = workers});
    double sum = 0;
    const auto epoch = [&](std::uint64_t number) {
      loader.begin_epoch(number);
      while (const auto batch = loader.next()) {
        const auto [x, y] = batch->fields<2>();
        sum += static_cast<double>(x.span<const float>()[0]);
        loader.closed(*batch);
      }
    };
    for (std::uint64_t number = 0; number < 5; ++number) {
      epoch(number);
    }
    const ebb::test::HeapCalls before = ebb::test::heap_calls();
    const std::uint64_t source_calls = loader.stats().memory.source_calls;
    for (std::uint64_t number = 5; number < 10; ++number) {
      epoch(number);
    }
    const ebb::test::HeapCalls after = ebb::test::heap_calls();
    CHECK(after.allocations == before.allocations);
    CHECK(after.frees == before.frees);
    CHECK(loader.stats().memory.source_calls == source_calls);
    CHECK(sum > 0);
  }
}
