// SPDX-License-Identifier: Apache-2.0
// The version that the library says against the one in its headers.
// One thread.
#include <ebb/alloc/version.h>

#include <doctest/doctest.h>

#include <string>

TEST_CASE("version: library and headers agree") {
  CHECK(std::string(ebb::version()) == EBB_VERSION);
}
