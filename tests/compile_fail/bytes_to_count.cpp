// SPDX-License-Identifier: Apache-2.0
// Bytes where elements are counted: a size does not become a number by itself. [alloc.wrap]
// expect: (cannot convert|no viable conversion|could not convert)
#include <ebb/alloc/bytes.h>

std::size_t elements(ebb::Bytes bytes) {
#ifdef EBB_MISUSE
  return bytes;
#else
  return bytes.count() / sizeof(float);
#endif
}
