// SPDX-License-Identifier: Apache-2.0
// What lies in front of the bytes: of PmrResource a pointer to the block's record, of FromPmr the
// record. Alignment and bytes tell where the allocation began, so nothing else is stored.
#include "layer.h"

#include <ebb/alloc/pmr.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t record_room = 64;
static_assert(sizeof(BlockRecord) <= record_room);

// As heaps do: larger requests are refused before sizes are added up.
constexpr std::size_t bytes_max = std::size_t{1} << 46;

// Of the record's address, in front of the bytes.
constexpr std::size_t pointer_bytes = sizeof(void*);

std::size_t pointer_room(std::size_t alignment) noexcept {
  return std::max(alignment, pointer_bytes);
}

std::size_t front_bytes(Align align) noexcept {
  return std::max(align.value(), record_room);
}

std::size_t whole_align(Align align) noexcept {
  return std::max(align.value(), alignof(BlockRecord));
}

// What the upstream is asked for a block: a multiple of the alignment, since the pools of libstdc++
// 12 keep the alignment of such sizes only.
std::size_t whole_bytes(Bytes bytes, Align align) noexcept {
  const std::size_t bytes_needed = front_bytes(align) + bytes.count();
  return (bytes_needed + whole_align(align) - 1) & ~(whole_align(align) - 1);
}

}  // namespace

void* PmrResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t front = pointer_room(alignment);
  if (bytes > std::numeric_limits<std::size_t>::max() - front) {
    throw OutOfMemory("PmrResource::allocate", upstream_.explain(Bytes{bytes}));
  }
  const Block block = upstream_.allocate(Bytes{front + bytes}, Align{front});
  auto* data = static_cast<std::byte*>(block.data) + front;
  std::memcpy(data - pointer_bytes, &block.record, pointer_bytes);
  return data;
}

void PmrResource::do_deallocate(void* data, std::size_t bytes, std::size_t alignment) {
  const std::size_t front = pointer_room(alignment);
  BlockRecord* record = nullptr;
  std::memcpy(&record, static_cast<std::byte*>(data) - pointer_bytes, pointer_bytes);
  EBB_ASSERT(record->bytes.count() == front + bytes);  // else other sizes than were asked for
  record->top->deallocate(record->block(static_cast<std::byte*>(data) - front));
}

bool PmrResource::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
  return this == &other;  // not by type, which needs RTTI of the other
}

Block FromPmr::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  if (bytes.count() > bytes_max || align.value() > bytes_max) {
    return {};
  }
  void* whole = nullptr;
  try {
    const std::lock_guard lock(mutex_);
    whole = upstream_.allocate(whole_bytes(bytes, align), whole_align(align));
  } catch (...) {
    return {};
  }
  std::byte* data = static_cast<std::byte*>(whole) + front_bytes(align);
  auto* record = new (data - record_room) BlockRecord;
  record->data = data;
  record->bytes = bytes;
  record->align = align;
  record->stream = stream;
  record->top = this;
  live_.fetch_add(bytes.count(), std::memory_order_relaxed);
  blocks_live_.fetch_add(1, std::memory_order_relaxed);
  return {data, bytes, align, stream, record};
}

void FromPmr::deallocate(const Block& block) noexcept {
  EBB_ASSERT(detail::is_from(block, *this));  // else freed twice, or another's
  // Copies, since the record goes with the bytes.
  const Bytes bytes = block.record->bytes;
  const Align align = block.record->align;
  void* whole = static_cast<std::byte*>(block.record->data) - front_bytes(align);
  block.record->top = nullptr;
  {
    const std::lock_guard lock(mutex_);
    upstream_.deallocate(whole, whole_bytes(bytes, align), whole_align(align));
  }
  live_.fetch_sub(bytes.count(), std::memory_order_relaxed);
  blocks_live_.fetch_sub(1, std::memory_order_relaxed);
}

OutOfMemoryInfo FromPmr::explain(Bytes asked) const {
  OutOfMemoryInfo info;
  info.asked = asked;
  info.live = live();
  info.resource = name();
  return info;
}

}  // namespace ebb::inline v0
