// SPDX-License-Identifier: Apache-2.0
// Copying between layouts and dtypes, against a plain model; overlap; conversions at their limits.
// One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

constexpr DType all_dtypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,
                                DType::u8,  DType::i16,  DType::i32, DType::i64, DType::boolean};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Where element n, in the order of the shape, lies: in elements from the view's first.
std::int64_t position(const Tensor& x, std::int64_t n) {
  std::int64_t at = 0;
  for (int d = x.dims(); d-- > 0;) {
    at += n % x.size(d) * x.stride(d);
    n /= x.size(d);
  }
  return at;
}

template <class T>
double read_as(const Tensor& x, std::int64_t n) {
  return static_cast<double>(x.data<const T>()[position(x, n)]);
}

double read(const Tensor& x, std::int64_t n) {
  switch (x.dtype()) {
    case DType::f16:
      return read_as<ebb::Half>(x, n);
    case DType::bf16:
      return read_as<ebb::BFloat16>(x, n);
    case DType::f32:
      return read_as<float>(x, n);
    case DType::f64:
      return read_as<double>(x, n);
    case DType::i8:
      return read_as<std::int8_t>(x, n);
    case DType::u8:
      return read_as<std::uint8_t>(x, n);
    case DType::i16:
      return read_as<std::int16_t>(x, n);
    case DType::i32:
      return read_as<std::int32_t>(x, n);
    case DType::i64:
      return read_as<std::int64_t>(x, n);
    default:
      return read_as<bool>(x, n);
  }
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(seed) {}

  std::int64_t upto(std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(0, last)(engine_);
  }
  DType dtype() { return all_dtypes[upto(9)]; }
  Shape shape(int most_dims) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(upto(most_dims)));
    for (auto& size : sizes) {
      size = upto(9) == 0 ? 0 : 1 + upto(4);
    }
    return Shape(std::span<const std::int64_t>(sizes));
  }

  // Returns a tensor of that shape whose layout is as odd as views can make it.
  Tensor strided(ebb::Owner owner, const Shape& shape, DType dtype) {
    std::vector<std::int64_t> sizes(shape.begin(), shape.end());
    const int a = shape.dims() < 2 ? 0 : static_cast<int>(upto(shape.dims() - 1));
    const int b = shape.dims() < 2 ? 0 : static_cast<int>(upto(shape.dims() - 1));
    std::vector<std::int64_t> begins;
    if (shape.dims() >= 2) {
      std::swap(sizes[static_cast<std::size_t>(a)], sizes[static_cast<std::size_t>(b)]);
    }
    std::vector<std::int64_t> whole = sizes;
    for (auto& size : whole) {
      begins.push_back(upto(2));
      size += begins.back() + upto(1);
    }
    Tensor x = ebb::empty(owner, Shape(std::span<const std::int64_t>(whole)), dtype);
    fill_random(x);
    for (int d = 0; d < x.dims(); ++d) {
      x = x.narrow(d, begins[static_cast<std::size_t>(d)], sizes[static_cast<std::size_t>(d)]);
    }
    return shape.dims() >= 2 ? x.transpose(a, b) : x;
  }

 private:
  void fill_random(const Tensor& contiguous) {
    for (std::int64_t n = 0; n < contiguous.elements(); ++n) {
      Tensor(contiguous.storage(), contiguous.dtype(), {}, n).fill_(static_cast<double>(upto(100)));
    }
  }

  std::mt19937_64 engine_;
};

std::vector<double> snapshot(const Tensor& x) {
  std::vector<double> values;
  for (std::int64_t n = 0; n < x.elements(); ++n) {
    values.push_back(read(x, n));
  }
  return values;
}

double converted(double value, DType to) {
  return to == DType::boolean ? static_cast<double>(value != 0) : value;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "copy: any layout and dtype to any other, as the plain model") {
  const std::uint64_t seed = number_from("EBB_TEST_SEED", std::random_device{}());
  INFO("EBB_TEST_SEED=" << seed);
  MESSAGE("EBB_TEST_SEED=" << seed);
  Generator generator(seed);
  const std::uint64_t rounds = std::max<std::uint64_t>(number_from("EBB_STRESS", 10000) / 10, 100);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Shape shape = generator.shape(5);
    const Tensor from = generator.strided(owner, shape, generator.dtype());
    const Tensor to = generator.strided(owner, shape, generator.dtype());
    const std::vector<double> expected = snapshot(from);
    to.copy_(from);
    REQUIRE(snapshot(from) == expected);
    const Tensor copy = from.clone(owner);
    REQUIRE(copy.is_contiguous());
    REQUIRE(snapshot(copy) == expected);
    for (std::int64_t n = 0; n < from.elements(); ++n) {
      REQUIRE(read(to, n) == converted(expected[static_cast<std::size_t>(n)], to.dtype()));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "copy: writes nothing outside the view") {
  const Tensor whole = counting({6, 7});
  whole.narrow(0, 1, 3).narrow(1, 2, 4).copy_(ebb::full(owner, {3, 4}, -1));
  for (std::int64_t row = 0; row < 6; ++row) {
    for (std::int64_t column = 0; column < 7; ++column) {
      const bool inside = row >= 1 && row < 4 && column >= 2 && column < 6;
      CHECK(whole.data<std::int32_t>()[row * 7 + column] == (inside ? -1 : row * 7 + column + 1));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "copy: overlapping views copy as if all were read first") {
  const std::uint64_t seed = number_from("EBB_TEST_SEED", std::random_device{}());
  MESSAGE("EBB_TEST_SEED=" << seed);
  Generator generator(seed);
  for (int round = 0; round < 300; ++round) {
    INFO("EBB_TEST_SEED=" << seed << " round " << round);
    const Tensor whole = counting({8, 9});
    const std::int64_t rows = 1 + generator.upto(5);
    const std::int64_t columns = 1 + generator.upto(5);
    const auto window = [&](std::int64_t r, std::int64_t c) {
      return whole.narrow(0, generator.upto(8 - r), r).narrow(1, generator.upto(9 - c), c);
    };
    const Tensor to = window(rows, columns);
    const bool turned = generator.upto(1) == 1;
    const Tensor from = turned ? window(columns, rows).transpose(0, 1) : window(rows, columns);
    const std::vector<double> expected = snapshot(from);
    to.copy_(from);
    REQUIRE(snapshot(to) == expected);
  }
}

TEST_CASE_FIXTURE(Fixture, "copy: contiguous ranges that overlap move both ways") {
  const Tensor up = counting({10});
  up.narrow(0, 2, 8).copy_(up.narrow(0, 0, 8));
  CHECK(to_string(up) == "i32[10] cpu\n[1, 2, 1, 2, 3, 4, 5, 6, 7, 8]");
  const Tensor down = counting({10});
  down.narrow(0, 0, 8).copy_(down.narrow(0, 2, 8));
  CHECK(to_string(down) == "i32[10] cpu\n[3, 4, 5, 6, 7, 8, 9, 10, 9, 10]");
  const Tensor square = counting({2, 2});
  square.copy_(square.transpose(0, 1));
  CHECK(to_string(square) == "i32[2, 2] cpu\n[[1, 3],\n [2, 4]]");
  square.copy_(square);
  CHECK(to_string(square) == "i32[2, 2] cpu\n[[1, 3],\n [2, 4]]");
}

TEST_CASE_FIXTURE(Fixture, "copy: repeated elements are read, and refused as a destination") {
  const Tensor x = ebb::zeros(owner, {2, 3}, DType::i32);
  x.copy_(counting({3}).expand({2, 3}));
  CHECK(to_string(x) == "i32[2, 3] cpu\n[[1, 2, 3],\n [1, 2, 3]]");
  CHECK_THROWS_WITH(counting({3}).expand({2, 3}).copy_(x),
                    "[Tensor::copy_] this tensor repeats elements by expand(): clone() it first");
  CHECK_THROWS_WITH(x.copy_(counting({3, 2})),
                    "[Tensor::copy_] the shapes [2, 3] and [3, 2] differ");
  CHECK(counting({3}).expand({2, 3}).fill_(4).data<std::int32_t>()[2] == 4);
}

TEST_CASE_FIXTURE(Fixture, "copy: floats saturate in integers, and NaN becomes 0") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  for (DType floating : {DType::f32, DType::f64}) {
    const auto as = [&](double value, DType to) {
      const Tensor out = ebb::empty(owner, {}, to);
      out.copy_(ebb::full(owner, {}, value, floating));
      return out.item<std::int64_t>();
    };
    CHECK(as(2.99, DType::i32) == 2);
    CHECK(as(-2.99, DType::i32) == -2);
    CHECK(as(-0.5, DType::u8) == 0);
    CHECK(as(-7, DType::u8) == 0);
    CHECK(as(255.5, DType::u8) == 255);
    CHECK(as(256, DType::u8) == 255);
    CHECK(as(127.9, DType::i8) == 127);
    CHECK(as(-128.5, DType::i8) == -128);
    CHECK(as(1e10, DType::i16) == 32767);
    CHECK(as(2147483648.0, DType::i32) == 2147483647);
    CHECK(as(-1e300, DType::i32) == std::numeric_limits<std::int32_t>::min());
    CHECK(as(9223372036854775808.0, DType::i64) == std::numeric_limits<std::int64_t>::max());
    CHECK(as(-inf, DType::i64) == std::numeric_limits<std::int64_t>::min());
    CHECK(as(inf, DType::u8) == 255);
    CHECK(as(nan, DType::i64) == 0);
    CHECK(as(nan, DType::u8) == 0);
    CHECK(as(nan, DType::boolean) == 1);
    CHECK(as(0.25, DType::boolean) == 1);
    CHECK(as(-0.0, DType::boolean) == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "copy: integers saturate in smaller ones and keep all their bits") {
  const Tensor x = ebb::empty(owner, {3}, DType::i64);
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;  // no double holds it
  x.data<std::int64_t>()[0] = odd;
  x.data<std::int64_t>()[1] = -odd;
  x.data<std::int64_t>()[2] = 100;
  CHECK(x.narrow(0, 0, 1).item<std::int64_t>() == odd);
  CHECK(x.narrow(0, 0, 1).item<double>() == 9007199254740992.0);
  CHECK(x.narrow(0, 0, 1).item<bool>());
  const Tensor small = ebb::empty(owner, {3}, DType::i8);
  small.copy_(x);
  CHECK(to_string(small) == "i8[3] cpu\n[127, -128, 100]");
  const Tensor unsigned_small = ebb::empty(owner, {3}, DType::u8);
  unsigned_small.copy_(x);
  CHECK(to_string(unsigned_small) == "u8[3] cpu\n[255, 0, 100]");
}

TEST_CASE_FIXTURE(Fixture, "copy: doubles past the largest float become infinite") {
  CHECK(ebb::full(owner, {}, 1e300, DType::f64).item<float>() ==
        std::numeric_limits<float>::infinity());
  CHECK(std::isnan(ebb::full(owner, {}, std::nan("")).item<double>()));
}

TEST_CASE_FIXTURE(Fixture, "copy: any byte but 0 is true, whatever a file put there") {
  const ebb::Storage storage =
      ebb::Storage::make(owner, ebb::Bytes{3}, ebb::default_align_cpu, {ebb::Place::here()});
  std::memcpy(storage.data(), "\x02\x00\xff", 3);
  const Tensor flags(storage, DType::boolean, {3});
  const Tensor numbers = ebb::empty(owner, {3}, DType::i32);
  numbers.copy_(flags);
  CHECK(to_string(numbers) == "i32[3] cpu\n[1, 0, 1]");
  CHECK(to_string(flags) == "bool[3] cpu\n[true, false, true]");
  CHECK(flags.narrow(0, 0, 1).item<float>() == 1);
  CHECK(static_cast<int>(flags.narrow(0, 2, 1).item<bool>()) == 1);
}

TEST_CASE_FIXTURE(Fixture, "fill: writes every element of every dtype") {
  for (DType dtype : all_dtypes) {
    const Tensor x = ebb::zeros(owner, {5, 6}, dtype).narrow(1, 1, 4).transpose(0, 1);
    x.fill_(3);
    const std::vector<double> values = snapshot(x);
    CHECK(std::all_of(values.begin(), values.end(),
                      [&](double v) { return v == converted(3, dtype); }));
  }
}

TEST_CASE_FIXTURE(Fixture, "item: of a view with one element, and of nothing else") {
  const Tensor x = counting({2, 3});
  CHECK(x.narrow(0, 1, 1).narrow(1, 2, 1).item<float>() == 6);
  CHECK_THROWS_WITH(x.item<float>(), "[Tensor::item] the shape [2, 3] has 6 elements, not one");
}
