// SPDX-License-Identifier: Apache-2.0
// Runs of pages, over word borders. White box.
#include "page_map.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using ebb::detail::PageMap;

TEST_CASE("page map: runs are found whole, also over word borders") {
  std::vector<std::uint64_t> words(4);
  PageMap map(words.data(), 256);
  CHECK(PageMap::bytes_for(256) == 32);
  CHECK(PageMap::bytes_for(257) == 40);
  map.assign(10, 20, true);
  map.assign(60, 130, true);
  map.assign(255, 256, true);
  map.assign(100, 101, false);
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  CHECK(map.for_each_run(15, 256, true, [&](std::size_t first, std::size_t last) {
    runs.emplace_back(first, last);
    return true;
  }));
  CHECK(runs == std::vector<std::pair<std::size_t, std::size_t>>{
                    {15, 20}, {60, 100}, {101, 130}, {255, 256}});
  CHECK(map.count(0, 256) == 10 + 69 + 1);
  CHECK(map.count(12, 12) == 0);
  CHECK(map.find(0, 10, true) == 10);
  CHECK(map.find(0, 11, true) == 10);
  CHECK(map.find(61, 256, false) == 100);
  CHECK_FALSE(map.for_each_run(0, 256, false, [](std::size_t, std::size_t) { return false; }));
  map.assign(0, 256, true);
  CHECK(map.find(0, 256, false) == 256);
  CHECK(map.test(100));
}
