// SPDX-License-Identifier: Apache-2.0
// Splitting a loop over an executor. The caller takes part; tasks inherit its owner. Any thread.
#pragma once

#include <ebb/runtime/executor.h>

#include <cstdint>
#include <type_traits>

namespace ebb::inline v0 {

namespace detail {
using RangeBody = void (*)(void* body, std::int64_t begin, std::int64_t end);
void parallel_for(Executor& executor, std::int64_t count, std::int64_t grain, RangeBody call,
                  void* body);
}  // namespace detail

// Calls body(begin, end) for ranges of at least grain that cover [0, count), on the calling thread
// and on the executor's; returns when all are done. Ranges depend on count, grain and the
// executor's concurrency only. The first exception of a body is rethrown. No heap call.
template <class Body>
void parallel_for(Executor& executor, std::int64_t count, std::int64_t grain, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_for(
      executor, count, grain,
      [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Plain*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace ebb::inline v0
