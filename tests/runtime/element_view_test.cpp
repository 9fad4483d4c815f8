// SPDX-License-Identifier: Apache-2.0
// Elements by index. One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <type_traits>

using ebb::DType;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

TEST_CASE_FIXTURE(Fixture, "element view: indices reach the elements of any layout") {
  const Tensor x = counting({2, 3, 4});
  const auto all = x.view<std::int32_t, 3>();
  CHECK(all(1, 2, 3) == 24);
  CHECK(all.at(0, 1, 2) == 7);
  CHECK(all.size(1) == 3);
  CHECK(all.stride(0) == 12);
  CHECK(all.elements() == 24);
  CHECK(all.dims() == 3);
  all(0, 0, 0) = 100;
  CHECK(x.data<std::int32_t>()[0] == 100);

  const auto turned = x.transpose(0, 2).view<const std::int32_t, 3>();
  static_assert(std::is_same_v<decltype(turned(0, 0, 0)), const std::int32_t&>);
  CHECK(turned(3, 2, 1) == 24);
  const auto row = x.narrow(0, 1, 1).narrow(1, 1, 1).squeeze(0).squeeze(0).view<std::int32_t, 1>();
  CHECK(row[2] == 19);
  const Tensor one = counting({1});  // a view does not keep it
  const auto wide = one.expand({5}).view<const std::int32_t, 1>();
  CHECK(wide[4] == 1);
  const Tensor scalar = ebb::full(owner, {}, 3);
  CHECK(scalar.view<float, 0>()() == 3);
}

TEST_CASE_FIXTURE(Fixture, "element view: an index out of bounds is named") {
  const Tensor x = counting({2, 3});
  const auto view = x.view<std::int32_t, 2>();
  CHECK_THROWS_WITH(view.at(1, 3),
                    "[ElementView] the index 3 of dimension 1 is outside its size 3");
  CHECK_THROWS_AS(view.at(-1, 0), std::invalid_argument);
  const Tensor empty = counting({0});
  const auto none = empty.view<std::int32_t, 1>();
  CHECK_THROWS_AS(none.at(0), std::invalid_argument);
  if (ebb::detail::views_checked) {
    CHECK_THROWS_AS(view(2, 0), std::invalid_argument);
  }
}

TEST_CASE_FIXTURE(Fixture, "element view: dtype, rank, device and writing are checked once") {
  const Tensor x = counting({2, 3});
  CHECK_THROWS_AS((x.view<float, 2>()), std::invalid_argument);
  CHECK_THROWS_WITH((x.view<std::int32_t, 3>()),
                    "[Tensor::view] the tensor has 2 dimensions, not 3");
  ebb::Storage(x.storage()).set_read_only();
  CHECK_THROWS_AS((x.view<std::int32_t, 2>()), std::invalid_argument);
  CHECK((x.view<const std::int32_t, 2>()(1, 1)) == 5);
  CHECK_THROWS_AS((Tensor().view<float, 0>()), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "element view: strings have one too") {
  const Tensor x = ebb::empty(owner, {2, 2}, DType::string);
  x.view<std::string, 2>()(1, 0) = "text";
  CHECK(x.view<const std::string, 2>()(1, 0) == "text");
}
