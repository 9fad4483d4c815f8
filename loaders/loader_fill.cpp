// SPDX-License-Identifier: Apache-2.0
// Filling ranges of a batch, and what became of them. Foreign code runs here, in loader_fetch.cpp
// and nowhere else in the loader.
#include "loader_core.h"
#include "stage_room.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace {

using Steady = std::chrono::steady_clock;

// What a range is to take: long enough that taking it costs nothing beside, short enough that
// several threads are done with a batch at about the same time.
constexpr std::uint64_t range_ns = 200'000;

}  // namespace

std::size_t Loader::Core::range_size(std::size_t samples) const noexcept {
  const std::size_t threads = options.workers + std::size_t{1};
  if (threads == 1) {
    return samples;
  }
  const std::uint64_t ns = sample_ns_.load(std::memory_order_relaxed);
  const std::size_t size = ns == 0 ? samples / (4 * threads) : range_ns / ns;
  return size >= samples / 2 ? samples : std::max<std::size_t>(size, 1);
}

void Loader::Core::find_samples(Slot& slot, OrderScratch& scratch) {
  slot.indices.resize(slot.samples);  // within its capacity
  slot.order.fill(slot.first, slot.indices, scratch);
  if (options.on_error != OnError::fail) {
    avoid_skipped(slot);
  }
  if (layout_.varies) {
    find_lengths(slot);
  }
}

void Loader::Core::find_lengths(Slot& slot) {
  const std::int64_t unit = options.pad_to_multiple;
  const std::int64_t most = layout_.longest();
  slot.lengths.clear();
  slot.longest = 0;
  for (const std::uint64_t index : slot.indices) {
    const std::int64_t length = data.erased().length(index);
    if (length < 0 || length > most) {
      throw LoadError("Loader::next",
                      {.kind = LoadErrorKind::shape,
                       .dataset = data.name(),
                       .index = index,
                       .epoch = slot.epoch,
                       .seq = slot.seq,
                       .stage = "length",
                       .source = data.erased().source(index),
                       .text = "the length is " + std::to_string(length) +
                               ": the schema has room for " + std::to_string(most)});
    }
    slot.lengths.push_back(length);
    slot.longest = std::max(slot.longest, length);
  }
  slot.longest = std::min((slot.longest + unit - 1) / unit * unit, most);
  layout_.fit(slot.spots, slot.longest);
}

void Loader::Core::fill(Slot& slot, Hands& hands, Range& range) noexcept {
  // What load makes is the loader's, whichever thread and iteration this is. [gc.owner]
  const OwnerScope scope(owner_, HeapStay::with_scope);
  auto* const memory = static_cast<std::byte*>(slot.memory.data());
  const std::span lengths(slot.lengths);
  for (std::size_t row = range.first; row < range.first + range.count; ++row) {
    if constexpr (EBB_CHECKS >= 2) {
      for (const detail::FieldSpot& spot : slot.spots) {  // what load forgets to write is the same
        std::memset(memory + spot.offset + row * spot.row_bytes, 0xa5, spot.row_bytes);
      }
    }
    if (layout_.varies) {
      layout_.pad(slot.spots, memory, row, lengths[row]);
    }
  }
  detail::RangeFill walk(
      {.indices = std::span(slot.indices).subspan(range.first, range.count),
       .lengths = layout_.varies ? lengths.subspan(range.first, range.count) : lengths,
       .row = range.first,
       .slot = memory,
       .spots = slot.spots,
       .epoch = slot.epoch,
       .seq = slot.seq,
       .seed = options.seed,
       .generation = &generation_,
       .expected = slot.generation,
       .current = &hands.current},
      data.erased(), hands.scratch);
  const auto start = Steady::now();
  load_range(slot, hands, walk, range);
  const auto took = std::chrono::nanoseconds(Steady::now() - start);
  hands.scratch.reset();
  sample_ns_.store(static_cast<std::uint64_t>(took.count()) / range.count + 1,
                   std::memory_order_relaxed);
  if (!data.erased().has_stages) {
    hands.clocks.write.add(range.count, 0, took);
  }
}

void Loader::Core::load_range(Slot& slot, Hands& hands, detail::RangeFill& walk, Range& range) {
  const detail::ErasedDataset& erased = data.erased();
  while (!walk.complete()) {
    try {
      if (hands.local == nullptr) {
        hands.local = erased.make_local();
      }
      if (!erased.has_stages) {
        erased.load(*hands.local, walk);
      } else {
        while (walk.next()) {
          load_sample(slot, hands, walk, range.first + walk.position());
        }
      }
      return;  // at the end, or cancelled
    } catch (...) {
      hands.local.reset();  // whatever state it was left in, no later sample sees it
      const std::exception_ptr error = std::current_exception();
      if (!do_without(slot, hands, walk, range, error)) {
        return;
      }
    }
  }
}

void Loader::Core::load_sample(Slot& slot, Hands& hands, detail::RangeFill& walk,
                               std::size_t place) {
  const detail::ErasedDataset& erased = data.erased();
  const std::uint64_t index = walk.context().index();
  const Storage kept = cache_ == nullptr ? Storage{} : cache_->find(index);
  std::span<const std::byte> decoded;
  if (kept) {
    decoded = {static_cast<const std::byte*>(kept.data()), kept.bytes().count()};
    if (!slot.fetched.empty()) {
      drop(slot.fetched[place]);  // it was fetched before it was kept
    }
  } else {
    decoded = decode(slot, hands, walk, place);
  }
  const auto start = Steady::now();
  erased.finish(index, *hands.local, walk.context(), decoded, walk.writer());
  hands.clocks.write.add(1, 0, Steady::now() - start);
}

std::span<const std::byte> Loader::Core::decode(Slot& slot, Hands& hands, detail::RangeFill& walk,
                                                std::size_t place) {
  const detail::ErasedDataset& erased = data.erased();
  const std::uint64_t index = walk.context().index();
  const auto begin = Steady::now();
  std::span<const std::byte> bytes;
  const bool is_own = !slot.fetched.empty() && slot.indices[place] == index;
  detail::ScratchRoom fetch_room(hands.scratch);
  SampleBytes fetched(fetch_room);
  if (is_own && slot.fetched[place].error != nullptr) {
    std::rethrow_exception(slot.fetched[place].error);
  }
  if (is_own && slot.fetched[place].bytes) {
    const Storage& block = slot.fetched[place].bytes;
    bytes = {static_cast<const std::byte*>(block.data()), block.bytes().count()};
  } else if (erased.fetches) {
    erased.fetch(index, walk.context(), fetched);
    bytes = fetched.bytes();
    hands.clocks.fetch.add(1, bytes.size(), Steady::now() - begin);
  }
  const auto start = Steady::now();
  detail::ScratchRoom room(hands.scratch);
  SampleBytes out(room);
  erased.decode(index, *hands.local, walk.context(), bytes, out);
  const auto took = std::chrono::nanoseconds(Steady::now() - start);
  hands.clocks.decode.add(1, out.bytes().size(), took);
  if (cache_ != nullptr && !out.bytes().empty()) {
    cache_->offer(index, out.bytes(), Steady::now() - begin);
  }
  if (is_own) {
    drop(slot.fetched[place]);
  }
  return out.bytes();
}

// What is left to do once all samples are there.
std::exception_ptr Loader::Core::complete(Slot& slot) noexcept {
  const OwnerScope scope(owner_, HeapStay::with_scope);
  try {
    if (!slot.left_out.empty()) {
      leave_out(slot);
    }
    if (stage_ != nullptr) {
      const auto start = std::chrono::steady_clock::now();
      const Bytes bytes{layout_.slot_bytes};
      slot.on_device = stage_->copy(slot.memory, bytes, slot.copied);
      slot.on_device.set_read_only();
      copy_clock_.add(slot.indices.size(), bytes.count(), std::chrono::steady_clock::now() - start);
    }
  } catch (...) {
    copy_clock_.add_failure();
    return load_error(slot, no_index, std::current_exception(), "copy");
  }
  return nullptr;
}

// Closes up the rows of a batch behind those that are left out.
void Loader::Core::leave_out(Slot& slot) noexcept {
  std::sort(slot.left_out.begin(), slot.left_out.end());
  auto* const memory = static_cast<std::byte*>(slot.memory.data());
  auto next = slot.left_out.begin();
  const std::size_t unpadded = slot.indices.size() - slot.padding;
  std::size_t to = 0;
  for (std::size_t row = 0; row < slot.indices.size(); ++row) {
    if (next != slot.left_out.end() && *next == row) {
      ++next;
      slot.padding -= row >= unpadded ? 1 : 0;
      continue;
    }
    if (to != row) {
      slot.indices[to] = slot.indices[row];
      for (const detail::FieldSpot& spot : slot.spots) {
        std::byte* const begin = memory + spot.offset;
        std::memcpy(begin + to * spot.row_bytes, begin + row * spot.row_bytes, spot.row_bytes);
      }
    }
    ++to;
  }
  slot.indices.resize(to);
}

}  // namespace ebb::inline v0
