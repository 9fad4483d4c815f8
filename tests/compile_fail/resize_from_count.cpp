// SPDX-License-Identifier: Apache-2.0
// A storage of bytes resized to a count of elements: the forgotten sizeof does not compile.
// [alloc.wrap]
// expect: (could not convert|no viable conversion|no matching function|cannot convert)
#include <ebb/gc/storage.h>

void grow(ebb::Storage& storage, std::size_t count) {
#ifdef EBB_MISUSE
  storage.resize(count);
#else
  storage.resize(ebb::Bytes::of<float>(count));
#endif
}
