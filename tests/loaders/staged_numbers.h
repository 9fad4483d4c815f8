// SPDX-License-Identifier: Apache-2.0
// A data set in stages that counts what it is asked for. For the tests of loaders.
#pragma once

#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace ebb::test {

// Sample i: "x" = {i, i * i, a random draw, epoch}, "y" = i. Fetched is i, decoded {i, i * i}.
struct StagedNumbers {
  struct Local {
    std::uint64_t decoded = 0;
  };
  struct Counts {
    std::atomic<std::uint64_t> fetched{0};
    std::atomic<std::uint64_t> decoded{0};
    std::atomic<std::uint64_t> finished{0};
  };
  using Before = std::function<void(std::uint64_t index)>;

  std::uint64_t count = 100;
  Before before_fetch = {};
  Before before_decode = {};
  Before before_finish = {};
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();

  std::uint64_t size() const { return count; }
  std::uint64_t fingerprint() const { return count * 31 + 8; }
  std::string name() const { return "staged numbers"; }
  std::string source(std::uint64_t index) const { return "number " + std::to_string(index); }
  Schema schema() const { return {{{"x", DType::f32, {4}}, {"y", DType::i64, {}}}}; }

  void fetch(std::uint64_t index, const StageContext& context, SampleBytes& out) const {
    CHECK(context.index() == index);
    call(before_fetch, index);
    ++counts->fetched;
    const std::span<std::byte> bytes = out.allocate(Bytes{sizeof index});
    std::memcpy(bytes.data(), &index, sizeof index);
  }
  void decode(std::uint64_t index, Local& local, const StageContext& context,
              std::span<const std::byte> bytes, SampleBytes& out) const {
    std::uint64_t fetched = 0;
    CHECK(bytes.size() == sizeof fetched);
    std::memcpy(&fetched, bytes.data(), sizeof fetched);
    CHECK(fetched == index);
    call(before_decode, index);
    ++local.decoded;
    ++counts->decoded;
    const std::span<std::byte> scratch = context.scratch(Bytes{100});
    std::memset(scratch.data(), 1, scratch.size());  // is nobody else's
    const std::array<std::uint64_t, 2> values{index, index * index};
    std::memcpy(out.allocate(Bytes{sizeof values}).data(), values.data(), sizeof values);
  }
  void finish(std::uint64_t index, Local& /*local*/, const SampleContext& context,
              std::span<const std::byte> bytes, SampleWriter& writer) const {
    call(before_finish, index);
    ++counts->finished;
    std::array<std::uint64_t, 2> values{};
    CHECK(bytes.size() == sizeof values);
    std::memcpy(values.data(), bytes.data(), sizeof values);
    const std::span<float> x = writer.field<float>(0);
    x[0] = static_cast<float>(values[0]);
    x[1] = static_cast<float>(values[1]);
    x[2] = context.random("draw").uniform();
    x[3] = static_cast<float>(context.epoch());
    writer.field<std::int64_t>(1)[0] = static_cast<std::int64_t>(index);
  }

 private:
  static void call(const Before& before, std::uint64_t index) {
    if (before) {
      before(index);
    }
  }
};

}  // namespace ebb::test
