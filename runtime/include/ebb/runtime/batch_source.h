// SPDX-License-Identifier: Apache-2.0
// What Loop::over iterates over: loaders are one kind, a user's own queue is another. [rt.loop]
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace ebb::inline v0 {

// next() returns batches until the epoch ends. Optional members:
//   void begin_epoch(uint64_t)      called before each epoch; needed for more than one
//   uint64_t next_epoch() const     the number of the first epoch that over begins (else 0)
//   void closed(batch_type&)        the batch's iteration has closed: where a cursor moves
template <class S>
concept BatchSource = requires(S source) {
  typename S::batch_type;
  { source.next() } -> std::same_as<std::optional<typename S::batch_type>>;
};

template <class S>
concept EpochSource = BatchSource<S> && requires(S source, std::uint64_t epoch) {
  source.begin_epoch(epoch);
};

template <class S>
concept ResumableSource = EpochSource<S> && requires(const S source) {
  { source.next_epoch() } -> std::convertible_to<std::uint64_t>;
};

template <class S>
concept CursorSource = BatchSource<S> && requires(S source, typename S::batch_type batch) {
  source.closed(batch);
};

}  // namespace ebb::inline v0
