// SPDX-License-Identifier: Apache-2.0
// A loader under a byte limit: workers wait for each other's scratch memory, and what cannot be is
// said. [alloc.heap] [load.error]
#include "loader_fixture.h"

#include <doctest/doctest.h>

#include <cstring>

using ebb::Bytes;
using ebb::Loader;
using ebb::LoadError;
using ebb::test::contains;
using ebb::test::Numbers;

namespace {

constexpr std::size_t scratch_bytes = 1 << 20;

Numbers with_scratch() {
  return {.count = 64, .before = [](std::uint64_t index, const ebb::SampleContext& context) {
            const std::span<std::byte> memory = context.scratch(Bytes{scratch_bytes});
            std::memset(memory.data(), static_cast<int>(index), memory.size());
          }};
}

}  // namespace

TEST_CASE("loader limit: workers whose scratch does not fit at once wait for each other") {
  ebb::Runtime rt{{.executor = ebb::test::executor_choice()}};
  const ebb::LoaderOptions options{.batch = 4, .workers = 4};
  Loader free(rt, with_scratch(), options);
  free.begin_epoch(0);
  const auto expected = ebb::test::drain(free);

  ebb::LoaderOptions limited = options;
  limited.memory_limit = Bytes{3 * scratch_bytes / 2};  // the slots, and one scratch
  Loader loader(rt, with_scratch(), limited);
  loader.begin_epoch(0);
  CHECK(ebb::test::drain(loader) == expected);
  CHECK(loader.stats().memory.reserved <= limited.memory_limit);
}

TEST_CASE("loader limit: a sample that can never fit fails with the figures, and does not wait") {
  ebb::Runtime rt{{.executor = ebb::test::executor_choice()}};
  Loader loader(rt, with_scratch(), {.batch = 4, .memory_limit = Bytes{scratch_bytes / 2}});
  loader.begin_epoch(0);
  try {
    ebb::test::drain(loader);
    FAIL("more was used than the limit allows");
  } catch (const LoadError& error) {
    CHECK(contains(error.what(), "out of memory in \"loader numbers\""));
    CHECK(contains(error.what(), "limit 512 KiB"));
  }
}

TEST_CASE("loader limit: slots that do not fit are refused when the loader is made") {
  ebb::Runtime rt{{.executor = ebb::test::executor_choice()}};
  CHECK_THROWS_AS(Loader(rt, with_scratch(), {.batch = 4, .memory_limit = Bytes{1}}),
                  ebb::OutOfMemory);
}
