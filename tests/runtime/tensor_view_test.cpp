// SPDX-License-Identifier: Apache-2.0
// Views: which elements they have, that they share the storage, what is refused.
// One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <vector>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

// Reads by the strides that the tensor states, in the order of its shape.
std::vector<std::int32_t> elements_of(const Tensor& x) {
  std::vector<std::int32_t> out;
  std::vector<std::int64_t> index(static_cast<std::size_t>(x.dims()));
  for (std::int64_t n = 0; n < x.elements(); ++n) {
    std::int64_t rest = n;
    std::int64_t at = 0;
    for (int d = x.dims(); d-- > 0;) {
      at += rest % x.size(d) * x.stride(d);
      rest /= x.size(d);
    }
    out.push_back(x.data<const std::int32_t>()[at]);
  }
  return out;
}

using Numbers = std::vector<std::int32_t>;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "view: narrow takes a range of one dimension") {
  const Tensor x = counting({3, 4});
  CHECK(elements_of(x.narrow(0, 1, 2)) == Numbers{5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(elements_of(x.narrow(-1, 2, 2)) == Numbers{3, 4, 7, 8, 11, 12});
  CHECK(elements_of(x.narrow(1, 1, 3).narrow(1, 1, 1).narrow(0, 2, 1)) == Numbers{11});
  CHECK(x.narrow(0, 1, 2).offset() == 4);
  CHECK(x.narrow(0, 1, 2).is_contiguous());
  CHECK_FALSE(x.narrow(1, 0, 2).is_contiguous());
  CHECK(x.narrow(1, 0, 2).narrow(0, 0, 1).is_contiguous());
}

TEST_CASE_FIXTURE(Fixture, "view: narrow refuses a range beyond the dimension") {
  const Tensor x = counting({3, 4});
  CHECK_THROWS_WITH_AS(x.narrow(1, 3, 2),
                       "[Tensor::narrow] start 3 and length 2 do not fit dimension 1 of size 4",
                       std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, -1, 1), std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, 0, -1), std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, 4, 0), std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, 1, most), std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, most, most), std::invalid_argument);
  CHECK_THROWS_WITH(x.narrow(2, 0, 1), "[Tensor::narrow] there is no dimension 2 among 2");
  CHECK_THROWS_AS(x.narrow(-3, 0, 1), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "view: without elements it stays inside the storage") {
  const Tensor x = counting({3, 4});
  const Tensor end = x.narrow(0, 3, 0);
  CHECK(end.elements() == 0);
  CHECK(end.data<std::int32_t>() == x.data<std::int32_t>());
  const Tensor none = ebb::zeros(owner, {0, 5}, DType::i32).narrow(1, 3, 2);
  CHECK(none.offset() == 0);
  CHECK_NOTHROW(none.data<std::int32_t>());
  CHECK_NOTHROW(none.fill_(1));
}

TEST_CASE_FIXTURE(Fixture, "view: reshape keeps the order of the elements") {
  const Tensor x = counting({2, 6}).narrow(0, 1, 1);
  const Tensor y = x.reshape({3, 2});
  CHECK(y.shape() == Shape{3, 2});
  CHECK(elements_of(y) == Numbers{7, 8, 9, 10, 11, 12});
  CHECK(y.storage().is_same(x.storage()));
  CHECK(x.narrow(1, 0, 1).reshape({}).item<int>() == 7);
  CHECK_THROWS_WITH(x.reshape({4}),
                    "[Tensor::reshape] the shape [4] has 4 elements, the tensor [1, 6] has 6");
  CHECK_THROWS_WITH(counting({2, 3}).transpose(0, 1).reshape({6}),
                    "[Tensor::reshape] the tensor is not contiguous: clone() it first");
}

TEST_CASE_FIXTURE(Fixture, "view: transpose swaps two dimensions") {
  const Tensor x = counting({2, 3});
  const Tensor y = x.transpose(0, -1);
  CHECK(y.shape() == Shape{3, 2});
  CHECK(elements_of(y) == Numbers{1, 4, 2, 5, 3, 6});
  CHECK_FALSE(y.is_contiguous());
  CHECK(y.transpose(1, 0).is_contiguous());
  CHECK(elements_of(x.transpose(1, 1)) == elements_of(x));
  CHECK_THROWS_AS(x.transpose(0, 2), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "view: squeeze and unsqueeze drop and add a size of 1") {
  const Tensor x = counting({2, 3});
  CHECK(x.unsqueeze(0).shape() == Shape{1, 2, 3});
  CHECK(x.unsqueeze(1).shape() == Shape{2, 1, 3});
  CHECK(x.unsqueeze(-1).shape() == Shape{2, 3, 1});
  for (int d = 0; d <= 2; ++d) {
    const Tensor y = x.transpose(0, 1).unsqueeze(d);
    CHECK(elements_of(y) == Numbers{1, 4, 2, 5, 3, 6});
    CHECK(elements_of(y.squeeze(d)) == elements_of(y));
    CHECK(y.squeeze(d).shape() == Shape{3, 2});
    CHECK(x.unsqueeze(d).is_contiguous());
  }
  CHECK_THROWS_WITH(x.squeeze(0), "[Tensor::squeeze] dimension 0 has size 2, not 1");
  CHECK_THROWS_AS(x.unsqueeze(3), std::invalid_argument);
  CHECK_THROWS_AS(counting({1, 1, 1, 1, 1, 1, 1, 1}).unsqueeze(0), std::invalid_argument);
  CHECK(counting({1, 1, 1, 1, 1, 1, 1, 1}).squeeze(7).unsqueeze(0).dims() == 8);
}

TEST_CASE_FIXTURE(Fixture, "view: expand repeats sizes of 1 and adds dimensions in front") {
  const Tensor x = counting({2, 1});
  const Tensor y = x.expand({3, 2, 2});
  CHECK(elements_of(y) == Numbers{1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2});
  CHECK_FALSE(y.is_contiguous());
  CHECK(y.bytes() == ebb::Bytes{48});
  CHECK(y.storage().is_same(x.storage()));
  CHECK(counting({}).expand({2, 2}).narrow(0, 1, 1).transpose(0, 1).elements() == 2);
  CHECK(x.expand({2, 0}).elements() == 0);
  CHECK_THROWS_WITH(x.expand({3, 1}),
                    "[Tensor::expand] [2, 1] cannot become [3, 1]: only dimensions of size 1 are "
                    "repeated, and new ones come first");
  CHECK_THROWS_AS(x.expand({2}), std::invalid_argument);
  CHECK_THROWS_AS(x.expand({0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(x.expand({most, 2, 2}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "view: views share the storage and keep it alive") {
  Tensor x = counting({2, 2});
  const Tensor row = x.narrow(0, 1, 1);
  x.data<std::int32_t>()[2] = 42;
  CHECK(row.data<std::int32_t>()[0] == 42);
  CHECK(x.storage().use_count() == 2);
  const ebb::WeakStorage weak(x.storage());
  x = {};
  CHECK(weak.lock());
  CHECK(elements_of(row) == Numbers{42, 4});
}
