// SPDX-License-Identifier: Apache-2.0
// The note beside constructed elements: which operations they have, how many they are, and the
// block that holds the note. Private to gc; belongs to the storage's pointer, one thread at a time.
#pragma once

#include "owner_record.h"

#include <ebb/alloc/block.h>
#include <ebb/gc/elements.h>

#include <cstddef>

namespace ebb::inline v0::detail {

// Lies at the begin of its block; for a storage's own elements they follow in the same block.
struct ElementBlock {
  BlockRecord* record;
  const ElementOps* ops;
  std::size_t count;
};

// Returns a block of host memory from the pool of record, by the calling thread's heap. Throws
// OutOfMemory, and std::invalid_argument when the runtime has ended.
Block allocate_for(const OwnerRecord& record, Bytes bytes, Align align, const char* function);

// Returns memory from the pool of record with kept elements copied from from and the others
// value-constructed; the pointer destroys them. Throws what an element throws, leaving nothing.
DataPtr make_element_ptr(const OwnerRecord& record, const ElementOps& ops, std::size_t count,
                         const void* from, std::size_t kept, const char* function);
// Returns a pointer to elements that are already in data and that data's release destroys.
DataPtr wrap_element_ptr(const OwnerRecord& record, DataPtr data, const ElementOps& ops,
                         std::size_t count);

// Returns the note of a pointer made by one of the two, else null.
const ElementBlock* element_block_of(const DataPtr& ptr) noexcept;

}  // namespace ebb::inline v0::detail
