// SPDX-License-Identifier: Apache-2.0
// Heaps in shared memory and in files: the same engine over pages that a descriptor backs.
// [alloc.heap]
#include "heap_fixture.h"
#include "support/child.h"
#include "support/counting_source.h"
#include "support/process_status.h"

#include <ebb/alloc/file_source.h>

#include <csignal>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

using ebb::Block;
using ebb::Bytes;

namespace {

void run_program(ebb::Source& source) {
  ebb::test::CountingSource counting(source);
  {
    ebb::test::OwnHeap own(counting, {.reservation = Bytes{16 << 20}});
    std::vector<Block> blocks;
    // More than one region, slabs and ranges.
    for (std::size_t i = 0; i < 200; ++i) {
      blocks.push_back(own.take(i % 3 == 0 ? 100 : i * 3000));
      ebb::test::fill(blocks.back(), i);
    }
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      own.heap.deallocate(blocks[i]);
    }
    own.heap.trim();
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      blocks[i] = own.take(i * 2000);
      ebb::test::fill(blocks[i], i);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      CHECK(ebb::test::holds(blocks[i], i));
      own.heap.deallocate(blocks[i]);
    }
    own.heap.trim();
    CHECK(own.heap.stats().reserved == Bytes{0});
  }
  CHECK(counting.counts().reserved == Bytes{0});
}

}  // namespace

TEST_CASE("shared memory source: heaps work in it") {
  ebb::SharedMemorySource source;
  run_program(source);
}

TEST_CASE("file source: heaps work in it") {
  ebb::FileSource source("/tmp");
  run_program(source);
}

TEST_CASE("shared memory source: what a heap gives back, the system has back") {
  ebb::SharedMemorySource source;
  ebb::test::OwnHeap own(source);
  const std::size_t before = ebb::test::self_status_bytes("RssShmem:");
  const Block block = own.take(8 << 20);
  ebb::test::fill(block, 1);
  CHECK(ebb::test::self_status_bytes("RssShmem:") >= before + (8 << 20));
  own.heap.deallocate(block);
  own.heap.trim();
  CHECK(ebb::test::self_status_bytes("RssShmem:") < before + (1 << 20));
}

TEST_CASE("file source: a full disk refuses, and smaller requests go on") {
  // A limit on the size of files stands in for the full disk.
  const int status = ebb::test::run_in_child([] {
    std::signal(SIGXFSZ, SIG_IGN);
    ebb::FileSource source("/tmp");
    const rlimit limit{8 << 20, 8 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ebb::test::OwnHeap own(source, {.reservation = Bytes{4 << 20}});
    const Block large = own.heap.try_allocate(Bytes{64 << 20});
    const Block small = own.heap.try_allocate(Bytes{1 << 20});
    if (small) {
      ebb::test::fill(small, 1);
      own.heap.deallocate(small);
    }
    return !large && small ? 0 : 1;
  });
  CHECK(ebb::test::exited_with_0(status));
}

TEST_CASE("file source: a folder that cannot hold the file is named") {
  try {
    ebb::FileSource source("/no/such/folder");
    FAIL("a file was made");
  } catch (const std::system_error& error) {
    CHECK(std::string(error.what()).find("/no/such/folder") != std::string::npos);
  }
}

TEST_CASE("huge page source: heaps work in it") {
  run_program(ebb::huge_page_source());
}

TEST_CASE_TEMPLATE("descriptor sources: what a forked child gives back, its parent keeps", S,
                   ebb::SharedMemorySource, ebb::FileSource) {
  const auto make = [] {
    if constexpr (std::is_same_v<S, ebb::FileSource>) {
      return std::make_unique<S>("/tmp");
    } else {
      return std::make_unique<S>();
    }
  };
  auto source = make();
  auto own = std::make_unique<ebb::test::OwnHeap>(*source);
  const Block block = own->take(1 << 20);
  const Block idle = own->take(1 << 20);
  ebb::test::fill(block, 7);
  ebb::test::fill(idle, 8);
  const int status = ebb::test::run_in_child([&] {
    own->heap.deallocate(idle);
    own->heap.trim();  // decommits
    const bool refused = !own->heap.try_allocate(Bytes{8 << 20});
    own->heap.deallocate(block);
    own.reset();  // releases
    const bool empty = !source->reserve(Bytes{1 << 20});
    source.reset();
    return refused && empty ? 0 : 1;
  });
  CHECK(ebb::test::exited_with_0(status));
  CHECK(ebb::test::holds(block, 7));
  CHECK(ebb::test::holds(idle, 8));
  own->heap.deallocate(block);
  own->heap.deallocate(idle);
}

TEST_CASE("file source: parts of the file that no heap has are used again") {
  ebb::FileSource source("/tmp");
  // 19 TiB in all: more than ext4 holds in one file, if each heap took a part of its own. No larger
  // at once, since a thread sanitizer leaves a program little more than 1 TiB of addresses.
  for (int i = 0; i < 300; ++i) {
    const ebb::Range range = source.reserve(Bytes{std::size_t{1} << 36});
    const ebb::Range other = source.reserve(Bytes{1 << 20});
    REQUIRE(range);
    REQUIRE(other);
    const ebb::Range page{range.begin, source.page_size()};
    REQUIRE(source.commit(page));
    CHECK(page.begin[5] == std::byte{0});
    page.begin[5] = std::byte{1};
    source.release(range);
    source.release(other);
  }
}

TEST_CASE("file source: ranges that live do not share a part of the file") {
  ebb::FileSource source("/tmp");
  const Bytes page = source.page_size();
  std::vector<ebb::Range> ranges;
  for (std::size_t i = 0; i < 200; ++i) {
    const ebb::Range range = source.reserve(page * (1 + i * 7 % 5));
    REQUIRE(range);
    REQUIRE(source.commit(range));
    CHECK(range.begin[0] == std::byte{0});
    range.begin[0] = static_cast<std::byte>(i);
    range.end()[-1] = static_cast<std::byte>(i);
    ranges.push_back(range);
    if (i % 3 == 2) {
      const std::size_t victim = i * 31 % ranges.size();
      source.release(ranges[victim]);
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(victim));
    }
  }
  for (const ebb::Range& range : ranges) {
    CHECK(range.begin[0] == range.end()[-1]);
    source.release(range);
  }
}
