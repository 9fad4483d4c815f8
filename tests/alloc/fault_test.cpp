// SPDX-License-Identifier: Apache-2.0
// Refusals on purpose: by number, by chance, by size. [alloc.adaptor]
#include "heap_fixture.h"

#include <ebb/alloc/fault.h>

#include <stdexcept>
#include <vector>

using ebb::Bytes;
using ebb::Fault;
using ebb::FaultOptions;
using ebb::test::OwnHeap;

namespace {

// Which of count requests of bytes are refused.
std::vector<bool> refusals(Fault& fault, std::size_t count, std::size_t bytes = 10) {
  std::vector<bool> refused;
  for (std::size_t i = 0; i < count; ++i) {
    const ebb::Block block = fault.try_allocate(Bytes{bytes});
    refused.push_back(!block);
    if (block) {
      fault.deallocate(block);
    }
  }
  return refused;
}

}  // namespace

TEST_CASE("fault: the n-th request is refused, so many times") {
  OwnHeap own;
  Fault fault(own.heap, {.at = 3, .times = 2});
  CHECK(refusals(fault, 6) == std::vector<bool>{false, false, true, true, false, false});
  CHECK(fault.candidates() == 6);
  CHECK(fault.refused() == 2);
  fault.rearm({.at = 1});
  CHECK(fault.candidates() == 0);
  CHECK(refusals(fault, 2) == std::vector<bool>{true, false});
  fault.rearm({.at = 2, .times = FaultOptions::always});
  CHECK(refusals(fault, 4) == std::vector<bool>{false, true, true, true});
  fault.rearm({});
  CHECK(refusals(fault, 2) == std::vector<bool>{false, false});
}

TEST_CASE("fault: only sizes in range are candidates") {
  OwnHeap own;
  Fault fault(
      own.heap,
      {.at = 1, .times = FaultOptions::always, .min_bytes = Bytes{100}, .max_bytes = Bytes{200}});
  CHECK(refusals(fault, 1, 99) == std::vector<bool>{false});
  CHECK(refusals(fault, 1, 100) == std::vector<bool>{true});
  CHECK(refusals(fault, 1, 200) == std::vector<bool>{true});
  CHECK(refusals(fault, 1, 201) == std::vector<bool>{false});
  CHECK(fault.candidates() == 2);
}

TEST_CASE("fault: chance is what it says, and the same for the same seed") {
  OwnHeap own;
  Fault fault(own.heap, {.probability = 0.25, .seed = 42});
  const std::vector<bool> first = refusals(fault, 4000);
  CHECK(fault.refused() > 800);
  CHECK(fault.refused() < 1200);
  fault.rearm({.probability = 0.25, .seed = 42});
  CHECK(refusals(fault, 4000) == first);
  fault.rearm({.probability = 0.25, .seed = 43});
  CHECK(refusals(fault, 4000) != first);
  fault.rearm({.probability = 1});
  CHECK(refusals(fault, 100) == std::vector<bool>(100, true));
}

TEST_CASE("fault: a refusal does not reach the upstream, and is told with its figures") {
  OwnHeap own({.name = "sound"});
  Fault fault(own.heap, {.at = 1});
  try {
    fault.deallocate(fault.allocate(Bytes{10}));
    FAIL("not refused");
  } catch (const ebb::OutOfMemory& error) {
    CHECK(error.info().resource == "fault(sound)");
    CHECK(error.info().asked == Bytes{10});
  }
  CHECK(own.heap.stats().allocations == 0);
}

TEST_CASE("fault: options that mean nothing are refused") {
  OwnHeap own;
  CHECK_THROWS_AS(Fault(own.heap, {.probability = -0.1}), std::invalid_argument);
  CHECK_THROWS_AS(Fault(own.heap, {.probability = 1.1}), std::invalid_argument);
  CHECK_THROWS_AS(Fault(own.heap, {.min_bytes = Bytes{2}, .max_bytes = Bytes{1}}),
                  std::invalid_argument);
  Fault fault(own.heap, {.at = 1});
  CHECK_THROWS_AS(fault.rearm({.probability = 2}), std::invalid_argument);
  CHECK(refusals(fault, 1) == std::vector<bool>{true});  // as it was
}
