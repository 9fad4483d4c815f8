// SPDX-License-Identifier: Apache-2.0
// The guard of an iteration closes where it was made: no copies, no moves. [gc.nest]
// expect: (use of deleted function|call to deleted).*Iteration
#include <ebb/runtime/loop.h>

#include <utility>

void body(ebb::Loop& loop) {
  ebb::Iteration it(loop);
#ifdef EBB_MISUSE
  ebb::Iteration other = std::move(it);
#endif
}
