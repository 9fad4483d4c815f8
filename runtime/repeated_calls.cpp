// SPDX-License-Identifier: Apache-2.0
// Host functions that are run again and again. [alloc.graph]
#include "repeated_calls.h"

#include <ebb/gc/defer.h>

#include <utility>

namespace ebb::inline v0::detail {

void* RepeatedCalls::add(std::function<void()> function) {
  return &calls_.emplace_back(Call{this, std::move(function)});
}

void RepeatedCalls::run(void* opaque) noexcept {
  const auto* const call = static_cast<const Call*>(opaque);
  const DeferReleases later;
  try {
    call->function();
  } catch (...) {
    const std::lock_guard lock(call->calls->mutex_);
    if (call->calls->error_ == nullptr) {
      call->calls->error_ = std::current_exception();
    }
  }
}

void RepeatedCalls::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) {
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

}  // namespace ebb::inline v0::detail
