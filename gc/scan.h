// SPDX-License-Identifier: Apache-2.0
// Walking over the live storages of one owner. Private to gc. Any thread; the cells of a pool are
// read while others use them, so each is pinned first. [gc.count]
#pragma once

#include "domain_impl.h"
#include "storage_cell.h"

#include <ebb/alloc/pool.h>

#include <exception>

namespace ebb::inline v0::detail {

// Calls visit(cell) for each live storage in the cells of pool that were taken since an epoch, or
// for those charged to record if that is not null; the cell is pinned meanwhile. Throws what visit
// throws, after which it is not called again.
template <class Visit>
void for_each_live(const PoolHandle& pool, std::uint64_t since, const OwnerRecord* record,
                   Visit visit) {
  struct Context {
    const OwnerRecord* record;
    Visit* visit;
    std::exception_ptr error;  // no exception crosses the pool's walk
  } context{record, &visit, nullptr};
  pool.for_each_cell(
      since,
      [](void* opaque, Cell* cell) {
        auto& c = *static_cast<Context*>(opaque);
        StorageCell& storage = cell_of(*cell);
        if (c.error != nullptr || !storage.owner.pin(c.record)) {
          return;
        }
        try {
          (*c.visit)(storage);
        } catch (...) {
          c.error = std::current_exception();
        }
        storage.unpin();
      },
      &context);
  if (context.error != nullptr) {
    std::rethrow_exception(context.error);
  }
}

// The same for all that record holds. With the domain's replace_mutex held. Once the pool has
// closed there is nothing to walk over.
template <class Visit>
void for_each_owned(const OwnerRecord& record, Visit visit) {
  const bool everywhere =
      record.kind != OwnerKind::iteration || record.has_immigrants.load(std::memory_order_relaxed);
  for_each_live(record.pool, everywhere ? 0 : record.since, &record, visit);
  // Of which there are few in comparison.
  record.domain->impl().for_each_device_pool(
      [&](const PoolHandle& pool) { for_each_live(pool, 0, &record, visit); });
}

}  // namespace ebb::inline v0::detail
