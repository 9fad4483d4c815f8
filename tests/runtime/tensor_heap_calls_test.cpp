// SPDX-License-Identifier: Apache-2.0
// Tensors of every dtype but string make no heap call in the steady state, and ask the system for
// no memory. DESIGN row 1. One thread.
#include "support/malloc_interposer.h"

#include <ebb/runtime/interop/dlpack.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/tensor_from.h>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory_resource>
#include <vector>

using ebb::DType;
using ebb::Tensor;

namespace {

void release_nothing(int* /*context*/) noexcept {}

// Everything that is done with a tensor in a step.
void use(ebb::Iteration& it, DType dtype) {
  const Tensor x = ebb::full(it, {4, 8}, 1, dtype);
  const Tensor y = ebb::zeros({8, 4}, dtype);
  y.copy_(x.transpose(0, 1));
  Tensor z = y.clone();
  z.resize_({3, 5});
  const Tensor f = y.to(dtype == DType::f32 ? DType::f16 : DType::f32);
  f.narrow(0, 1, 2).fill_(3);
  CHECK(f.narrow(0, 1, 1).narrow(1, 0, 1).item<double>() == 3);
  CHECK(x.reshape({32}).unsqueeze(0).expand({2, 32}).narrow(1, 0, 1).elements() == 2);
}

void use_memory(ebb::Iteration& it) {
  std::array<float, 4> memory{1, 2, 3, 4};
  int context = 0;
  CHECK(ebb::from_blob(it, std::span(memory), {4}).data<float>()[3] == 4);
  CHECK(ebb::from_blob<release_nothing>(it, memory.data(), &context, {2, 2}, DType::f32)
            .view<float, 2>()(1, 1) == 4);
  CHECK(ebb::from_buffer(it, std::as_bytes(std::span(memory)), DType::f32).elements() == 4);
  std::int64_t size = 4;
  ebb::dlpack::Managed managed{
      {memory.data(), {1, 0}, 1, {2, 32, 1}, &size, nullptr, 0}, nullptr, nullptr};
  CHECK(ebb::from_dlpack(it, &managed).data<float>()[2] == 3);
  std::pmr::vector<int> numbers(it.resource());
  for (int n = 0; n < 100; ++n) {
    numbers.push_back(n);
  }
  CHECK(it.allocate(ebb::Bytes{1000}).bytes() == ebb::Bytes{1000});
}

void step(ebb::Loop& loop) {
  ebb::Iteration it(loop);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8,
                            DType::i16, DType::i32, DType::i64, DType::boolean}) {
    if (dtype != DType::boolean) {
      use(it, dtype);
    } else {
      CHECK(ebb::full(it, {2}, 5, dtype).clone().data<bool>()[1]);
    }
  }
  use_memory(it);
}

}  // namespace

TEST_CASE("tensor: in the steady state no dtype but string makes a heap call") {
  if (!ebb::test::heap_calls_counted()) {
    MESSAGE("skipped: a sanitizer build cannot count");
    return;
  }
  ebb::Runtime rt({.executor = ebb::ExecutorKind::jthread});
  ebb::Loop loop(rt);
  for (int i = 0; i < 10; ++i) {
    step(loop);
    REQUIRE(loop.wait_plan());
  }
  const ebb::test::HeapCalls before = ebb::test::heap_calls();
  const std::uint64_t source_calls = rt.memory().source_calls;
  for (int i = 0; i < 20; ++i) {
    step(loop);
  }
  const ebb::test::HeapCalls after = ebb::test::heap_calls();
  CHECK(after.allocations == before.allocations);
  CHECK(after.frees == before.frees);
  CHECK(rt.memory().source_calls == source_calls);
  CHECK(loop.plans()[0].stats.followed >= 20);
  loop.finish();
}

TEST_CASE("tensor: handing one out by DLPack is one heap call, a shared owner one") {
  if (!ebb::test::heap_calls_counted()) {
    return;
  }
  ebb::Runtime rt({.executor = ebb::ExecutorKind::jthread});
  const Tensor x = ebb::zeros(rt, {4, 4});
  const std::shared_ptr<float[]> shared(new float[4]);
  ebb::from_blob(rt, shared, {4});
  const std::uint64_t before = ebb::test::heap_calls().allocations;
  ebb::dlpack::Managed* const managed = ebb::to_dlpack(x);
  CHECK(ebb::test::heap_calls().allocations == before + 1);
  managed->deleter(managed);
  ebb::from_blob(rt, shared, {4});
  CHECK(ebb::test::heap_calls().allocations == before + 2);
}
