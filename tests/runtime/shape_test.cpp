// SPDX-License-Identifier: Apache-2.0
// Shapes and element types: what is refused, what is counted, how they print.
// One thread.
#include <ebb/runtime/dtype.h>
#include <ebb/runtime/shape.h>

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using ebb::DType;
using ebb::Shape;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 62;

}  // namespace

TEST_CASE("shape: elements is the product, and 1 for a scalar") {
  CHECK(Shape{}.dims() == 0);
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{64, 512}.elements() == 64 * 512);
  CHECK(Shape{3, 0, 5}.elements() == 0);
  CHECK(Shape{std::numeric_limits<std::int64_t>::max()}.elements() ==
        std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("shape: a product that overflows throws, beside a size of 0 too") {
  CHECK_THROWS_WITH_AS(Shape({huge, 4}).elements(),
                       "[Shape::elements] the sizes [4611686018427387904, 4] have a product that "
                       "overflows",
                       std::invalid_argument);
  CHECK_THROWS_AS(Shape({huge, 0, 4}).elements(), std::invalid_argument);
  CHECK(Shape({huge, 0}).elements() == 0);
}

TEST_CASE("shape: negative sizes and more than eight dimensions are refused") {
  CHECK_THROWS_WITH_AS(Shape({2, -3}), "[Shape] the size -3 of dimension 1 is negative",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Shape({1, 2, 3, 4, 5, 6, 7, 8, 9}),
                       "[Shape] 9 dimensions: a tensor has at most 8", std::invalid_argument);
  CHECK(Shape({1, 2, 3, 4, 5, 6, 7, 8}).dims() == 8);
}

TEST_CASE("shape: equal means the same sizes in the same order") {
  const std::vector<std::int64_t> sizes{2, 3};
  CHECK(Shape{2, 3} == Shape(std::span<const std::int64_t>(sizes)));
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2} != Shape{2, 1});
  CHECK(Shape{} != Shape{1});
  CHECK(Shape{} == Shape{});
}

TEST_CASE("shape: iteration and text follow the order of the sizes") {
  const Shape shape{4, 0, 7};
  CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) ==
        std::vector<std::int64_t>{4, 0, 7});
  CHECK(shape[2] == 7);
  CHECK(to_string(shape) == "[4, 0, 7]");
  CHECK(to_string(Shape{}) == "[]");
}

TEST_CASE("dtype: sizes are those of the C++ types") {
  CHECK(size_of(ebb::dtype_of<float>) == sizeof(float));
  CHECK(size_of(ebb::dtype_of<double>) == sizeof(double));
  CHECK(size_of(ebb::dtype_of<std::int8_t>) == 1);
  CHECK(size_of(ebb::dtype_of<std::uint8_t>) == 1);
  CHECK(size_of(ebb::dtype_of<std::int16_t>) == 2);
  CHECK(size_of(ebb::dtype_of<std::int32_t>) == 4);
  CHECK(size_of(ebb::dtype_of<std::int64_t>) == 8);
  CHECK(size_of(ebb::dtype_of<bool>) == sizeof(bool));
}

TEST_CASE("dtype: names are short") {
  CHECK(to_string(DType::f32) == "f32");
  CHECK(to_string(DType::f64) == "f64");
  CHECK(to_string(DType::i8) == "i8");
  CHECK(to_string(DType::u8) == "u8");
  CHECK(to_string(DType::i16) == "i16");
  CHECK(to_string(DType::i32) == "i32");
  CHECK(to_string(DType::i64) == "i64");
  CHECK(to_string(DType::boolean) == "bool");
}
