// SPDX-License-Identifier: Apache-2.0
// Resizing tensors, and what becomes of the views that were made before. [alloc.wrap] One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/interop/dlpack.h>
#include <ebb/runtime/tensor_from.h>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 61;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "tensor resize: the first elements stay in order, whatever the origin") {
  std::array<std::int32_t, 6> foreign{1, 2, 3, 4, 5, 6};
  for (Tensor x : {counting({2, 3}), ebb::from_blob(owner, std::span(foreign), {2, 3})}) {
    Tensor& same = x.resize_({4, 3});
    CHECK(&same == &x);
    CHECK(x.shape() == Shape{4, 3});
    CHECK(x.is_contiguous());
    for (int i = 0; i < 6; ++i) {
      CHECK(x.data<std::int32_t>()[i] == i + 1);
    }
    x.fill_(7);
    x.resize_({2});
    CHECK(to_string(x) == "i32[2] cpu\n[7, 7]");
    x.resize_({});
    CHECK(x.item<std::int32_t>() == 7);
  }
  CHECK(foreign[5] == 6);
}

TEST_CASE_FIXTURE(Fixture, "tensor resize: another shape of as many elements moves nothing") {
  Tensor x = counting({2, 3});
  const auto* const before = x.data<std::int32_t>();
  x.resize_({3, 2});
  CHECK(x.data<std::int32_t>() == before);
  CHECK(x.shape() == Shape{3, 2});
}

TEST_CASE_FIXTURE(Fixture, "tensor resize: views made before see new memory, or throw") {
  Tensor x = counting({6});
  const Tensor head = x.narrow(0, 0, 2);
  const Tensor tail = x.narrow(0, 4, 2);
  const Tensor all = x;
  x.resize_({600});
  x.data<std::int32_t>()[4] = 50;
  CHECK(tail.data<std::int32_t>()[0] == 50);
  CHECK(tail.in_storage());
  x.resize_({4});
  CHECK(head.data<std::int32_t>()[1] == 2);
  CHECK(x.in_storage());
  const std::string rest =
      "the storage was resized or swapped after this view was made, and no longer holds its "
      "elements: make the view again";
  for (const Tensor& view : {tail, all}) {
    CHECK_FALSE(view.in_storage());
    CHECK_THROWS_WITH(view.data<std::int32_t>(), ("[Tensor::data] " + rest).c_str());
    CHECK_THROWS_AS(view.span<const std::int32_t>(), std::invalid_argument);
    CHECK_THROWS_AS((view.view<std::int32_t, 1>()), std::invalid_argument);
    CHECK_THROWS_AS(view.fill_(0), std::invalid_argument);
    CHECK_THROWS_AS(view.clone(owner), std::invalid_argument);
    CHECK_THROWS_AS(counting({view.size(0)}).copy_(view), std::invalid_argument);
    CHECK_THROWS_AS(view.copy_(counting({view.size(0)})), std::invalid_argument);
    CHECK_THROWS_AS(view.narrow(0, view.size(0) - 1, 1).item<int>(), std::invalid_argument);
    CHECK_THROWS_AS(view.reshape({view.size(0)}), std::invalid_argument);
    CHECK_THROWS_AS(ebb::to_dlpack(view), std::invalid_argument);
    CHECK(to_string(view).find("no longer holds") != std::string::npos);
  }
  CHECK_THROWS_AS(tail.expand({2}).item<int>(), std::invalid_argument);
  x.resize_({6});
  CHECK_NOTHROW(tail.fill_(1));
}

TEST_CASE_FIXTURE(Fixture, "tensor resize: after a swap a view checks the kind of elements too") {
  const Tensor numbers = counting({100});
  const Tensor words = ebb::empty(owner, {2}, DType::string);
  ebb::Storage a = numbers.storage();
  ebb::Storage b = words.storage();
  a.swap(b);
  CHECK_THROWS_AS(numbers.data<std::int32_t>(), std::invalid_argument);
  CHECK_THROWS_AS(words.data<std::string>(), std::invalid_argument);
  CHECK(to_string(words).find("no longer holds") != std::string::npos);
  a.swap(b);
  CHECK(numbers.data<std::int32_t>()[99] == 100);
  CHECK(words.data<std::string>()[1].empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "tensor resize: parts, read-only tensors and sizes out of range are refused") {
  Tensor x = counting({2, 3});
  Tensor row = x.narrow(0, 0, 1);
  CHECK_THROWS_WITH(row.resize_({6}),
                    "[Tensor::resize_] the tensor is a view of a part of its storage: clone() it "
                    "first");
  Tensor turned = x.transpose(0, 1);
  CHECK_THROWS_AS(turned.resize_({6}), std::invalid_argument);
  CHECK_THROWS_AS(x.resize_({huge, 4}), std::invalid_argument);
  CHECK_THROWS_AS(x.resize_({huge, 2}), std::invalid_argument);
  CHECK_THROWS_AS(x.resize_({huge / 16}), std::bad_alloc);
  CHECK(x.data<std::int32_t>()[5] == 6);
  CHECK(x.shape() == Shape{2, 3});
  ebb::Storage(x.storage()).set_read_only();
  CHECK_THROWS_AS(x.resize_({7}), std::invalid_argument);
  Tensor none;
  CHECK_THROWS_AS(none.resize_({1}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "tensor strided: any strides whose elements lie in the storage") {
  const Tensor x = counting({6});
  const std::array<std::int64_t, 1> back{-1};
  const Tensor reversed = Tensor::strided(x.storage(), DType::i32, {6}, back, 5);
  CHECK(to_string(reversed) == "i32[6] cpu\n[6, 5, 4, 3, 2, 1]");
  CHECK(to_string(reversed.clone(owner)) == to_string(reversed));
  CHECK(to_string(reversed.narrow(0, 1, 2)) == "i32[2] cpu\n[5, 4]");
  CHECK_THROWS_AS(reversed.span<std::int32_t>(), std::invalid_argument);
  x.copy_(reversed);  // overlaps: through a temporary
  CHECK(to_string(x) == "i32[6] cpu\n[6, 5, 4, 3, 2, 1]");
  const std::array<std::int64_t, 2> overlapping{1, 1};
  CHECK(Tensor::strided(x.storage(), DType::i32, {2, 5}, overlapping).view<int, 2>()(1, 4) == 1);
  CHECK_THROWS_AS(Tensor::strided(x.storage(), DType::i32, {6}, back, 4), std::invalid_argument);
  CHECK_THROWS_AS(Tensor::strided(x.storage(), DType::i32, {2, 6}, overlapping),
                  std::invalid_argument);
  CHECK_THROWS_AS(Tensor::strided(x.storage(), DType::i32, {6}, overlapping, 0),
                  std::invalid_argument);
  const std::array<std::int64_t, 1> far{huge * 2};
  CHECK_THROWS_AS(Tensor::strided(x.storage(), DType::i32, {6}, far), std::invalid_argument);
}
