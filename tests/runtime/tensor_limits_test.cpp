// SPDX-License-Identifier: Apache-2.0
// Sizes and strides at the end of what 64 bits hold: refused, or without effect. Some of it only
// shows under UBSan. One thread.
#include "tensor_fixture.h"

#include <ebb/alloc/error.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/tensor_from.h>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

constexpr ebb::PtrOps borrowed{nullptr, "borrowed"};

}  // namespace

TEST_CASE("limits: a request for all there is fails beside live tensors, and counts nothing") {
  ebb::Runtime rt({.log = [](ebb::LogLevel, std::string_view) {}});
  ebb::Loop loop(rt);
  const ebb::Iteration it(loop);
  const Tensor before = ebb::zeros({3});
  const ebb::Bytes live = rt.memory().live;
  for (const std::int64_t size : {int64_max, int64_max / 2, std::int64_t{1} << 62}) {
    CHECK_THROWS_AS(ebb::empty({size}, DType::u8), ebb::OutOfMemory);
    CHECK_THROWS_AS(ebb::empty({size / 2}, DType::i16), ebb::OutOfMemory);
    CHECK_THROWS_AS(ebb::empty({size}, DType::i32), std::exception);
  }
  CHECK(rt.memory().live == live);
}

TEST_CASE_FIXTURE(Fixture, "limits: the stride of a single element may be any number") {
  for (const std::int64_t stride : {int64_max, int64_min, int64_max / 2, int64_min / 4}) {
    CAPTURE(stride);
    const Tensor base = counting({16});
    const std::array<std::int64_t, 3> strides{stride, 3, stride};
    const Tensor x = Tensor::strided(base.storage(), DType::i32, {1, 4, 1}, strides, 1);
    CHECK(to_string(x.clone(owner).reshape({4})) == "i32[4] cpu\n[2, 5, 8, 11]");
    CHECK(to_string(x.expand({2, 4, 1}).clone(owner).reshape({2, 4})) ==
          "i32[2, 4] cpu\n[[2, 5, 8, 11],\n [2, 5, 8, 11]]");
    x.fill_(7);
    CHECK(base.data<const std::int32_t>()[10] == 7);
    CHECK(base.data<const std::int32_t>()[11] == 12);
    CHECK(x.narrow(0, 1, 0).clone(owner).elements() == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "limits: no memory is wrapped that no address space has") {
  std::array<char, 8> bytes{};
  const auto wrap = [&](const Shape& shape, DType dtype) {
    return ebb::from_blob(owner, ebb::DataPtr(bytes.data(), nullptr, borrowed, ebb::cpu), shape,
                          dtype);
  };
  CHECK_THROWS_WITH(wrap({std::int64_t{1} << 56}, DType::u8),
                    "[Storage::wrap] no memory has 72057594037927936 bytes");
  CHECK_THROWS_AS(wrap({int64_max}, DType::u8), std::invalid_argument);
  CHECK_THROWS_AS(wrap({std::int64_t{1} << 60}, DType::f64), std::invalid_argument);
  CHECK(domain->stats().storages_live == 0);
}
