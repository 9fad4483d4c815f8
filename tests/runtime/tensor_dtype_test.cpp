// SPDX-License-Identifier: Apache-2.0
// Every dtype through every way that elements take: factories, views, copies, conversions, items,
// printing. One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

using ebb::BFloat16;
using ebb::DType;
using ebb::Half;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

constexpr DType all_dtypes[] = {DType::f16, DType::bf16,    DType::f32,   DType::f64,
                                DType::i8,  DType::u8,      DType::i16,   DType::i32,
                                DType::i64, DType::boolean, DType::string};

// 2 x 3 elements that differ as far as the dtype can tell.
Tensor sample(ebb::Owner owner, DType dtype) {
  Tensor x = ebb::zeros(owner, {2, 3}, dtype);
  for (int i = 0; i < 6; ++i) {
    const Tensor one = x.narrow(0, i / 3, 1).narrow(1, i % 3, 1);
    if (dtype == DType::string) {
      one.fill_("element " + std::to_string(i) + ", which is too long for the string itself");
    } else {
      one.fill_(i);
    }
  }
  return x;
}

std::string element(const Tensor& x, int i, int j) {
  const Tensor one = x.narrow(0, i, 1).narrow(1, j, 1);
  return x.dtype() == DType::string ? one.item<std::string>() : to_string(one);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "dtype: sizes, alignments and names") {
  CHECK(ebb::size_of(DType::f16) == 2);
  CHECK(ebb::size_of(DType::string) == sizeof(std::string));
  CHECK(ebb::align_of(DType::string) == alignof(std::string));
  CHECK(to_string(DType::bf16) == "bf16");
  CHECK(to_string(DType::string) == "string");
  CHECK(ebb::dtype_of<BFloat16> == DType::bf16);
  CHECK(ebb::dtype_of<std::string> == DType::string);
  for (const DType dtype : all_dtypes) {
    const Tensor x = ebb::zeros(owner, {3}, dtype);
    CHECK(x.bytes() == ebb::Bytes{3 * ebb::size_of(dtype)});
    CHECK(to_string(x).find(to_string(dtype)) == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "dtype: each is viewed, copied and cloned") {
  for (const DType dtype : all_dtypes) {
    CAPTURE(to_string(dtype));
    const Tensor x = sample(owner, dtype);
    const Tensor turned = x.transpose(0, 1);
    CHECK(element(turned, 2, 1) == element(x, 1, 2));
    const Tensor copy = turned.clone(owner);
    CHECK(copy.is_contiguous());
    CHECK(to_string(copy) == to_string(turned));
    CHECK(to_string(copy.reshape({6}).unsqueeze(0).squeeze(0).reshape({3, 2})) ==
          to_string(turned));
    const Tensor wide = x.narrow(1, 1, 1).expand({2, 4});
    CHECK(element(wide, 1, 3) == element(x, 1, 1));
    CHECK(to_string(wide.clone(owner)) == to_string(wide));
    const Tensor square = x.narrow(1, 0, 2);
    const std::string before = to_string(square.transpose(0, 1).clone(owner));
    square.copy_(square.transpose(0, 1));  // through a temporary
    CHECK(to_string(square.clone(owner)) == before);
    CHECK(to_string(ebb::zeros(owner, {0, 2}, dtype).clone(owner)).find("[0, 2]") !=
          std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "dtype: numbers convert into each other, strings only into strings") {
  for (const DType from : all_dtypes) {
    for (const DType to : all_dtypes) {
      const Tensor x = sample(owner, from);
      const Tensor y = ebb::zeros(owner, {2, 3}, to);
      if ((from == DType::string) == (to == DType::string)) {
        y.copy_(x);
        if (from != DType::boolean && to != DType::boolean && from != DType::string) {
          CHECK(y.narrow(0, 1, 1).narrow(1, 2, 1).item<double>() == 5);
        }
      } else {
        const std::string text = "[Tensor::copy_] elements are not converted from " +
                                 std::string(to_string(from)) + " to " + std::string(to_string(to));
        CHECK_THROWS_WITH(y.copy_(x), text.c_str());
      }
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "dtype: 16-bit floats saturate, truncate and round like the others") {
  const Tensor h = ebb::full(owner, {2}, 2.75, DType::f16);
  CHECK(h.data<Half>()[1] == 2.75F);
  h.fill_(1e6);
  CHECK(std::isinf(static_cast<float>(h.data<const Half>()[0])));
  CHECK(h.narrow(0, 0, 1).item<std::int32_t>() == std::numeric_limits<std::int32_t>::max());
  h.fill_(std::nan(""));
  CHECK(h.narrow(0, 0, 1).item<std::int8_t>() == 0);
  CHECK(h.narrow(0, 0, 1).item<bool>());
  const Tensor b = ebb::full(owner, {1}, 1.00390625, DType::bf16);  // a tie: to even
  CHECK(b.item<float>() == 1.0F);
  b.fill_(-3.9);
  CHECK(b.item<std::int64_t>() == -3);
  b.copy_(ebb::full(owner, {1}, 1, DType::boolean));
  CHECK(b.item<double>() == 1);
  const Tensor f = ebb::full(owner, {1}, 65519.99, DType::f64);
  CHECK(ebb::zeros(owner, {1}, DType::f16).copy_(f).item<float>() == 65504.0F);
}

TEST_CASE_FIXTURE(Fixture, "dtype: to() converts into the current owner, or returns the tensor") {
  const ebb::OwnerScope scope(owner);
  const Tensor x = sample(owner, DType::f32);
  CHECK(x.to(DType::f32).storage().is_same(x.storage()));
  const Tensor h = x.to(DType::f16);
  CHECK(h.dtype() == DType::f16);
  CHECK(h.data<const Half>()[5] == 5.0F);
  CHECK_THROWS_WITH(x.to(DType::string),
                    "[Tensor::to] elements are not converted from f32 to string");
}

TEST_CASE_FIXTURE(Fixture, "dtype: to() goes to no device that the runtime does not use") {
  const ebb::OwnerScope scope(owner);
  const Tensor x = sample(owner, DType::i32);
  CHECK(x.to(ebb::cpu).storage().is_same(x.storage()));
  const ebb::Device cuda{ebb::DeviceKind::cuda, 1};
  constexpr const char* refusal =
      "[Tensor::to] the runtime does not use cuda:1: name it in RuntimeOptions::devices";
  CHECK_THROWS_WITH(x.to(cuda), refusal);
  const Tensor y = x.transpose(0, 1).to(owner);
  CHECK(y.is_contiguous());
  CHECK(to_string(y) == to_string(x.transpose(0, 1)));
  const ebb::Owner there(*owner.record(), owner.generation(), ebb::Stream{cuda, 0});
  CHECK_THROWS_WITH(x.to(there), refusal);
}

TEST_CASE_FIXTURE(Fixture, "dtype: birth notes and printing know the new ones") {
  const ebb::BirthNote note = ebb::birth_note(DType::string, {4}, ebb::cpu);
  std::string text(60, ' ');
  text.resize(note.format(note.bytes.data(), text.data(), text.size()));
  CHECK(text == "string[4] cpu");
  CHECK(to_string(ebb::full(owner, {2}, 0.1, DType::f16)) == "f16[2] cpu\n[0.0999756, 0.0999756]");
  CHECK(to_string(ebb::full(owner, {1}, 3.14, DType::bf16)) == "bf16[1] cpu\n[3.14062]");
  const Tensor s = ebb::empty(owner, {2}, DType::string);
  s.narrow(0, 1, 1).fill_("a \"b\"\\\n\x01z");
  CHECK(to_string(s) == "string[2] cpu\n[\"\", \"a \\\"b\\\"\\\\\\n\\x01z\"]");
}
