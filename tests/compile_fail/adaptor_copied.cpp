// SPDX-License-Identifier: Apache-2.0
// An adaptor holds on to its upstream, so a temporary's copy cannot be meant: no copies.
// [alloc.adaptor] expect: (use of deleted function|call to (deleted|implicitly-deleted))
#include <ebb/alloc/limit.h>

void wrap(ebb::Resource& heap) {
  ebb::Limit limit(heap, ebb::Bytes{64});
#ifdef EBB_MISUSE
  ebb::Limit copy = limit;
#endif
}
