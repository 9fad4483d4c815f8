// SPDX-License-Identifier: Apache-2.0
// The loader: fills batches beside the loop and hands them out in order. A BatchSource for
// Loop::over. One thread at a time, except stats().
#pragma once

#include <ebb/alloc/place.h>
#include <ebb/gc/clock.h>
#include <ebb/loaders/batch.h>
#include <ebb/loaders/dataset.h>
#include <ebb/loaders/order_spec.h>
#include <ebb/loaders/rank_view.h>
#include <ebb/runtime/batch_source.h>
#include <ebb/runtime/runtime.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// What becomes of a batch with a sample that cannot be loaded.
enum class OnError : std::uint8_t {
  fail,        // next() throws what happened, and again until begin_epoch
  skip,        // the batch has one sample less
  substitute,  // another sample, told by (seed, epoch, place), is in its place
};

struct LoaderOptions {
  std::int64_t batch = 64;  // samples a batch, of all ranks; the last of an epoch may be smaller
  std::uint64_t seed = 0;   // of the order and of SampleContext::random
  unsigned workers = 1;     // tasks that fill at once, at most 256; 0: next() fills
  unsigned depth = 3;       // batches filled ahead
  bool shuffle = true;      // another order every epoch; else the data set's own
  // Any other order; it stands in the place of shuffle.
  std::optional<OrderSpec> order = std::nullopt;
  bool drop_last = false;  // leave out a smaller last batch: as Tail::drop in rank
  // Which share of every batch is this process's, and what becomes of a smaller last batch.
  RankView rank = {};
  Milliseconds deadline{30000};  // how long next() waits for a batch; then it throws
  unsigned leases = 2;           // batches that the consumer may hold at once, in any case
  // Of the loader's pool: slots and the workers' scratch; 0: none. Scratch that the limit refuses
  // waits a quarter of the deadline for other workers to give theirs back, then the sample fails.
  Bytes memory_limit{0};
  // Decoded samples that are kept for later epochs, at most; 0: none. Only for data sets in stages.
  Bytes cache{0};
  // Threads that wait for files, at most 64, for data sets that fetch; 0: who decodes does. They
  // are not the executor's. What they have fetched ahead of its use is bounded by fetch_ahead, and
  // one sample for each thread more.
  unsigned fetch_threads = 0;
  Bytes fetch_ahead{std::size_t{64} << 20};
  // Batches with fields that vary are as long as their longest sample, rounded up to this.
  std::int64_t pad_to_multiple = 1;
  // Where the tensors of batches are. Those of a device are filled in pinned memory and copied
  // beside the loop; a batch may be used on the stream that is current where next() is called.
  Device device = cpu;
  OnError on_error = OnError::fail;
  std::uint64_t skips_max = 100;  // samples that may be skipped or substituted in a run
};

// A sample that could not be loaded, and was skipped or substituted since.
struct SkippedSample {
  std::uint64_t index = 0;
  std::uint64_t epoch = 0;  // when it was found out
  std::uint64_t seq = 0;
  std::string reason = {};
};

// Where a run stands: what a checkpoint stores. The rest says which run it is, so that restore can
// refuse another one.
struct LoaderState {
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;  // batches of the epoch whose iterations have closed
  std::uint64_t fingerprint = 0;
  std::uint64_t seed = 0;
  std::uint64_t batch = 0;
  std::uint64_t order = OrderSpec::shuffled().id();
  // Samples known not to load, lowest first: they are not tried again, so that the batches after a
  // resume are those that there would have been. [load.pure]
  std::vector<std::uint64_t> skipped = {};

  bool operator==(const LoaderState&) const = default;
};

// One stage of loading, over all threads.
struct LoaderStageStats {
  std::uint64_t samples = 0;
  Bytes bytes;                       // that it made; of write: none are counted
  std::chrono::nanoseconds busy{0};  // in the data set's own code, waiting included
  std::uint64_t failures = 0;
};

struct LoaderCacheStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t samples = 0;  // kept
  Bytes bytes;                // kept, with what each takes beside
};

struct LoaderStats {
  std::uint64_t delivered = 0;          // batches handed out
  std::uint64_t filled_inline = 0;      // of those filled, by next() alone
  std::uint64_t filled_by_workers = 0;  // all others
  std::chrono::nanoseconds starved{0};  // that next() waited for a batch, inline filling included
  std::chrono::nanoseconds first_batch{0};  // from the first begin_epoch on
  LoaderStageStats fetch;
  LoaderStageStats decode;
  LoaderStageStats write;  // load, or finish
  LoaderStageStats copy;   // to a device; busy: until it was queued
  LoaderCacheStats cache;
  Bytes fetched;              // and not used yet
  std::uint64_t skipped = 0;  // samples known not to load
  std::uint32_t slots = 0;
  std::uint32_t slots_leased = 0;
  Bytes slot_bytes;    // of one slot
  MemoryStats memory;  // of the loader's pool
};

// A batch's content depends on (fingerprint, seed, order, batch, epoch, seq) only: not on workers,
// depth, timing, or how many ranks there are. [load.pure]
//
//   ebb::Loader loader(rt, data, {.batch = 64, .seed = 1});
//   for (auto& it : loop.over(loader, {.epochs = 5})) {
//     auto [x, y] = it.fields<2>();
//   }
class Loader {
 public:
  using batch_type = Batch;

  // Allocates all slots (depth + leases). Throws std::invalid_argument, naming the option, for
  // options that cannot be, and OutOfMemory. Destroy it before the runtime; where it is the other
  // way round, next() throws.
  Loader(Runtime& rt, AnyDataset data, const LoaderOptions& options = {}, Place at = Place::here());
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  Loader(Loader&&) = delete;
  Loader& operator=(Loader&&) = delete;
  // Waits at most 2 s for a load that is running, then logs it and leaves to it what it needs.
  ~Loader();

  // Returns the next batch, or nothing at the end of the epoch. Fills the batch itself when no
  // worker has begun it within 1 ms. Throws LoadError: what load threw, at the batch it belongs to
  // and again until begin_epoch; or, at the deadline, what it waits for and who holds the slots
  // (then it may be called again). Without begin_epoch the first call begins next_epoch().
  std::optional<Batch> next();
  // Begins an epoch at its first batch, or where restore said. Batches filled ahead are dropped.
  void begin_epoch(std::uint64_t epoch);
  // Returns the epoch to begin next: the one after the last begun, or the one that restore named.
  std::uint64_t next_epoch() const noexcept;
  // Moves the cursor past batch: what Loop::over calls when the batch's iteration has closed.
  void closed(const Batch& batch) noexcept;

  // Returns the cursor: batches handed out but not closed are ahead of it. Throws std::bad_alloc.
  LoaderState state() const;
  // Makes the next begin_epoch(state.epoch) start at state.seq. Throws std::invalid_argument when
  // the state is of another data set, seed, batch size or order, naming what differs. It may be of
  // another number of ranks, and of any of them.
  void restore(const LoaderState& state);

  std::uint64_t batches_per_epoch() const noexcept;
  const AnyDataset& dataset() const noexcept;
  const LoaderOptions& options() const noexcept;
  LoaderStats stats() const noexcept;  // any thread
  // Returns which samples were skipped or substituted, in the order in which that was found out.
  std::vector<SkippedSample> skipped() const;  // any thread

 private:
  class Core;
  std::shared_ptr<Core> core_;  // leases and running tasks hold it too
};

static_assert(ResumableSource<Loader> && CursorSource<Loader>);

}  // namespace ebb::inline v0
