// SPDX-License-Identifier: Apache-2.0
// The waiting of [gc.close], step 3. Private to gc; called by the opening thread.
#pragma once

#include "owner_record.h"
#include "series_impl.h"

#include <ebb/gc/clock.h>

namespace ebb::inline v0::detail {

// Waits until nothing of record is alive and no job is counted, until only places are left that
// straggled at their last close, or until the series' deadline. Returns how long it waited.
// Throws what the clock throws.
Milliseconds wait_for_stragglers(CloseSeries::Impl& series, OwnerRecord& record);

}  // namespace ebb::inline v0::detail
