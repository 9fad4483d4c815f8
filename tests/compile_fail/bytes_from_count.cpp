// SPDX-License-Identifier: Apache-2.0
// A count of elements where bytes are meant: the forgotten sizeof does not compile. [alloc.wrap]
// expect: (could not convert|no viable conversion|no matching function|cannot convert)
#include <ebb/alloc/resource.h>

ebb::Block take(ebb::Resource& heap, std::size_t count) {
#ifdef EBB_MISUSE
  return heap.allocate(count);
#else
  return heap.allocate(ebb::Bytes::of<float>(count));
#endif
}
