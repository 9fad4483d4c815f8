// SPDX-License-Identifier: Apache-2.0
// An iteration's memory without tensors: bytes, and standard containers. [rt.tensor] One thread.
#include <ebb/runtime/loop.h>

#include <doctest/doctest.h>

#include <cstring>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace ebb::literals;

namespace {

struct Lines {
  std::string text;
  std::mutex mutex;

  ebb::LogHook hook() {
    return [this](ebb::LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex);
      text += line;
    };
  }
};

}  // namespace

TEST_CASE("iteration memory: bytes belong to it, and are waited for at close") {
  Lines lines;
  ebb::Runtime rt({.log = lines.hook()});
  ebb::Loop loop(rt, {.deadline = ebb::Milliseconds(0), .warmup = 0});
  ebb::Storage escaped;
  {
    ebb::Iteration it(loop);
    const ebb::Storage mine = it.allocate(1000_B);
    CHECK(mine.owner_kind() == ebb::OwnerKind::iteration);
    CHECK(mine.device() == ebb::cpu);
    CHECK(reinterpret_cast<std::uintptr_t>(mine.data()) % 64 == 0);
    std::memset(mine.data(), 1, 1000);
    escaped = it.allocate(64_B, ebb::Stream{});
    CHECK(it.allocate(0_B));
  }
  CHECK(rt.stats().adopted_live == 1);
  CHECK(lines.text.find("iteration_memory_test.cpp") != std::string::npos);
}

TEST_CASE("iteration memory: containers, one of which escapes and is freed after the runtime") {
  Lines lines;
  std::optional<std::pmr::vector<int>> escaped;
  {
    ebb::Runtime rt({.log = lines.hook()});
    ebb::Loop loop(rt, {.deadline = ebb::Milliseconds(0), .warmup = 0});
    {
      ebb::Iteration it(loop);
      std::pmr::vector<std::pmr::string> words(it.resource());
      words.emplace_back("long enough to need memory that is not in the string itself");
      CHECK(rt.memory().blocks_live == 2);
    }
    CHECK(rt.memory().blocks_live == 0);
    CHECK(lines.text.empty());
    {
      ebb::Iteration it(loop);
      escaped.emplace(10, 3, it.resource());
    }
    CHECK(lines.text.find("pmr") != std::string::npos);
    CHECK(lines.text.find("iteration_memory_test.cpp") != std::string::npos);
  }
  CHECK((*escaped)[9] == 3);
  std::jthread([&] { escaped.reset(); }).join();
}

TEST_CASE("iteration memory: bytes of the host do not pass for a device's") {
  ebb::Runtime rt;
  ebb::Loop loop(rt);
  const ebb::Iteration it(loop);
  const ebb::Stream stream{{ebb::DeviceKind::cuda, 0}, 1};
  CHECK_THROWS_WITH(it.raw(stream).allocate(64),
                    "[Storage::make] the runtime does not use cuda:0: name it in "
                    "RuntimeOptions::devices");
  CHECK_THROWS_AS(static_cast<void>(it.allocate(64_B, stream)), std::invalid_argument);
  const ebb::Owner there(*it.owner().record(), it.owner().generation(), stream);
  CHECK_THROWS_AS(ebb::empty(there, {3}), std::invalid_argument);
  CHECK(rt.memory().blocks_live == 0);
}
