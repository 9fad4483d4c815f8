// SPDX-License-Identifier: Apache-2.0
// Heaps in shared memory and in files: the same engine over pages that a descriptor backs.
// [alloc.heap]
#include "heap_fixture.h"
#include "support/child.h"
#include "support/counting_source.h"

#include <ebb/alloc/file_source.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

using ebb::Block;
using ebb::Bytes;

namespace {

// How many of the process's resident bytes are shared ones.
std::size_t shared_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "RssShmem:" || word == "RssFile:") {
      std::size_t kib = 0;
      status >> kib;
      if (word == "RssShmem:") {
        return kib << 10;
      }
    }
  }
  return 0;
}

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
  const std::size_t before = shared_resident_bytes();
  const Block block = own.take(8 << 20);
  ebb::test::fill(block, 1);
  CHECK(shared_resident_bytes() >= before + (8 << 20));
  own.heap.deallocate(block);
  own.heap.trim();
  CHECK(shared_resident_bytes() < before + (1 << 20));
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
