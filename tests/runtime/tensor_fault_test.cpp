// SPDX-License-Identifier: Apache-2.0
// A step with every sort of tensor, with each of its requests for pages refused in turn, and under
// each of many limits: what failed leaves nothing behind, and the step then runs. One thread.
#include "support/failing_source.h"

#include <ebb/alloc/error.h>
#include <ebb/runtime/interop/dlpack.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/tensor_from.h>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using ebb::Bytes;
using ebb::DType;
using ebb::Tensor;

namespace {

constexpr std::string_view long_text = "a string that does not fit inside of its object";

int held = 0;  // foreign buffers that are not released yet
void release(int* count) noexcept {
  --*count;
}

void numbers(const ebb::Iteration& it) {
  const Tensor a = ebb::full({100, 100}, 2);
  a.copy_(a.transpose(0, 1));
  Tensor b = a.to(DType::f16);
  b.resize_({300, 300});
  b.resize_({3});
  const Tensor c = ebb::from_dlpack(it, ebb::to_dlpack(a));
  const Tensor kept = it.keep(c.clone());
  CHECK(kept.data<float>()[9999] == 2);
}

void strings(const ebb::Iteration& it) {
  Tensor s = ebb::empty({300}, DType::string);
  s.fill_(long_text);
  s.narrow(0, 1, 200).copy_(s.narrow(0, 0, 200));
  s.resize_({900});
  s.resize_({10});
  CHECK(it.keep_copy(s).data<std::string>()[9] == long_text);
}

void foreign(const ebb::Iteration& it) {
  std::array<float, 4> memory{1, 2, 3, 4};
  ++held;
  Tensor x = ebb::from_blob<release>(it, memory.data(), &held, {4}, DType::f32);
  x.resize_({5000});
  CHECK(x.data<float>()[3] == 4);
  const std::vector<std::byte> bytes(512);
  CHECK(ebb::from_buffer(it, bytes, DType::i64).elements() == 64);
}

void containers(const ebb::Iteration& it) {
  std::pmr::vector<std::pmr::string> names(it.resource());
  for (int i = 0; i < 50; ++i) {
    names.emplace_back(long_text);
  }
  const ebb::RawMemory raw = it.raw();
  raw.deallocate(raw.allocate(5000), 5000);
}

void step(ebb::Runtime& rt) {
  ebb::Loop loop(rt, {.deadline = ebb::Milliseconds{0}});
  {
    const ebb::Iteration it(loop);
    numbers(it);
    strings(it);
    foreign(it);
    containers(it);
  }
  loop.finish();
}

// Returns whether the step was refused memory.
bool is_refused(ebb::Runtime& rt) {
  try {
    step(rt);
  } catch (const ebb::OutOfMemory&) {
    return true;
  }
  return false;
}

void check_nothing_left(const ebb::Runtime& rt) {
  CHECK(rt.memory().live == Bytes{});
  CHECK(rt.stats().storages_live == 0);
  CHECK(held == 0);
}

ebb::LogHook silent() {
  return [](ebb::LogLevel, std::string_view) {};
}

}  // namespace

TEST_CASE("tensor faults: each request for pages refused in turn") {
  int refused = 0;
  for (std::uint64_t n = 1;; ++n) {
    CAPTURE(n);
    ebb::test::FailingSource source(ebb::system_source());
    ebb::Runtime rt({.source = &source, .log = silent()});
    source.fail_at(n);
    refused += is_refused(rt) ? 1 : 0;
    const bool reached = source.calls() >= n;
    source.never_fail();
    check_nothing_left(rt);
    CHECK_NOTHROW(step(rt));
    check_nothing_left(rt);
    if (!reached) {
      break;
    }
  }
  CHECK(refused > 2);
}

TEST_CASE("tensor faults: limits of any size") {
  int refused = 0;
  for (std::size_t limit = 4096; limit < std::size_t{1} << 20; limit += limit / 8) {
    CAPTURE(limit);
    ebb::Runtime rt({.memory_limit = Bytes{limit}, .log = silent()});
    refused += is_refused(rt) ? 1 : 0;
    check_nothing_left(rt);
  }
  CHECK(refused > 10);
}
