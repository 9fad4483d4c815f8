// SPDX-License-Identifier: Apache-2.0
// Pointers that own constructed elements: the note and, unless the memory is foreign, the elements
// lie in one block, so that a storage of strings costs one block like any other. [alloc.resource]
#include "element_block.h"

#include "domain_impl.h"
#include "slot.h"
#include "stragglers.h"

#include <algorithm>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {
namespace {

// The note of elements in foreign memory.
struct WrappedElements : ElementBlock {
  DataPtr foreign;
};

void give_back(BlockRecord* record) noexcept {
  own_block(record->block(record->data)).reset();
}

void release_own(void* context, void* data) noexcept {
  const ElementBlock note = *static_cast<ElementBlock*>(context);
  note.ops->destroy(data, note.count);
  give_back(note.record);
}

void release_wrapped(void* context, void* /*data*/) noexcept {
  auto* const note = static_cast<WrappedElements*>(context);
  BlockRecord* const record = note->record;
  note->~WrappedElements();
  give_back(record);
}

constexpr PtrOps own_ops{release_own, "elements"};
constexpr PtrOps wrapped_ops{release_wrapped, "wrapped elements"};

Align align_of(const ElementOps& ops) noexcept {
  return std::max(default_align_cpu, ops.align);
}

// Where the elements begin in their block.
Bytes offset_of(const ElementOps& ops) noexcept {
  const std::size_t align = align_of(ops).value();
  return Bytes{(sizeof(ElementBlock) + align - 1) / align * align};
}

// Destroys what was copied when constructing the rest fails.
class Made {
 public:
  Made(const ElementOps& ops, void* first) : ops_(ops), first_(first) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  Made(Made&&) = delete;
  Made& operator=(Made&&) = delete;
  ~Made() { ops_.destroy(first_, count); }

  std::size_t count = 0;

 private:
  const ElementOps& ops_;
  void* first_;
};

void fill(const ElementOps& ops, std::byte* first, std::size_t count, const void* from,
          std::size_t kept) {
  Made made(ops, first);
  if (kept != 0) {
    ops.copy(first, from, kept);
  }
  made.count = kept;
  if (count > kept) {
    ops.construct(first + kept * ops.size.count(), count - kept);
  }
  made.count = 0;
}

}  // namespace

Block allocate_for(const OwnerRecord& record, Bytes bytes, Align align, const char* function) {
  const HeapLease lease(record);
  const Block block = lease.heap().try_allocate(bytes, align);
  if (!block) {
    fail_for_memory({function, bytes}, record, lease.heap());
  }
  return block;
}

DataPtr make_element_ptr(const OwnerRecord& record, const ElementOps& ops, std::size_t count,
                         const void* from, std::size_t kept, const char* function) {
  const Bytes offset = offset_of(ops);
  const Bytes bytes = offset + ops.size * count;
  DataPtr memory = own_block(allocate_for(record, bytes, align_of(ops), function));
  std::byte* const first = static_cast<std::byte*>(memory.get()) + offset.count();
  fill(ops, first, count, from, kept);
  auto* const note = new (memory.get()) ElementBlock{record_of(memory), &ops, count};
  memory.release_context();
  return DataPtr(first, note, own_ops, cpu);
}

DataPtr wrap_element_ptr(const OwnerRecord& record, DataPtr data, const ElementOps& ops,
                         std::size_t count) {
  void* const first = data.get();
  const Device device = data.device();
  const Block block = allocate_for(record, Bytes::of<WrappedElements>(1), default_align_cpu,
                                   "Storage::wrap_elements");
  auto* const note = new (block.data) WrappedElements{{block.record, &ops, count}, std::move(data)};
  return DataPtr(first, note, wrapped_ops, device);
}

const ElementBlock* element_block_of(const DataPtr& ptr) noexcept {
  const auto* const own = ptr.context_as<ElementBlock>(own_ops);
  return own != nullptr ? own : ptr.context_as<WrappedElements>(wrapped_ops);
}

}  // namespace ebb::inline v0::detail
