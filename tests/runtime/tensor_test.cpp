// SPDX-License-Identifier: Apache-2.0
// Tensors: factories, access to elements, wrapped memory, misuse, birth notes.
// One thread.
#include "tensor_fixture.h"

#include <ebb/runtime/tensor.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

void count_release(void* context, void* /*data*/) noexcept {
  ++*static_cast<int*>(context);
}
constexpr ebb::PtrOps counting_ops{count_release, "counting"};

std::string text_of(const ebb::BirthNote& note, std::size_t size = 200) {
  std::string text(size, '#');
  text.resize(note.format(note.bytes.data(), text.data(), size));
  return text;
}

constexpr std::int64_t huge = std::int64_t{1} << 61;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "tensor: factories give the shape, dtype and elements asked for") {
  const Tensor x = ebb::empty(owner, {2, 3}, DType::i16);
  CHECK(x.defined());
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.dtype() == DType::i16);
  CHECK(x.bytes() == ebb::Bytes{12});
  CHECK(x.device() == ebb::cpu);
  CHECK(x.is_contiguous());
  CHECK(x.stride(0) == 3);
  CHECK(x.stride(-1) == 1);
  CHECK(x.size(-2) == 2);
  CHECK(reinterpret_cast<std::uintptr_t>(x.data<std::int16_t>()) % 64 == 0);

  const Tensor y = ebb::full(owner, {5}, 2.5);
  CHECK(std::all_of(y.span<float>().begin(), y.span<float>().end(),
                    [](float v) { return v == 2.5F; }));
  CHECK(ebb::full(owner, {}, 7, DType::i64).item<std::int64_t>() == 7);
}

TEST_CASE_FIXTURE(Fixture, "tensor: zeros writes recycled memory too") {
  for (int i = 0; i < 3; ++i) {
    const Tensor dirty = ebb::full(owner, {1000}, 3);
    CHECK(dirty.data<float>()[999] == 3);
  }
  const Tensor x = ebb::zeros(owner, {1000});
  const auto elements = x.span<const float>();
  CHECK(std::all_of(elements.begin(), elements.end(), [](float v) { return v == 0; }));
}

TEST_CASE_FIXTURE(Fixture, "tensor: a tensor may have no elements") {
  const Tensor x = ebb::zeros(owner, {0, 4});
  CHECK(x.elements() == 0);
  CHECK(x.span<float>().empty());
  CHECK(x.is_contiguous());
  CHECK(x.clone(owner).shape() == Shape{0, 4});
  CHECK_THROWS_AS(x.item<float>(), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "tensor: sizes whose bytes overflow are refused") {
  CHECK_THROWS_AS(ebb::empty(owner, {huge, 4}), std::invalid_argument);
  CHECK_THROWS_AS(ebb::zeros(owner, {huge, 3}, DType::f64), std::invalid_argument);
  CHECK_THROWS_AS(ebb::full(owner, {huge, 3}, 1, DType::i64), std::invalid_argument);
  CHECK_THROWS_AS(ebb::empty(owner, {huge}), std::bad_alloc);
}

TEST_CASE_FIXTURE(Fixture, "tensor: without an owner the factories throw, with one they use it") {
  CHECK_THROWS_AS(ebb::zeros({2}), std::invalid_argument);
  CHECK_THROWS_WITH(ebb::zeros(ebb::Owner{}, {2}),
                    "[zeros] the owner is empty: pass a Runtime or an Iteration");
  const ebb::OwnerScope scope(owner);
  const Tensor x = ebb::zeros({2});
  CHECK(x.storage().owner_record() == owner.record());
  CHECK(x.clone().storage().owner_record() == owner.record());
  CHECK(ebb::full({2}, 4).data<float>()[1] == 4);
  CHECK(ebb::empty({2}, DType::u8).dtype() == DType::u8);
}

TEST_CASE_FIXTURE(Fixture, "tensor: an undefined tensor throws on all but asking and printing") {
  const Tensor none;
  CHECK_FALSE(none.defined());
  CHECK(none.dims() == 0);
  CHECK(to_string(none) == "undefined");
  CHECK_FALSE(none.named("x").defined());
  CHECK_THROWS_WITH(none.elements(),
                    "[Tensor::elements] the tensor is undefined: it was never assigned, or moved "
                    "from");
  CHECK_THROWS_AS(none.device(), std::invalid_argument);
  CHECK_THROWS_AS(none.bytes(), std::invalid_argument);
  CHECK_THROWS_AS(none.data<float>(), std::invalid_argument);
  CHECK_THROWS_AS(none.span<float>(), std::invalid_argument);
  CHECK_THROWS_AS(none.item<float>(), std::invalid_argument);
  CHECK_THROWS_AS(none.size(0), std::invalid_argument);
  CHECK_THROWS_AS(none.narrow(0, 0, 0), std::invalid_argument);
  CHECK_THROWS_AS(none.reshape({1}), std::invalid_argument);
  CHECK_THROWS_AS(none.transpose(0, 0), std::invalid_argument);
  CHECK_THROWS_AS(none.squeeze(0), std::invalid_argument);
  CHECK_THROWS_AS(none.unsqueeze(0), std::invalid_argument);
  CHECK_THROWS_AS(none.expand({2}), std::invalid_argument);
  CHECK_THROWS_AS(none.fill_(0), std::invalid_argument);
  CHECK_THROWS_AS(none.clone(owner), std::invalid_argument);
  CHECK_THROWS_AS(none.copy_(none), std::invalid_argument);
  CHECK_THROWS_AS(ebb::zeros(owner, {}).copy_(none), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "tensor: data and span check the type") {
  const Tensor x = ebb::zeros(owner, {2});
  CHECK_THROWS_WITH(x.data<double>(), "[Tensor::data] the elements are f32, not f64");
  CHECK_THROWS_AS(x.span<const std::int32_t>(), std::invalid_argument);
  CHECK(x.data<const float>() == x.data<float>());
}

TEST_CASE_FIXTURE(Fixture, "tensor: a read-only storage is read, never written") {
  ebb::Storage storage =
      ebb::Storage::make(owner, ebb::Bytes{8}, ebb::default_align_cpu, {ebb::Place::here()});
  const Tensor early(storage, DType::f32, {2});
  early.fill_(1);
  storage.set_read_only();
  CHECK_THROWS_WITH(early.data<float>(),
                    "[Tensor::data] the tensor is read-only, like every batch: read it with "
                    "data<const T>(), or clone() it and write the copy");
  CHECK_THROWS_AS(early.span<float>(), std::invalid_argument);
  CHECK_THROWS_AS(early.fill_(0), std::invalid_argument);
  CHECK_THROWS_AS(early.copy_(ebb::zeros(owner, {2})), std::invalid_argument);
  CHECK_THROWS_AS(early.narrow(0, 0, 1).data<float>(), std::invalid_argument);
  CHECK(early.span<const float>()[1] == 1);
  const Tensor copy = early.clone(owner);
  copy.fill_(5);
  CHECK(copy.data<float>()[0] == 5);
  CHECK(early.data<const float>()[0] == 1);
}

TEST_CASE_FIXTURE(Fixture, "tensor: a view must lie in its storage and be aligned") {
  const ebb::Storage storage =
      ebb::Storage::make(owner, ebb::Bytes{40}, ebb::default_align_cpu, {ebb::Place::here()});
  const Tensor tail(storage, DType::f32, {2, 3}, 4);
  CHECK(static_cast<void*>(tail.data<float>()) == static_cast<std::byte*>(storage.data()) + 16);
  CHECK_THROWS_WITH(Tensor(storage, DType::f32, {2, 3}, 5),
                    "[Tensor] 6 elements from 5 on pass the end of a storage of 10 f32");
  CHECK_THROWS_AS(Tensor(storage, DType::f32, {1}, -1), std::invalid_argument);
  CHECK_THROWS_AS(Tensor(storage, DType::f32, {0}, 11), std::invalid_argument);
  CHECK_THROWS_AS(Tensor(storage, DType::f32, {huge}, huge), std::invalid_argument);
  CHECK_NOTHROW(Tensor(storage, DType::f32, {0}, 10));
  CHECK_THROWS_AS(Tensor({}, DType::f32, {0}), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "tensor: wrapped memory is released once, with the last view") {
  alignas(8) std::array<std::int32_t, 6> memory{1, 2, 3, 4, 5, 6};
  int released = 0;
  const auto pointer = [&](std::size_t skip) {
    return ebb::DataPtr(reinterpret_cast<std::byte*>(memory.data()) + skip, &released, counting_ops,
                        ebb::cpu);
  };
  SUBCASE("by the last view") {
    Tensor x = from_blob(owner, pointer(0), {2, 3}, DType::i32);
    Tensor row = x.narrow(0, 1, 1);
    x = {};
    CHECK(released == 0);
    CHECK(row.data<std::int32_t>()[2] == 6);
    row = {};
    CHECK(released == 1);
  }
  SUBCASE("at once when the call fails") {
    CHECK_THROWS_AS(from_blob(owner, pointer(1), {2}, DType::i32), std::invalid_argument);
    CHECK(released == 1);
    CHECK_THROWS_AS(from_blob({}, pointer(0), {2}, DType::i32), std::invalid_argument);
    CHECK(released == 2);
    CHECK_THROWS_AS(from_blob(owner, pointer(0), {huge, 4}, DType::i32), std::invalid_argument);
    CHECK(released == 3);
  }
  SUBCASE("null is refused unless there are no elements") {
    CHECK_THROWS_AS(from_blob(owner, {}, {2}, DType::i32), std::invalid_argument);
    CHECK(from_blob(owner, {}, {0, 2}, DType::i32).clone(owner).elements() == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "tensor: memory of a device is described, not touched") {
  std::array<float, 2> memory{1, 2};
  int released = 0;
  const ebb::Device sim{ebb::DeviceKind::sim, 1};
  const Tensor x =
      from_blob(owner, ebb::DataPtr(memory.data(), &released, counting_ops, sim), {2}, DType::f32);
  CHECK(x.device() == sim);
  CHECK(x.data<float>() == memory.data());
  CHECK(to_string(x) ==
        "f32[2] sim:1\n([Tensor::copy_] the runtime does not use sim:1: name it in "
        "RuntimeOptions::devices)");
  CHECK_THROWS_WITH(
      x.span<float>(),
      "[Tensor::span] the tensor is on sim:1, where only its device can use it: use a "
      "copy in host memory, to(ebb::cpu)");
  CHECK_THROWS_AS(x.fill_(0), std::invalid_argument);
  CHECK_THROWS_AS(x.clone(owner), std::invalid_argument);
  CHECK_THROWS_AS(x.narrow(0, 0, 1).item<float>(), std::invalid_argument);
}

TEST_CASE_FIXTURE(Fixture, "tensor: a tensor that was moved from is undefined") {
  Tensor x = ebb::zeros(owner, {2});
  const Tensor y = std::move(x);
  CHECK_FALSE(x.defined());  // NOLINT(bugprone-use-after-move): what this case is about
  CHECK(y.storage().use_count() == 1);
}

TEST_CASE("birth note: prints dtype, sizes and device") {
  CHECK(text_of(ebb::birth_note(DType::f32, {64, 512}, ebb::cpu)) == "f32[64, 512] cpu");
  CHECK(text_of(ebb::birth_note(DType::boolean, {}, {ebb::DeviceKind::cuda, 3})) ==
        "bool[] cuda:3");
  CHECK(text_of(ebb::birth_note(DType::i64, {1, 2, 3, 4, 5, 6, 7, 0}, {ebb::DeviceKind::sim, 0})) ==
        "i64[1, 2, 3, 4, 5, 6, 7, 0] sim:0");
}

TEST_CASE("birth note: sizes of up to 40 bits print in full, larger ones as dots") {
  constexpr std::int64_t bits40 = std::int64_t{1} << 40;
  CHECK(text_of(ebb::birth_note(DType::u8, {bits40 - 2, bits40 - 1, huge, 3}, ebb::cpu)) ==
        "u8[1099511627774, ..., ..., 3] cpu");
}

TEST_CASE("birth note: what does not fit the buffer is cut") {
  const ebb::BirthNote note = ebb::birth_note(DType::f32, {64, 512}, ebb::cpu);
  const std::string whole = text_of(note);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    CHECK(text_of(note, size) == whole.substr(0, size));
  }
}
