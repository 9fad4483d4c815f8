// SPDX-License-Identifier: Apache-2.0
// How a loader begins and ends: its options, its slots, its workers. On the consumer's thread.
#include "loader_core.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/fork.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ebb::inline v0 {

namespace {

constexpr unsigned workers_max = 256;
constexpr unsigned slots_max = 1024;  // of depth, and of leases
constexpr unsigned fetch_threads_max = 64;
constexpr std::int64_t pad_max = 1 << 20;
constexpr Milliseconds shutdown_wait{2000};

std::uint64_t batch_of(const LoaderOptions& options) {
  return static_cast<std::uint64_t>(options.batch);
}

// Returns options with the order and the tail that follow from shuffle and drop_last.
LoaderOptions with_order(LoaderOptions o, const AnyDataset& data) {
  constexpr const char* where = "Loader";
  if (!o.order.has_value()) {
    o.order = o.shuffle ? OrderSpec::shuffled() : OrderSpec::sequential();
  }
  if (o.order->needs_lengths()) {
    EBB_REQUIRE(data.erased().has_lengths, where, "order is ", o.order->describe(),
                ": it needs lengths, or a length(index) of the data set ", data.name());
    o.order =
        o.order->with_lengths([data](std::uint64_t index) { return data.erased().length(index); });
  }
  EBB_REQUIRE(!o.drop_last || o.rank.tail != Tail::pad, where,
              "drop_last leaves out what Tail::pad fills up: ask for one of them");
  o.rank.tail = o.drop_last ? Tail::drop : o.rank.tail;
  const std::uint64_t samples = o.order->samples(data.size());
  EBB_REQUIRE(o.rank.batches(batch_of(o), samples) > 0, where, "drop_last leaves no batch of ",
              std::to_string(o.batch), " in the ", std::to_string(samples), " samples of ",
              data.name());
  o.rank.require_shares(where, batch_of(o), samples);
  return o;
}

LoaderOptions checked(const LoaderOptions& o, const AnyDataset& data) {
  constexpr const char* where = "Loader";
  EBB_REQUIRE(o.batch >= 1, where, "batch is ", std::to_string(o.batch),
              ": a batch has at least 1 sample");
  EBB_REQUIRE(o.workers <= workers_max, where, "workers is ", std::to_string(o.workers),
              ": at most ", std::to_string(workers_max), " are sensible; 0 fills in next()");
  EBB_REQUIRE(o.depth >= 1 && o.depth <= slots_max, where, "depth is ", std::to_string(o.depth),
              ": batches ahead must be 1 to ", std::to_string(slots_max));
  EBB_REQUIRE(o.leases >= 1 && o.leases <= slots_max, where, "leases is ", std::to_string(o.leases),
              ": batches held at once must be 1 to ", std::to_string(slots_max));
  EBB_REQUIRE(o.deadline.count() > 0, where, "deadline is ", std::to_string(o.deadline.count()),
              " ms: it must be more than 0");
  const bool caches = o.cache != Bytes{};
  EBB_REQUIRE(!caches || data.erased().has_stages, where, "cache is ",
              std::to_string(o.cache.count()), " bytes", ", but the data set ", data.name(),
              " has no decode stage whose result could be kept: give it decode and finish");
  EBB_REQUIRE(o.fetch_threads <= fetch_threads_max, where, "fetch_threads is ",
              std::to_string(o.fetch_threads), ": at most ", std::to_string(fetch_threads_max),
              " are sensible");
  EBB_REQUIRE(o.fetch_threads == 0 || data.erased().fetches, where, "fetch_threads is ",
              std::to_string(o.fetch_threads), ", but the data set ", data.name(),
              " does not fetch");
  EBB_REQUIRE(o.pad_to_multiple >= 1 && o.pad_to_multiple <= pad_max, where, "pad_to_multiple is ",
              std::to_string(o.pad_to_multiple), ": it must be 1 to ", std::to_string(pad_max));
  for (const Field& field : data.schema().fields) {
    EBB_REQUIRE(!field.varies || data.erased().has_lengths, where, "the field \"", field.name,
                "\" of ", data.name(), " varies: the data set needs length(index)");
  }
  EBB_REQUIRE(data.size() > 0, where, "the data set ", data.name(), " is empty");
  return with_order(o, data);
}

const std::shared_ptr<Domain>& usable(const std::shared_ptr<Domain>& domain) {
  domain->require_usable("Loader");
  return domain;
}

// A batch is never larger than an epoch, unless it is padded.
std::size_t slot_samples(const LoaderOptions& options, std::uint64_t epoch_samples) {
  const std::uint64_t batch = batch_of(options);
  return static_cast<std::size_t>(options.rank.share(batch, std::min(epoch_samples, batch)).count);
}

}  // namespace

Loader::Core::Core(Runtime& rt, AnyDataset its_data, const LoaderOptions& its_options, Place at)
    : data(std::move(its_data)),
      options(checked(its_options, data)),
      epoch_samples(options.order->samples(data.size())),
      batches(options.rank.batches(batch_of(options), epoch_samples)),
      domain_(usable(rt.domain())),
      executor_(options.workers == 0 ? nullptr : &rt.load_executor(options.workers)),
      layout_(data.schema(), slot_samples(options, epoch_samples)),
      ahead_(std::max(options.depth, options.workers)),
      birth_{at, birth_note(DType::u8, {static_cast<std::int64_t>(layout_.slot_bytes)}, cpu)},
      pool_(
          domain_->make_pool("loader " + data.name(), options.memory_limit, options.deadline / 4)),
      owner_(domain_->open_loader_owner(pool_)),
      mine_(owner_, keeps_scratch()),
      order_(order_of(0)) {}

Loader::Core::~Core() {
  slots_.clear();
  workers_.clear();
  mine_.local.reset();
  cache_.reset();
  domain_->close_loader_owner(owner_);
}

void Loader::Core::allocate(Runtime& rt) {
  const OwnerScope scope(owner_, HeapStay::with_scope);
  const Bytes bytes{layout_.slot_bytes};
  const std::size_t samples = slot_samples(options, epoch_samples);
  if (options.device != cpu) {
    stage_ = std::make_unique<detail::DeviceStage>(rt, options.device, owner_, birth_);
  }
  for (std::uint64_t n = ahead_ + options.leases; n > 0; --n) {
    Slot& slot = slots_.emplace_back();
    slot.core = this;
    slot.memory = stage_ != nullptr ? stage_->make_slot(bytes)
                                    : Storage::make(owner_, bytes, default_align_cpu, birth_);
    slot.indices.reserve(samples);
    slot.lengths.reserve(layout_.varies ? samples : 0);
    slot.left_out.reserve(options.on_error == OnError::skip ? samples : 0);
    slot.fetched.resize(options.fetch_threads == 0 ? 0 : samples);
    slot.spots = layout_.spots;
  }
  for (unsigned n = options.workers; n > 0; --n) {
    workers_.emplace_back(*this, owner_).hands.prepare(data, order_);
  }
  mine_.prepare(data, order_);
  if (options.cache != Bytes{}) {
    cache_ = std::make_unique<detail::SampleCache>(*domain_, data.name(), options.cache,
                                                   data.size(), birth_);
  }
  start_fetching();
}

void Loader::Core::Hands::prepare(const AnyDataset& dataset, const Order& an_order) {
  an_order.prepare(order);
  try {
    local = dataset.erased().make_local();
  } catch (...) {
    local = nullptr;
  }
}

void Loader::Core::leave_behind() noexcept {
  left_behind = shared_from_this();
  detail::leave_behind(this);
}

void Loader::Core::shut_down() noexcept {
  // Not the domain's clock: a bound on a shutdown has to hold whatever a test's clock does.
  Clock& clock = steady_clock();
  try {
    Lock lock(mutex_);
    closing_ = true;
    cancel_tickets(lock);
    to_fetch_.notify_all();
    const TimePoint until = clock.now() + shutdown_wait;
    while (tasks_ > 0 && clock.now() < until) {
      if (!run_without_workers(lock)) {
        clock.wait_until(changed_, lock, until);
      }
    }
    if (tasks_ > 0) {
      const std::string stuck = describe_stuck();
      const std::string text =
          "[~Loader] data set " + data.name() + ": waited " +
          std::to_string(shutdown_wait.count()) + " ms, and " +
          (stuck.empty() ? std::to_string(tasks_) + " load tasks were not run by their executor"
                         : stuck) +
          "; what the tasks need stays alive until they end";
      lock.unlock();
      domain_->log(LogLevel::warning, text);
    }
  } catch (...) {
    domain_->log(LogLevel::error, "[~Loader] memory was refused while shutting down");
  }
}

}  // namespace ebb::inline v0
