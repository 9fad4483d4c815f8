// SPDX-License-Identifier: Apache-2.0
// Blocks by address. The lock covers the map, not the upstream. Any thread, but for allocation.
#include "layer.h"

#include <ebb/alloc/raw_resource.h>

#include <new>

namespace ebb::inline v0 {

RawResource::~RawResource() {
  live_.for_each([](const void* key, BlockRecord* record) {
    // The key is what the upstream handed out, so it may be written.
    record->top->deallocate(record->block(const_cast<void*>(key)));
  });
}

char* RawResource::allocate(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (!live_.make_room()) {
      throw std::bad_alloc();
    }
  }
  // If the map has no room after all, since other threads may have used it up, its end gives the
  // block back, after the lock.
  DataPtr block =
      own_block(upstream_.allocate(Bytes{bytes}, default_align(stream_.device), stream_));
  char* const data = static_cast<char*>(block.get());
  const std::lock_guard lock(mutex_);
  if (!live_.make_room()) {
    throw std::bad_alloc();
  }
  live_.insert(data, static_cast<BlockRecord*>(block.release_context()));
  return data;
}

void RawResource::deallocate(char* data, std::size_t bytes) {
  BlockRecord* record = nullptr;
  {
    const std::lock_guard lock(mutex_);
    record = live_.find(data);
    EBB_REQUIRE(record != nullptr, "RawResource::deallocate",
                "nothing is live at this address: freed twice, or from elsewhere");
    EBB_REQUIRE(record->bytes.count() == bytes, "RawResource::deallocate", "the block has ",
                std::to_string(record->bytes.count()), " bytes, not ", std::to_string(bytes));
    live_.take(data);
  }
  record->top->deallocate(record->block(data));
}

std::size_t RawResource::blocks_live() const noexcept {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

}  // namespace ebb::inline v0
