// SPDX-License-Identifier: Apache-2.0
// Streams of a device and the order between them, on the simulated one. [rt.stream] [alloc.cuda]
#include "device_fixture.h"

#include <ebb/alloc/error.h>

#include <vector>

using ebb::DeviceContext;
using ebb::Stream;
using ebb::StreamPoint;
using ebb::test::DeviceRig;
using ebb::test::soon;

namespace {

// Whether what comes on later from now on comes after all that is queued on earlier.
bool is_after_all(DeviceContext& context, Stream later, Stream earlier) {
  return context.is_after(later.lane(), earlier.lane(), context.next_point(earlier.lane()));
}

}  // namespace

TEST_CASE_FIXTURE(DeviceRig, "streams: each has a lane of its own, and numbers do not come back") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  CHECK(a.lane() != b.lane());
  CHECK(a.lane() != context->default_stream().lane());
  CHECK(context->knows(a));
  context->destroy_stream(a);
  CHECK_FALSE(context->knows(a));
  CHECK_THROWS_WITH_AS(context->record(a), doctest::Contains("there is no stream"),
                       std::invalid_argument);
  for (int i = 0; i < 500; ++i) {  // far more than there are lanes
    const Stream c = context->make_stream();
    CHECK(c.id != a.id);
    context->destroy_stream(c);
    REQUIRE(machine.drain());
  }
}

TEST_CASE_FIXTURE(DeviceRig, "streams: as many as there are lanes, then it says so") {
  std::vector<Stream> all;
  for (std::uint32_t i = 1; i < Stream::lanes; ++i) {
    all.push_back(context->make_stream());
  }
  CHECK_THROWS_WITH_AS(context->make_stream(), doctest::Contains("63 streams already"),
                       std::invalid_argument);
  context->destroy_stream(all.front());
  REQUIRE(machine.drain());
  const Stream fresh = context->make_stream();
  CHECK(fresh.lane() == all.front().lane());
  CHECK(fresh.id != all.front().id);
}

TEST_CASE_FIXTURE(DeviceRig,
                  "streams: the lane of one that is destroyed is kept until it is done") {
  const Stream a = context->make_stream();
  work(a);
  context->destroy_stream(a);
  for (int i = 0; i < 100; ++i) {
    const Stream b = context->make_stream();
    REQUIRE(b.lane() != a.lane());
    context->destroy_stream(b);
    REQUIRE(context->wait_until(context->newest(b), soon()));
  }
}

TEST_CASE_FIXTURE(DeviceRig, "order: one comes after another when it waits for it") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  CHECK(is_after_all(*context, a, a));
  CHECK_FALSE(is_after_all(*context, b, a));
  work(a);
  context->wait(b, a);
  const std::uint64_t waited = context->next_point(a.lane()) - 1;
  CHECK(context->is_after(b.lane(), a.lane(), waited));
  CHECK_FALSE(is_after_all(*context, b, a));  // not after what comes now
  CHECK_FALSE(context->is_after(a.lane(), b.lane(), 1));
  const std::uint64_t records = machine.counts().of(ebb::SimCall::record);
  context->wait(b, StreamPoint{a, waited});
  CHECK(machine.counts().of(ebb::SimCall::record) == records);  // it does already
}

TEST_CASE_FIXTURE(DeviceRig, "order: it is passed on, as it was when the event was recorded") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  const Stream c = context->make_stream();
  work(a);
  const StreamPoint before = context->record(b);
  context->wait(b, a);
  const std::uint64_t of_a = context->next_point(a.lane()) - 1;
  const StreamPoint after = context->record(b);
  context->wait(c, before);
  CHECK_FALSE(context->is_after(c.lane(), a.lane(), of_a));
  context->wait(c, after);
  CHECK(context->is_after(c.lane(), a.lane(), of_a));
}

TEST_CASE_FIXTURE(DeviceRig, "order: everything comes after what is done") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  work(a);
  const StreamPoint point = context->record(a);
  CHECK_FALSE(context->poll());
  CHECK_FALSE(context->is_after(b.lane(), a.lane(), point.number));
  CHECK_FALSE(context->is_over(a.lane(), point.number));
  CHECK_FALSE(context->wait_until(point, soon(std::chrono::milliseconds(5))));
  machine.resume(a);
  CHECK(context->wait_until(point, soon()));
  CHECK(context->is_after(b.lane(), a.lane(), point.number));
  CHECK(context->is_over(a.lane(), point.number));
}

TEST_CASE_FIXTURE(DeviceRig, "order: an event that is late hides none of another stream's") {
  const Stream late = context->make_stream();
  const Stream quick = context->make_stream();
  work(late);
  context->record(late);
  const StreamPoint done = context->record(quick);
  CHECK(context->wait_until(done, soon()));
}

TEST_CASE_FIXTURE(DeviceRig, "order: events are used again, so that few are made") {
  const Stream a = context->make_stream();
  for (int i = 0; i < 200; ++i) {
    CHECK(context->wait_until(context->record(a), soon()));
  }
  CHECK(machine.counts().events <= 2);
}

TEST_CASE_FIXTURE(DeviceRig, "order: what was said within a capture holds in the graph only") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  work(a);
  const std::uint64_t point = context->next_point(a.lane());
  REQUIRE(context->begin_capture(a));
  CHECK(context->is_capturing());
  context->wait(b, a);
  CHECK(context->is_after(b.lane(), a.lane(), point));
  const std::uint64_t queries = machine.counts().of(ebb::SimCall::query);
  CHECK_FALSE(context->poll());
  CHECK(machine.counts().of(ebb::SimCall::query) == queries);
  context->wait(a, b);
  const ebb::GraphExec graph = context->end_capture(a, {});
  CHECK_FALSE(context->is_capturing());
  CHECK_FALSE(context->is_after(b.lane(), a.lane(), point));
  machine.resume(a);
  CHECK(context->wait_until(context->record(a), soon()));
  context->destroy_graph(graph);
}

TEST_CASE_FIXTURE(DeviceRig,
                  "streams: one that ends while a graph is captured has its lane freed") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  REQUIRE(context->begin_capture(a));
  context->destroy_stream(b);
  const Stream c = context->make_stream();  // looks for lanes that are to end
  CHECK(c.lane() != b.lane());
  context->destroy_graph(context->end_capture(a, {}));
  const Stream d = context->make_stream();
  CHECK(context->wait_for_all(soon()));
  const Stream e = context->make_stream();
  CHECK((d.lane() == b.lane() || e.lane() == b.lane()));
}

TEST_CASE_FIXTURE(DeviceRig, "order: an abandoned capture leaves streams that work") {
  const Stream a = context->make_stream();
  REQUIRE(context->begin_capture(a));
  CHECK_FALSE(context->begin_capture(a));
  context->abandon_capture(a);
  CHECK(context->wait_until(context->record(a), soon()));
}

TEST_CASE_FIXTURE(DeviceRig, "errors: a call that fails says which, and the next one works") {
  const Stream a = context->make_stream();
  machine.fail(ebb::SimCall::record, 0, {.code = 13});
  try {
    context->record(a);
    FAIL("no error");
  } catch (const ebb::DeviceError& error) {
    CHECK(error.code() == 13);
    CHECK(error.device() == "sim:0");
    CHECK(error.call() == "cudaEventRecord");
    CHECK_FALSE(error.is_lost());
  }
  CHECK(context->wait_until(context->record(a), soon()));
}

TEST_CASE_FIXTURE(DeviceRig, "errors: a lost device is asked for nothing more, and told of once") {
  const Stream a = context->make_stream();
  machine.fail(ebb::SimCall::record, 0, {.code = 700, .is_lost = true});
  CHECK_THROWS_AS(context->record(a), ebb::DeviceError);
  CHECK(context->is_lost());
  CHECK_THROWS_WITH_AS(context->record(a), doctest::Contains("lost before"), ebb::DeviceError);
  CHECK_FALSE(context->poll());
  CHECK(context->take_loss().find("700") != std::string::npos);
  CHECK(context->take_loss().empty());
}

TEST_CASE_FIXTURE(DeviceRig, "errors: a stream whose end gets no event is not taken for done") {
  const Stream a = context->make_stream();
  work(a);
  const StreamPoint point = context->newest(a);
  machine.fail(ebb::SimCall::record);
  context->destroy_stream(a);
  CHECK_FALSE(context->knows(a));
  CHECK_FALSE(context->wait_until(point, soon(std::chrono::milliseconds(20))));
  machine.resume_all();
  CHECK(context->wait_until(point, soon()));
  CHECK(machine.counts().streams == 0);
}

TEST_CASE_FIXTURE(DeviceRig, "errors: streams whose ends got no event leave their lanes in time") {
  for (std::uint32_t i = 0; i < 3 * Stream::lanes; ++i) {
    const Stream stream = context->make_stream();
    context->call([](void*) {}, nullptr, stream);
    machine.fail(ebb::SimCall::record);
    context->destroy_stream(stream);
    REQUIRE(machine.drain());
  }
}

TEST_CASE_FIXTURE(DeviceRig, "order: a stream that ends while another is captured ends after it") {
  const Stream a = context->make_stream();
  const Stream b = context->make_stream();
  REQUIRE(context->begin_capture(a));
  context->destroy_stream(b);
  const ebb::GraphExec graph = context->end_capture(a, {});
  context->destroy_graph(graph);
  CHECK(context->wait_for_all(soon()));
  CHECK(machine.counts().streams == 1);
}
