// SPDX-License-Identifier: Apache-2.0
// What other threads do while one captures a graph. [alloc.graph] [alloc.cuda]
#include "device_fixture.h"

#include <ebb/alloc/error.h>

#include <thread>

using ebb::Stream;
using ebb::test::DeviceRig;
using ebb::test::mib;
using ebb::test::soon;

TEST_CASE_FIXTURE(DeviceRig, "capture: another thread that waits for the device spoils nothing") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  work(a);
  context->begin_capture(a);
  context->call([](void*) {}, nullptr, a);
  context->wait(b, a);
  context->call([](void*) {}, nullptr, b);
  std::thread([&] {
    machine.resume(a);
    CHECK(context->wait_for_all(soon()));  // for what was queued before
    CHECK_THROWS_WITH_AS(context->record(b), doctest::Contains("another thread"),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(context->wait(b, context->default_stream()),
                         doctest::Contains("another thread"), std::invalid_argument);
    context->wait(context->default_stream(), a);  // as well
    context->destroy_stream(b);
    const Stream c = context->make_stream();
    CHECK(context->wait_until(context->record(c), soon()));
  }).join();
  context->wait(a, context->newest_of(b.lane()));
  const ebb::GraphExec graph = context->end_capture(a, {});
  context->launch(graph, a);
  CHECK(context->wait_for_all(soon()));
  context->destroy_graph(graph);
}

TEST_CASE_FIXTURE(DeviceRig, "capture: a stream that ends before its work is joined has its lane") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  context->begin_capture(a);
  context->wait(b, a);
  context->call([](void*) {}, nullptr, b);
  context->destroy_stream(b);
  context->wait(a, context->newest_of(b.lane()));
  const ebb::GraphExec graph = context->end_capture(a, {});
  context->launch(graph, a);
  CHECK(context->wait_for_all(soon()));
  context->make_stream();
  CHECK(machine.counts().streams == 2);
  context->destroy_graph(graph);
}

TEST_CASE_FIXTURE(DeviceRig, "capture: another thread's call for idle pages is met after it") {
  const Stream a = context->make_stream();
  const ebb::Block idle = take(mib(8), a);
  const ebb::Block above = take(mib(4), a);
  heap.deallocate(idle);
  CHECK(context->wait_for_all(soon()));
  context->begin_capture(a);
  std::thread([&] { pool.trim(); }).join();
  const ebb::Block small = take(mib(1), a);
  CHECK(heap.stats().reserved >= mib(12));
  context->fill(small.data, {}, 16, a);
  const ebb::GraphExec graph = context->end_capture(a, {});
  context->destroy_graph(graph);
  heap.deallocate(small);
  CHECK(context->wait_for_all(soon()));
  heap.deallocate(take(mib(1), a));
  CHECK(heap.stats().reserved < mib(12));
  heap.deallocate(above);
}
