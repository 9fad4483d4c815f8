// SPDX-License-Identifier: Apache-2.0
// A product of two sizes is no size. [alloc.wrap]
// expect: (no match for|invalid operands)
#include <ebb/alloc/bytes.h>

ebb::Bytes area(ebb::Bytes rows, std::size_t columns) {
#ifdef EBB_MISUSE
  return rows * ebb::Bytes{columns};
#else
  return rows * columns;
#endif
}
