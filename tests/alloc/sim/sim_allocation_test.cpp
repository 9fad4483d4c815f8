// SPDX-License-Identifier: Apache-2.0
// Each heap call of a program on a simulated device fails once in turn: the caller hears of it or
// notices nothing, no capture or page is left, and the machine works on. [alloc.sim]
#include "sim_fixture.h"
#include "support/failing_new.h"

#include <new>

using ebb::Bytes;
using ebb::Event;
using ebb::GraphExec;
using ebb::Range;
using ebb::Stream;
using ebb::test::FailingNew;
using ebb::test::sim_page;
using ebb::test::SimFixture;

namespace {

// Uses every call that may ask for memory, and gives all back whatever happens.
class Rig {
 public:
  ~Rig() {
    sim_.backend->destroy_stream(stream_);
    sim_.backend->destroy_event(event_);
    sim_.backend->destroy_graph(graph_);
    REQUIRE(sim_.machine.drain());
    if (range_) {
      source_.release(range_);
    }
    CHECK(sim_.machine.memory(sim_.machine.device()).committed == Bytes{0});
    CHECK(sim_.machine.counts().streams == 0);
    CHECK(sim_.machine.counts().events == 0);
    CHECK(sim_.machine.counts().graphs == 0);
    CHECK(sim_.machine.violations().empty());
  }

  void run() {
    ebb::Backend& backend = *sim_.backend;
    backend.make_stream(stream_);
    event_ = backend.make_event(stream_.device);
    range_ = source_.reserve(sim_page * 2);
    if (!range_ || !source_.commit(range_)) {
      throw std::bad_alloc();
    }
    const int pageable = 3;
    backend.copy(range_.begin, &pageable, Bytes::of<int>(1), stream_);
    backend.record(event_, stream_);
    backend.record(event_, stream_);
    backend.wait({stream_.device, 0}, event_);
    backend.begin_capture(stream_);
    backend.fill(range_.begin, {0, 1}, 8, stream_);
    backend.call([](void*) {}, nullptr, stream_);
    graph_ = backend.end_capture(stream_, {});
    backend.launch(graph_, stream_);
  }

  bool works() {
    sim_.backend->abandon_capture(stream_);  // it may be where the program failed
    const Stream stream = sim_.stream();
    const Event event = sim_.recorded(stream);
    const bool comes = sim_.comes(event);
    sim_.backend->destroy_event(event);
    sim_.backend->destroy_stream(stream);
    return comes;
  }

 private:
  SimFixture sim_;
  ebb::Source& source_ = sim_.backend->source(sim_.machine.device());
  Stream stream_{sim_.machine.device(), ebb::next_stream_id(9)};
  Event event_;
  GraphExec graph_;
  Range range_;
};

}  // namespace

TEST_CASE("simulated devices: each heap call may fail") {
  std::uint64_t failures = 0;
  bool failed = true;
  for (std::uint64_t at = 1; failed; ++at) {
    CAPTURE(at);
    Rig rig;
    {
      const FailingNew failing(at);
      try {
        rig.run();
      } catch (const std::bad_alloc&) {
      }
      failed = failing.calls() >= at;
    }
    failures += failed ? 1 : 0;
    CHECK(rig.works());
  }
  CHECK(failures > 20);
}
