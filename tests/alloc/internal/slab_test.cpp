// SPDX-License-Identifier: Apache-2.0
// Size classes of slabs, exhaustively. White box.
#include "slab.h"

#include <doctest/doctest.h>

using ebb::detail::SlabSet;

TEST_CASE("slab: every size falls into the smallest class that holds it") {
  for (std::size_t size = 64; size <= ebb::detail::slot_bytes_max; size += 64) {
    const std::uint32_t size_class = SlabSet::class_of(size);
    CAPTURE(size);
    CHECK(SlabSet::class_bytes(size_class) >= size);
    CHECK(SlabSet::class_bytes(size_class) % 64 == 0);
    if (size_class > 0) {
      CHECK(SlabSet::class_bytes(size_class - 1) < size);
    }
  }
  CHECK(SlabSet::class_of(4096) == 19);
  CHECK(SlabSet::class_bytes(19) == 4096);
}

TEST_CASE("slab: sizes that a device's alignment allows have slots of that alignment") {
  for (std::size_t size = 256; size <= ebb::detail::slot_bytes_max; size += 256) {
    CHECK(SlabSet::class_bytes(SlabSet::class_of(size)) % 256 == 0);
  }
}
