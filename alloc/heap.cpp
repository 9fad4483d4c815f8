// SPDX-License-Identifier: Apache-2.0
// The heap's public face: who may do what, and which way a request goes. [alloc.heap]
// Owner only, but for what heap.h says.
#include "heap_impl.h"
#include "pool_core.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/heap.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ebb::inline v0 {

using detail::HeapRecord;

Heap::Heap(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Heap::~Heap() = default;

Block Heap::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  BlockRecord* record = impl_->in_child() ? nullptr : take_block(bytes, align, stream);
  return record != nullptr ? record->block(record->data) : Block{};
}

void Heap::deallocate(const Block& block) noexcept {
  give_block(*block.record);
}

Block Heap::try_allocate_at(void* address, Bytes bytes) noexcept {
  EBB_ASSERT(is_mine());
  const std::size_t granule = impl_->space.granule();
  if (impl_->in_child() || impl_->bypass ||
      reinterpret_cast<std::uintptr_t>(address) % granule != 0 ||
      bytes.count() > HeapRecord::bytes_max) {
    return {};
  }
  HeapRecord* const record = impl_->take_at(static_cast<std::byte*>(address), bytes,
                                            Stream{impl_->pool.source.device(), 0});
  return record != nullptr ? record->block(record->data) : Block{};
}

bool Heap::is_free(Range range) const noexcept {
  EBB_ASSERT(is_mine());
  return impl_->space.is_free(range.begin, range.bytes.count());
}

std::optional<Bytes> Heap::try_revoke(const Block& block) noexcept {
  if (!impl_->space.on_host()) {
    return std::nullopt;
  }
  auto& record = static_cast<HeapRecord&>(*block.record);
  if (record.kind() == detail::RecordKind::block) {
    return impl_->space.give_up(record);
  }
  std::memset(record.data, 0, record.bytes.count());
  return Bytes{0};
}

OutOfMemoryInfo Heap::explain(Bytes asked) const {
  impl_->pool.mark.require_own_process("Heap::allocate");
  const MemoryStats now = impl_->pool.stats(stats());
  OutOfMemoryInfo info;
  info.asked = asked;
  info.limit = impl_->pool.options.limit;
  info.live = now.live;
  info.cached = Bytes{now.reserved.count() - std::min(now.reserved.count(), now.live.count())};
  info.largest_hole = Bytes{impl_->space.largest_hole()};
  info.resource = name();
  return info;
}

const char* Heap::name() const noexcept {
  return impl_->pool.options.name.c_str();
}

Cell* Heap::take_cell() noexcept {
  EBB_ASSERT(impl_->is_mine());
  return impl_->take_cell();
}

void Heap::give_cell(Cell* cell) noexcept {
  if (impl_->in_child()) [[unlikely]] {
    return;
  }
  if (impl_->is_mine()) {
    if (cell->block != nullptr) [[unlikely]] {
      impl_->drain_blocks();  // another thread has freed it, and the list links the cell
    }
    impl_->cells.give(cell);
  } else {
    impl_->give_foreign(*cell);
  }
}

void Heap::drain() noexcept {
  EBB_ASSERT(is_mine());
  if (!impl_->in_child()) {
    impl_->drain();
  }
}

Bytes Heap::trim() noexcept {
  EBB_ASSERT(is_mine());
  if (impl_->in_child()) {
    return {};
  }
  impl_->drain();
  return Bytes{impl_->trim()};
}

MemoryStats Heap::stats() const noexcept {
  return impl_->counters.snapshot();
}

bool Heap::is_mine() const noexcept {
  return impl_->is_mine();
}

bool Heap::in_child() const noexcept {
  return impl_->in_child();
}

}  // namespace ebb::inline v0
