// SPDX-License-Identifier: Apache-2.0
// Tensors over memory that was there before, and tensors read out of bytes. [alloc.wrap]
#include "support/temporary_folder.h"
#include "tensor_fixture.h"

#include <ebb/runtime/tensor_from.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using ebb::DType;
using ebb::Shape;
using ebb::Tensor;
using Fixture = ebb::test::TensorFixture;

namespace {

// What another library might hand out.
struct Frame {
  std::array<float, 4> pixels{1, 2, 3, 4};
  int* released = nullptr;
};
void release_frame(Frame* frame) noexcept {
  ++*frame->released;
}

constexpr auto other_order =
    std::endian::native == std::endian::little ? std::endian::big : std::endian::little;

template <class... Values>
std::vector<std::byte> bytes(Values... values) {
  return {static_cast<std::byte>(values)...};
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "from_blob: a managing struct is released once, with the last view") {
  int released = 0;
  Frame frame{.released = &released};
  Tensor x = ebb::from_blob<release_frame>(owner, frame.pixels.data(), &frame, {2, 2}, DType::f32);
  const Tensor row = x.narrow(0, 1, 1);
  x = {};
  CHECK(released == 0);
  CHECK(row.data<float>()[1] == 4);
  Tensor grown = row.clone(owner);
  grown.resize_({8});
  CHECK(grown.data<float>()[1] == 4);
  CHECK_THROWS_AS(
      ebb::from_blob<release_frame>(ebb::Owner{}, frame.pixels.data(), &frame, {4}, DType::f32),
      std::invalid_argument);
  CHECK(released == 1);
  CHECK_THROWS_AS(
      ebb::from_blob<release_frame>(owner, reinterpret_cast<std::byte*>(frame.pixels.data()) + 1,
                                    &frame, {1}, DType::f32),
      std::invalid_argument);
  CHECK(released == 2);
}

TEST_CASE_FIXTURE(Fixture, "from_blob: growing a managed buffer releases it at once") {
  int released = 0;
  Frame frame{.released = &released};
  Tensor x = ebb::from_blob<release_frame>(owner, frame.pixels.data(), &frame, {4}, DType::f32);
  x.resize_({1000});
  CHECK(released == 1);
  CHECK(x.data<float>()[3] == 4);
  x = {};
  CHECK(released == 1);
}

TEST_CASE_FIXTURE(Fixture, "from_blob: a shared owner is held until the last view") {
  const auto vector = std::make_shared<std::vector<double>>(5, 2.5);
  Tensor x = ebb::from_blob(owner, vector, vector->data(), {5}, DType::f64);
  CHECK(vector.use_count() == 2);
  CHECK(x.data<double>()[4] == 2.5);
  x = {};
  CHECK(vector.use_count() == 1);

  const std::shared_ptr<const float[]> constants(new float[2]{1, 2});
  const Tensor y = ebb::from_blob(owner, constants, {2});
  CHECK(constants.use_count() == 2);
  CHECK(y.data<const float>()[1] == 2);
  CHECK_THROWS_AS(y.data<float>(), std::invalid_argument);
  CHECK_THROWS_AS(ebb::from_blob(ebb::Owner{}, constants, {2}), std::invalid_argument);
  CHECK(constants.use_count() == 2);
}

TEST_CASE_FIXTURE(Fixture, "from_blob: borrowed memory is never released, and bounds are checked") {
  std::vector<std::int64_t> values{1, 2, 3};
  const Tensor x = ebb::from_blob(owner, std::span(values), {3});
  CHECK(x.data<std::int64_t>() == values.data());
  x.fill_(9);
  CHECK(values[2] == 9);
  const std::vector<float> fixed{1, 2};
  CHECK_THROWS_AS(ebb::from_blob(owner, std::span(fixed), {2}).data<float>(),
                  std::invalid_argument);
  CHECK_THROWS_WITH(ebb::from_blob(owner, std::span(values), {2, 2}),
                    "[from_blob] the shape [2, 2] has more elements than the 3 that were given");
}

TEST_CASE_FIXTURE(Fixture,
                  "from_blob: strings that live elsewhere are viewed, copied and left alone") {
  std::vector<std::string> words{std::string(50, 'a'), "b"};
  Tensor x = ebb::from_blob(owner, std::span(words), {2});
  CHECK(x.dtype() == DType::string);
  CHECK(x.span<std::string>()[0].size() == 50);
  x.data<std::string>()[1] = std::string(60, 'c');
  const Tensor copy = x.clone(owner);
  x.resize_({3});
  CHECK(x.data<std::string>()[1].size() == 60);
  CHECK(x.data<std::string>()[2].empty());
  x = {};
  CHECK(words[1] == std::string(60, 'c'));
  CHECK(copy.data<std::string>()[0] == words[0]);
}

TEST_CASE_FIXTURE(Fixture, "from_blob: a mapped file is read-only as it was mapped, and bounded") {
  const std::array<float, 6> elements{1, 2, 3, 4, 5, 6};
  const ebb::test::TempFolder folder;
  const std::filesystem::path path = folder.write(
      "floats", std::string(reinterpret_cast<const char*>(elements.data()), sizeof elements));
  const auto map = [&](ebb::MapMode mode, std::uint64_t offset = 0) {
    return ebb::map_file(path, {.mode = mode, .offset = offset});
  };
  using enum ebb::MapMode;
  const Tensor x = ebb::from_blob(owner, map(read_only), {2, 3}, DType::f32);
  CHECK(to_string(x) == "f32[2, 3] cpu\n[[1, 2, 3],\n [4, 5, 6]]");
  CHECK_THROWS_AS(x.fill_(0), std::invalid_argument);
  CHECK_THROWS_AS(x.data<float>(), std::invalid_argument);
  CHECK(x.clone(owner).fill_(7).data<float>()[5] == 7);
  ebb::from_blob(owner, map(private_copy), {6}, DType::f32).fill_(0);
  ebb::from_blob(owner, map(shared, 4), {1}, DType::f32).fill_(9);
  CHECK(x.data<const float>()[0] == 1);
  CHECK(x.data<const float>()[1] == 9);
  CHECK_THROWS_WITH(ebb::from_blob(owner, map(read_only, 4), {2, 3}, DType::f32),
                    "[from_blob] the mapping has 20 bytes, and [2, 3] f32 takes 24");
  CHECK_THROWS_AS(ebb::from_blob(owner, map(read_only, 2), {1}, DType::f32), std::invalid_argument);
  CHECK_THROWS_AS(ebb::from_blob(owner, map(read_only), {0}, DType::string), std::invalid_argument);
  CHECK(ebb::from_blob(owner, map(read_only, 24), {0}, DType::f64).elements() == 0);
}

TEST_CASE_FIXTURE(Fixture, "from_buffer: elements are converted from either byte order") {
  const auto big = bytes(0, 0, 1, 2, 0x80, 0, 0, 3);
  const Tensor x = ebb::from_buffer(owner, big, DType::i32, std::endian::big);
  CHECK(to_string(x) == "i32[2] cpu\n[258, -2147483645]");
  const Tensor y = ebb::from_buffer(owner, big, DType::i16, std::endian::little);
  CHECK(to_string(y) == "i16[4] cpu\n[0, 513, 128, 768]");
  const Tensor h = ebb::from_buffer(owner, bytes(0x3c, 0, 0xc0, 0), DType::f16, std::endian::big);
  CHECK(to_string(h) == "f16[2] cpu\n[1, -2]");
  const double value = -1234.5678;
  std::vector<std::byte> swapped(sizeof value);
  std::memcpy(swapped.data(), &value, sizeof value);
  CHECK(ebb::from_buffer(owner, swapped, DType::f64).item<double>() == value);
  std::reverse(swapped.begin(), swapped.end());
  CHECK(ebb::from_buffer(owner, swapped, DType::f64, other_order).item<double>() == value);
  const Tensor u = ebb::from_buffer(owner, big, DType::u8, other_order);
  CHECK(u.data<std::uint8_t>()[4] == 0x80);
}

TEST_CASE_FIXTURE(Fixture, "from_buffer: bytes of bool become 0 or 1, and the buffer is copied") {
  auto raw = bytes(0, 1, 2, 255);
  const Tensor x = ebb::from_buffer(owner, raw, DType::boolean);
  raw.assign(4, std::byte{7});
  CHECK(to_string(x) == "bool[4] cpu\n[false, true, true, true]");
  CHECK(static_cast<const unsigned char*>(x.storage().data())[3] == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "from_buffer: count and offset select, in bytes that need no alignment") {
  const auto raw = bytes(9, 1, 0, 2, 0, 3, 0, 9);
  CHECK(to_string(ebb::from_buffer(owner, raw, DType::i16, std::endian::little, 2, 1)) ==
        "i16[2] cpu\n[1, 2]");
  CHECK(ebb::from_buffer(owner, raw, DType::i16, std::endian::little, 0, 8).elements() == 0);
  CHECK(ebb::from_buffer(owner, {}, DType::f64).elements() == 0);
}

TEST_CASE_FIXTURE(Fixture, "from_buffer: what the bytes do not hold is refused") {
  const auto raw = bytes(1, 2, 3, 4, 5, 6, 7);
  constexpr auto native = std::endian::native;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_WITH(ebb::from_buffer(owner, raw, DType::i16),
                    "[from_buffer] the 7 bytes are no whole number of i16");
  CHECK_THROWS_WITH(ebb::from_buffer(owner, raw, DType::i32, native, 2),
                    "[from_buffer] 2 elements were asked for, and 7 bytes hold 1 i32");
  CHECK_THROWS_AS(ebb::from_buffer(owner, raw, DType::i64, native, most), std::invalid_argument);
  CHECK_THROWS_AS(ebb::from_buffer(owner, raw, DType::u8, native, -2), std::invalid_argument);
  CHECK_THROWS_AS(ebb::from_buffer(owner, raw, DType::u8, native, 0, 8), std::invalid_argument);
  CHECK_THROWS_AS(ebb::from_buffer(owner, raw, DType::u8, native, ebb::all_elements,
                                   std::numeric_limits<std::size_t>::max()),
                  std::invalid_argument);
  CHECK_THROWS_WITH(ebb::from_buffer(owner, raw, DType::string),
                    "[from_buffer] strings are not read from bytes");
  CHECK_THROWS_AS(ebb::from_buffer({}, raw, DType::u8), std::invalid_argument);
}
