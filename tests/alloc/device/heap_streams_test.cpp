// SPDX-License-Identifier: Apache-2.0
// Memory that streams use: the same one has it again at once, another one only once it comes after.
// [alloc.cuda]
#include "device_fixture.h"
#include "support/later.h"

#include <ebb/alloc/error.h>

#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Stream;
using ebb::test::DeviceRig;
using ebb::test::kib;
using ebb::test::mib;
using ebb::test::soon;

namespace {

// Two streams, of which the first has work that is not done.
struct TwoStreams : DeviceRig {
  explicit TwoStreams(Bytes memory = mib(64)) : DeviceRig({.memory = memory}) { work(a); }
  void finish() {
    machine.resume(a);
    REQUIRE(context->wait_until(context->newest(a), soon()));
  }

  Stream a = context->make_stream();
  Stream b = context->make_stream();
};

}  // namespace

TEST_CASE_FIXTURE(TwoStreams, "device heap: blocks are multiples of 256 bytes apart") {
  std::vector<Block> blocks;
  for (const std::size_t bytes : {1u, 255u, 256u, 257u, 1000u, 5000u, 70000u}) {
    blocks.push_back(take(Bytes{bytes}, a));
    CHECK(reinterpret_cast<std::uintptr_t>(blocks.back().data) % 256 == 0);
    CHECK(blocks.back().stream == a);
  }
  for (const Block& block : blocks) {
    heap.deallocate(block);
  }
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: a stream has its own memory again at once") {
  for (const Bytes bytes : {Bytes{512}, kib(64), mib(3)}) {
    const Block first = take(bytes, a);
    heap.deallocate(first);
    const Block second = take(bytes, a);
    CHECK(second.data == first.data);
    heap.deallocate(second);
  }
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: another stream has it only once the first is done") {
  for (const Bytes bytes : {Bytes{512}, kib(64), mib(3)}) {
    const Block first = take(bytes, a);
    heap.deallocate(first);
    const Block other = take(bytes, b);
    CHECK(other.data != first.data);
    heap.deallocate(other);
  }
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: once an event was seen done, whoever asks has it") {
  const Block first = take(mib(3), a);
  heap.deallocate(first);
  finish();
  const Block second = take(mib(3), b);
  CHECK(second.data == first.data);
  heap.deallocate(second);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: an order on the device is enough") {
  const Block first = take(mib(3), a);
  heap.deallocate(first);
  context->wait(b, a);
  const Block second = take(mib(3), b);
  CHECK(second.data == first.data);
  heap.deallocate(second);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: an order from before the release is not") {
  const Block first = take(mib(3), a);
  context->wait(b, a);
  heap.deallocate(first);  // what is queued on a since is not waited for
  const Block second = take(mib(3), b);
  CHECK(second.data != first.data);
  heap.deallocate(second);
}

TEST_CASE_FIXTURE(TwoStreams,
                  "device heap: part of another stream's hole leaves the rest its own") {
  const Block large = take(mib(4), a);
  heap.deallocate(large);
  context->wait(b, a);
  const Block part = take(mib(1), b);
  CHECK(part.data == large.data);
  const Block rest = take(mib(3), a);
  CHECK(rest.data == static_cast<std::byte*>(large.data) + mib(1).count());
  heap.deallocate(part);
  heap.deallocate(rest);
}

TEST_CASE_FIXTURE(TwoStreams,
                  "device heap: holes of several streams join once one comes after all") {
  const Block left = take(mib(2), a);
  const Block right = take(mib(2), b);
  heap.deallocate(left);
  heap.deallocate(right);
  const Bytes reserved = heap.stats().reserved;
  context->wait(b, a);
  const Block both = take(mib(4), b);
  CHECK(both.data == left.data);
  CHECK(heap.stats().reserved == reserved);
  heap.deallocate(both);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: what is used on a second stream waits for both") {
  for (const Bytes bytes : {Bytes{512}, mib(3)}) {
    const Block first = take(bytes, b);
    heap.note_use(*first.record, a);
    heap.deallocate(first);
    const Block second = take(bytes, b);
    CHECK(second.data != first.data);
    heap.deallocate(second);
  }
  finish();
  heap.drain();
  CHECK(heap.stats().blocks_live == 0);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: used and done is as good as not used") {
  const Block first = take(mib(3), b);
  heap.note_use(*first.record, a);
  heap.deallocate(first);
  finish();
  const Block second = take(mib(3), b);
  CHECK(second.data == first.data);
  heap.deallocate(second);
}

TEST_CASE_FIXTURE(TwoStreams,
                  "device heap: a use that is done is not hidden behind one that is not") {
  // notes/allocators.md section 4 item 6.
  const Stream c = context->make_stream();
  const Block stuck = take(mib(3), b);
  heap.note_use(*stuck.record, a);
  const Block quick = take(mib(3), b);
  heap.note_use(*quick.record, c);
  heap.deallocate(stuck);
  heap.deallocate(quick);
  REQUIRE(context->wait_until(context->newest(c), soon()));
  const Block again = take(mib(3), b);
  CHECK(again.data == quick.data);
  heap.deallocate(again);
}

TEST_CASE("device heap: a request that memory is there for waits for the stream that has it") {
  // Item 1: a block that is freed with work pending, and no other memory on the device.
  TwoStreams rig(mib(8));
  const Block all = rig.take(mib(8), rig.a);
  rig.heap.deallocate(all);
  const ebb::test::Later later([&rig] { rig.machine.resume(rig.a); });
  const Block again = rig.take(mib(8), rig.b);
  CHECK(again);
  rig.heap.deallocate(again);
}

TEST_CASE("device heap: so it does for a stream that only uses it too") {
  TwoStreams rig(mib(8));
  const Block all = rig.take(mib(8), rig.b);
  rig.heap.note_use(*all.record, rig.a);
  rig.heap.deallocate(all);
  const ebb::test::Later later([&rig] { rig.machine.resume(rig.a); });
  const Block again = rig.take(mib(8), rig.a);
  CHECK(again);
  rig.heap.deallocate(again);
}

TEST_CASE("device heap: a larger request grows a hole, or has the pages of others") {
  // Item 2: 60 %, then 70 % of the device.
  DeviceRig rig({.memory = mib(20)});
  const Stream a = rig.context->make_stream();
  const Block first = rig.take(mib(6), a);
  const Block pin = rig.take(mib(2), a);
  const Block second = rig.take(mib(6), a);
  rig.heap.deallocate(first);
  rig.heap.deallocate(second);
  REQUIRE(rig.context->wait_until(rig.context->newest(a), soon()));
  const Block larger = rig.take(mib(14), a);
  CHECK(larger);
  CHECK(rig.machine.memory(rig.machine.device()).committed <= mib(20));
  rig.heap.deallocate(larger);
  rig.heap.deallocate(pin);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: a refusal says what there is, and changes nothing") {
  const Block some = take(mib(60), a);
  try {
    static_cast<void>(take(mib(16), b));
    FAIL("no error");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().asked == mib(16));
    CHECK(error.info().live == mib(60));
    CHECK(error.info().resource == "sim memory");
  }
  heap.deallocate(some);
  finish();
  const Block again = take(mib(62), b);
  CHECK(again);
  heap.deallocate(again);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: pages go back only once the device is done with them") {
  const Block block = take(mib(8), a);
  heap.deallocate(block);
  CHECK(heap.trim() == Bytes{});
  finish();
  CHECK(heap.trim() == mib(8));
  CHECK(machine.memory(machine.device()).committed == Bytes{});
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: its end waits for what the device still does with it") {
  {
    ebb::Pool other(context->pages(), with_order({}));
    ebb::Heap& own = other.acquire();
    const Block block = own.allocate(mib(2), ebb::default_align_cuda, a);
    context->copy(block.data, block.data, Bytes{1}, a);
    own.deallocate(block);
    ebb::Pool::park(own);
    machine.resume(a);
  }
  CHECK(machine.violations().empty());
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: what is given back within a hold is held") {
  const Block before = take(mib(2), a);
  REQUIRE(heap.begin_hold());
  const Block within = take(mib(1), a);
  heap.deallocate(within);
  heap.deallocate(before);
  const Block next = take(mib(1), a);
  CHECK(next.data != within.data);
  heap.deallocate(next);
  ebb::HeldBlocks held = heap.end_hold(a);
  const Block after = take(mib(2), a);
  CHECK(after.data != before.data);
  heap.deallocate(after);
  CHECK(heap.stats().live == mib(4));
  held.release();
  CHECK(heap.stats().live == Bytes{});
  const Block again = take(mib(2), a);
  CHECK(again.data == before.data);
  heap.deallocate(again);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: another stream has what a graph used after the graph") {
  REQUIRE(heap.begin_hold());
  const Block within = take(mib(2), b);
  heap.deallocate(within);
  ebb::HeldBlocks held = heap.end_hold(a);
  work(a);
  held.release();
  const Block next = take(mib(2), b);
  CHECK(next.data != within.data);
  heap.deallocate(next);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: a page that was two streams' goes when both are done") {
  const Block first = take(mib(3), b);
  const Block second = take(mib(3), a);
  const Block above = take(kib(64), b);
  heap.deallocate(first);
  heap.deallocate(second);
  REQUIRE(machine.memory(machine.device()).committed == mib(8));
  finish();
  REQUIRE(context->wait_for_all(soon()));
  CHECK(heap.trim() == mib(6));
  heap.deallocate(above);
}

TEST_CASE_FIXTURE(TwoStreams, "device heap: so does the last page") {
  const Block first = take(kib(64), b);
  const Block second = take(kib(64), a);
  heap.deallocate(first);
  heap.deallocate(second);
  finish();
  REQUIRE(context->wait_for_all(soon()));
  CHECK(heap.trim() == mib(2));
}
