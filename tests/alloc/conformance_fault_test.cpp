// SPDX-License-Identifier: Apache-2.0
// The conformance suite's program with every allocation failed in turn, at every height of every
// stack: nothing is leaked, and the stack is usable after. [alloc.adaptor] DESIGN section 8.
#include "conformance.h"

#include <vector>

using ebb::Align;
using ebb::Block;
using ebb::Bytes;
using ebb::Fault;
using ebb::FaultOptions;
using ebb::Resource;
using ebb::Stats;
using ebb::test::fill;
using ebb::test::holds;
using ebb::test::Layer;
using ebb::test::Stack;

namespace {

constexpr std::size_t program_requests = 20;

std::size_t program_bytes(std::size_t i) {
  return i % 7 == 6 ? 20000 + i : i * i * 11 % 3000;
}

// Asks in each of the ways there are. Returns a false block for a refusal.
Block ask(Resource& resource, std::size_t i, int& refusals) {
  const Bytes bytes{program_bytes(i)};
  const Align align{std::size_t{1} << i % 9};
  if (i % 2 == 0) {
    const Block block = resource.try_allocate(bytes, align);
    refusals += block ? 0 : 1;
    return block;
  }
  try {
    return resource.allocate(bytes, align);
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().asked == bytes);
    ++refusals;
    return {};
  }
}

// Returns how many requests were refused. Gives everything back, in each of the ways there are.
int run_program(Resource& resource) {
  int refusals = 0;
  std::vector<std::pair<Block, std::size_t>> live;
  for (std::size_t i = 0; i < program_requests; ++i) {
    if (const Block block = ask(resource, i, refusals)) {
      fill(block, i);
      live.emplace_back(block, i);
    }
    if (i % 4 == 3 && !live.empty()) {
      CHECK(holds(live.front().first, live.front().second));
      resource.deallocate(live.front().first);
      live.erase(live.begin());
    }
  }
  for (const auto& [block, i] : live) {
    CHECK(holds(block, i));
    ebb::own_block(block).reset();
  }
  return refusals;
}

// A stack with a Fault below its layer number height, over a counted bottom.
struct FaultyStack {
  FaultyStack(Resource& base, const std::vector<Layer>& layers, std::size_t height)
      : bottom(base), stack(bottom, {layers.begin(), layers.begin() + at(height)}) {
    fault = &stack.put<Fault>(FaultOptions{});
    for (std::size_t i = height; i < layers.size(); ++i) {
      stack.add(layers[i]);
    }
  }
  static std::ptrdiff_t at(std::size_t height) { return static_cast<std::ptrdiff_t>(height); }

  // Runs the program under these faults; then nothing may be live at the bottom.
  int run(FaultOptions options) {
    fault->rearm(options);
    const int refusals = run_program(stack.top());
    CHECK((options.at == 0 || fault->refused() >= 1));
    stack.settle();
    CHECK(bottom.figures().bytes.current == 0);
    CHECK(bottom.figures().blocks.current == 0);
    return refusals;
  }

  Stats bottom;
  Stack stack;
  Fault* fault = nullptr;
};

// Returns how many requests the program saw refused in all.
int fail_each_request(FaultyStack& faulty) {
  CHECK(faulty.run({}) == 0);
  const std::uint64_t requests = faulty.fault->candidates();
  CHECK(requests >= program_requests);
  int refusals = 0;
  for (std::uint64_t at = 1; at <= requests; ++at) {
    for (const std::uint64_t times : {std::uint64_t{1}, FaultOptions::always}) {
      CAPTURE(at);
      CAPTURE(times);
      refusals += faulty.run({.at = at, .times = times});
      CHECK(faulty.run({}) == 0);  // usable after
    }
  }
  return refusals;
}

// Pairs over a heap are enough: this takes a run of the program for each request twice.
template <class Base>
std::vector<std::vector<Layer>> stacks_of() {
  return ebb::test::stacks_all(std::is_same_v<Base, ebb::test::HeapBase>);
}

}  // namespace

TEST_CASE_TEMPLATE("conformance fault: each request refused in turn leaves nothing behind", Base,
                   EBB_TEST_BASES) {
  for (const std::vector<Layer>& layers : stacks_of<Base>()) {
    for (std::size_t height = 0; height <= layers.size(); ++height) {
      Base base;
      FaultyStack faulty(base.resource(), layers, height);
      const std::string name = faulty.stack.top().explain(Bytes{0}).resource;
      CAPTURE(name);
      // At least the last of requests that fail for good is refused whatever retries.
      CHECK(fail_each_request(faulty) >= static_cast<int>(program_requests));
      CHECK(base.blocks_live() == 0);
    }
  }
}

TEST_CASE_TEMPLATE("conformance fault: requests refused by chance leave nothing behind", Base,
                   EBB_TEST_BASES) {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  for (const std::vector<Layer>& layers : stacks_of<Base>()) {
    Base base;
    FaultyStack faulty(base.resource(), layers, 0);
    for (std::uint64_t round = 0; round < 10; ++round) {
      faulty.run({.probability = 0.3, .seed = seed + round});
    }
    CHECK(base.blocks_live() == 0);
  }
}
