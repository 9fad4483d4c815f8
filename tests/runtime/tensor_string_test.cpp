// SPDX-License-Identifier: Apache-2.0
// Tensors of strings: built, copied, resized and destroyed right, on any thread. [alloc.resource]
#include "tensor_fixture.h"

#include <ebb/runtime/runtime.h>
#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using ebb::DType;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

std::string word(std::int64_t n) {
  return "word number " + std::to_string(n) + ", long enough to need memory of its own";
}

Tensor words(ebb::Owner owner, std::int64_t count) {
  const Tensor x = ebb::empty(owner, {count}, DType::string);
  std::int64_t n = 0;
  for (std::string& element : x.span<std::string>()) {
    CHECK(element.empty());
    element = word(n++);
  }
  return x;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "string tensor: elements start empty and are plain std::string") {
  for (const Tensor& x :
       {ebb::empty(owner, {2, 2}, DType::string), ebb::zeros(owner, {2, 2}, DType::string)}) {
    CHECK(x.data<std::string>()[3].empty());
    x.data<std::string>()[3] = word(3);
    CHECK(x.reshape({4}).span<const std::string>()[3] == word(3));
  }
  CHECK_THROWS_WITH(ebb::zeros(owner, {2}).data<std::string>(),
                    "[Tensor::data] the elements are f32, not string");
}

TEST_CASE_FIXTURE(Fixture, "string tensor: numbers are refused wherever they would be converted") {
  const Tensor x = words(owner, 1);
  CHECK_THROWS_WITH(x.fill_(1), "[Tensor::fill_] elements are not converted from f64 to string");
  CHECK_THROWS_WITH(ebb::zeros(owner, {1}).fill_("x"),
                    "[Tensor::fill_] elements are not converted from string to f32");
  CHECK_THROWS_WITH(x.item<double>(),
                    "[Tensor::item] elements are not converted from string to f64");
  CHECK_THROWS_WITH(ebb::zeros(owner, {1}).item<std::string>(),
                    "[Tensor::item] elements are not converted from f32 to string");
  CHECK_THROWS_AS(ebb::full(owner, {1}, 1, DType::string), std::invalid_argument);
  CHECK(x.item<std::string>() == word(0));
}

TEST_CASE_FIXTURE(Fixture, "string tensor: a storage is viewed as what it holds only") {
  const Tensor x = words(owner, 4);
  CHECK_THROWS_WITH(Tensor(x.storage(), DType::u8, {4}),
                    "[Tensor] a storage of constructed elements holds no elements of dtype u8");
  const ebb::Storage bytes =
      ebb::Storage::make(owner, ebb::Bytes{256}, ebb::default_align_cpu, {ebb::Place::here()});
  CHECK_THROWS_WITH(Tensor(bytes, DType::string, {2}),
                    "[Tensor] a storage of plain bytes holds no elements of dtype string");
  const ebb::Storage other = ebb::Storage::make_elements(owner, ebb::element_ops<std::vector<int>>,
                                                         2, {ebb::Place::here()});
  CHECK_THROWS_AS(Tensor(other, DType::string, {1}), std::invalid_argument);
  CHECK(Tensor(x.storage(), DType::string, {2}, 1).data<std::string>()[0] == word(1));
}

TEST_CASE_FIXTURE(Fixture, "string tensor: overlapping copies behave as if read first") {
  const Tensor x = words(owner, 5);
  x.narrow(0, 1, 4).copy_(x.narrow(0, 0, 4));
  for (int i = 1; i < 5; ++i) {
    CHECK(x.data<std::string>()[i] == word(i - 1));
  }
  x.copy_(x);
  CHECK(x.data<std::string>()[4] == word(3));
}

TEST_CASE_FIXTURE(Fixture,
                  "string tensor: resizing keeps the first elements and empties new ones") {
  Tensor x = words(owner, 3);
  x.resize_({2, 3});
  CHECK(x.shape() == ebb::Shape{2, 3});
  CHECK(x.data<std::string>()[2] == word(2));
  CHECK(x.data<std::string>()[5].empty());
  x.resize_({1});
  CHECK(x.item<std::string>() == word(0));
  x.resize_({0});
  CHECK(x.elements() == 0);
}

TEST_CASE("string tensor: made in one thread, dropped in another, also after the runtime") {
  Tensor survivor;
  {
    ebb::Runtime rt({.log = [](ebb::LogLevel, std::string_view) {}});
    std::vector<Tensor> made;
    for (int i = 0; i < 20; ++i) {
      made.push_back(words(rt, 50));
    }
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, mine = std::vector<Tensor>(made.begin() + t * 5,
                                                          made.begin() + t * 5 + 5)]() mutable {
        mine.push_back(words(rt, 10));
        mine.clear();
      });
    }
    made.clear();
    threads.clear();
    CHECK(rt.stats().storages_live == 0);
    survivor = words(rt, 7);
  }
  CHECK(survivor.data<std::string>()[6] == word(6));
  std::jthread([&] { survivor = {}; }).join();
}
