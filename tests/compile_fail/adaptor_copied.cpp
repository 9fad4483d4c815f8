// SPDX-License-Identifier: Apache-2.0
// What an adaptor handed out comes back to it by its address: no copies, no moves. [alloc.adaptor]
// expect: (use of deleted function|call to (deleted|implicitly-deleted))
#include <ebb/alloc/limit.h>

void wrap(ebb::Resource& heap) {
  ebb::Limit limit(heap, ebb::Bytes{64});
#ifdef EBB_MISUSE
  ebb::Limit copy = limit;
#endif
}
