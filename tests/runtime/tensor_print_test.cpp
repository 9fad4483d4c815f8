// SPDX-License-Identifier: Apache-2.0
// Tensors as text.
// One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string>

using ebb::DType;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

TEST_CASE_FIXTURE(Fixture, "tensor printing: brackets follow the dimensions") {
  CHECK(to_string(counting({2, 3})) == "i32[2, 3] cpu\n[[1, 2, 3],\n [4, 5, 6]]");
  CHECK(to_string(counting({2, 1, 2})) == "i32[2, 1, 2] cpu\n[[[1, 2]],\n [[3, 4]]]");
  CHECK(to_string(counting({3})) == "i32[3] cpu\n[1, 2, 3]");
  CHECK(to_string(ebb::full(owner, {}, 1.5)) == "f32[] cpu\n1.5");
  CHECK(to_string(ebb::zeros(owner, {0, 3})) == "f32[0, 3] cpu\n[]");
  std::ostringstream out;
  out << counting({2}) << " and " << Tensor();
  CHECK(out.str() == "i32[2] cpu\n[1, 2] and undefined");
}

TEST_CASE_FIXTURE(Fixture, "tensor printing: views print their own elements") {
  CHECK(to_string(counting({2, 3}).transpose(0, 1)) ==
        "i32[3, 2] cpu\n[[1, 4],\n [2, 5],\n [3, 6]]");
  CHECK(to_string(counting({2, 3}).narrow(1, 1, 1).expand({2, 2})) ==
        "i32[2, 2] cpu\n[[2, 2],\n [5, 5]]");
}

TEST_CASE_FIXTURE(Fixture, "tensor printing: every dtype has its form") {
  CHECK(to_string(ebb::full(owner, {1}, -3, DType::i8)) == "i8[1] cpu\n[-3]");
  CHECK(to_string(ebb::full(owner, {1}, 200, DType::u8)) == "u8[1] cpu\n[200]");
  CHECK(to_string(ebb::full(owner, {1}, 1, DType::boolean)) == "bool[1] cpu\n[true]");
  CHECK(to_string(ebb::zeros(owner, {1}, DType::boolean)) == "bool[1] cpu\n[false]");
  CHECK(to_string(ebb::full(owner, {1}, -1.0 / 3, DType::f64)) == "f64[1] cpu\n[-0.333333]");
  CHECK(to_string(ebb::full(owner, {1}, 1e30)) == "f32[1] cpu\n[1e+30]");
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(to_string(ebb::full(owner, {1}, -inf)) == "f32[1] cpu\n[-inf]");
  const Tensor last = ebb::empty(owner, {1}, DType::i64);
  *last.data<std::int64_t>() = std::numeric_limits<std::int64_t>::min();
  CHECK(to_string(last) == "i64[1] cpu\n[-9223372036854775808]");
}

TEST_CASE_FIXTURE(Fixture, "tensor printing: more than 1000 elements are shortened") {
  CHECK(to_string(counting({1000})).find("...") == std::string::npos);
  CHECK(to_string(counting({1001})) == "i32[1001] cpu\n[1, 2, 3, ..., 999, 1000, 1001]");
  CHECK(to_string(counting({600, 2})) ==
        "i32[600, 2] cpu\n[[1, 2],\n [3, 4],\n [5, 6],\n ...,\n [1195, 1196],\n [1197, 1198],\n "
        "[1199, 1200]]");
  const std::string many = to_string(counting({4, 4, 4, 4, 4, 4, 4, 4}));
  CHECK(std::count(many.begin(), many.end(), '.') > 0);
  CHECK(many.size() < 10000);
}
