// SPDX-License-Identifier: Apache-2.0
// The loader's front: construction, the cursor, figures.
#include "loader_core.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <string>
#include <utility>

namespace ebb::inline v0 {

Loader::Loader(Runtime& rt, AnyDataset data, const LoaderOptions& options, Place at)
    : core_(std::make_shared<Core>(rt, std::move(data), options, at)) {
  core_->allocate(rt);
}

Loader::~Loader() {
  if (core_->in_child()) {
    core_->leave_behind();
  } else {
    core_->shut_down();
  }
}

std::optional<Batch> Loader::next() {
  return core_->next();
}

void Loader::begin_epoch(std::uint64_t epoch) {
  core_->begin_epoch(epoch);
}

std::uint64_t Loader::next_epoch() const noexcept {
  return core_->next_epoch;
}

void Loader::closed(const Batch& batch) noexcept {
  // A batch of an epoch that was left, or from before restore, says nothing about where we stand.
  if (core_->in_child() || core_->restored || batch.epoch() != core_->cursor_epoch) {
    return;
  }
  core_->cursor_seq = std::max(core_->cursor_seq, batch.seq() + 1);
  if (core_->cursor_seq == core_->batches) {
    ++core_->cursor_epoch;
    core_->cursor_seq = 0;
  }
}

LoaderState Loader::state() const {
  return {.epoch = core_->cursor_epoch,
          .seq = core_->cursor_seq,
          .fingerprint = core_->data.fingerprint(),
          .seed = core_->options.seed,
          .batch = static_cast<std::uint64_t>(core_->options.batch),
          .order = core_->options.order->id(),
          .skipped = core_->skips().before(core_->cursor_epoch, core_->cursor_seq)};
}

void Loader::restore(const LoaderState& state) {
  core_->require_usable("Loader::restore");
  const LoaderState own = this->state();
  const auto require_same = [](const char* what, std::uint64_t saved, std::uint64_t mine) {
    EBB_REQUIRE(saved == mine, "Loader::restore", "the state was saved with ", what, " ",
                std::to_string(saved), ", this loader has ", std::to_string(mine),
                ": its batches would be others");
  };
  require_same("fingerprint", state.fingerprint, own.fingerprint);
  require_same("seed", state.seed, own.seed);
  require_same("batch", state.batch, own.batch);
  EBB_REQUIRE(state.order == own.order, "Loader::restore", "the state was saved with the order ",
              describe_order(state.order), ", this loader has ", core_->options.order->describe(),
              ": its batches would be others");
  EBB_REQUIRE(state.seq < core_->batches, "Loader::restore", "the state is at batch ",
              std::to_string(state.seq), ", but an epoch has ", std::to_string(core_->batches));
  core_->skips().restore(state.skipped);
  core_->cursor_epoch = state.epoch;
  core_->cursor_seq = state.seq;
  core_->next_epoch = state.epoch;
  core_->restored = true;
}

std::uint64_t Loader::batches_per_epoch() const noexcept {
  return core_->batches;
}

const AnyDataset& Loader::dataset() const noexcept {
  return core_->data;
}

const LoaderOptions& Loader::options() const noexcept {
  return core_->options;
}

LoaderStats Loader::stats() const noexcept {
  return core_->stats();
}

std::vector<SkippedSample> Loader::skipped() const {
  return core_->skips().list();
}

LoaderStats Loader::Core::stats() const noexcept {
  LoaderStats stats;
  if (in_child()) {
    return stats;
  }
  {
    const std::lock_guard lock(mutex_);
    stats = counts_;
    for (const Slot& slot : slots_) {
      stats.slots_leased += slot.state == SlotState::leased ? 1 : 0;
    }
  }
  for (const Worker& worker : workers_) {
    worker.hands.clocks.add_to(stats);
  }
  mine_.clocks.add_to(stats);
  fetch_clock_.add_to(stats.fetch);
  copy_clock_.add_to(stats.copy);
  if (cache_ != nullptr) {
    stats.cache = cache_->stats();
  }
  stats.fetched = Bytes{fetched_.load(std::memory_order_relaxed)};
  stats.skipped = skips_.size();
  stats.slots = static_cast<std::uint32_t>(slots_.size());
  stats.slot_bytes = Bytes{layout_.slot_bytes};
  stats.memory = pool_.stats();
  return stats;
}

}  // namespace ebb::inline v0
