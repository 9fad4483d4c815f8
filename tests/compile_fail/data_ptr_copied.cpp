// SPDX-License-Identifier: Apache-2.0
// A supervised pointer has one owner: copying one would release its block twice. [alloc.ptr]
// expect: (use of deleted function|call to (deleted|implicitly-deleted)).*DataPtr
#include <ebb/alloc/data_ptr.h>

#include <utility>

int main() {
  ebb::DataPtr pointer;
  ebb::DataPtr moved = std::move(pointer);
#ifdef EBB_MISUSE
  ebb::DataPtr copy = moved;
#endif
}
