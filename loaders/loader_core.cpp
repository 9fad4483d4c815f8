// SPDX-License-Identifier: Apache-2.0
// Tickets and workers: which slot is filled next, and by whom. [load.slots]
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
  EBB_REQUIRE(!o.drop_last || data.size() >= static_cast<std::uint64_t>(o.batch), where,
              "drop_last leaves no batch of ", std::to_string(o.batch), " in the ",
              std::to_string(data.size()), " samples of ", data.name());
  return o;
}

std::uint64_t batches_of(const LoaderOptions& options, std::uint64_t size) {
  const auto batch = static_cast<std::uint64_t>(options.batch);
  return size / batch + (!options.drop_last && size % batch != 0 ? 1 : 0);
}

const std::shared_ptr<Domain>& usable(const std::shared_ptr<Domain>& domain) {
  domain->require_usable("Loader");
  return domain;
}

// A batch is never larger than the data set.
std::size_t slot_samples(const LoaderOptions& options, std::uint64_t size) {
  return static_cast<std::size_t>(std::min(size, static_cast<std::uint64_t>(options.batch)));
}

}  // namespace

Loader::Core::Core(Runtime& rt, AnyDataset its_data, const LoaderOptions& its_options, Place at)
    : data(std::move(its_data)),
      options(checked(its_options, data)),
      batches(batches_of(options, data.size())),
      domain_(usable(rt.domain())),
      executor_(options.workers == 0 ? nullptr : &rt.load_executor(options.workers)),
      layout_(data.schema(), slot_samples(options, data.size())),
      ahead_(std::max(options.depth, options.workers)),
      birth_{at, birth_note(DType::u8, {static_cast<std::int64_t>(layout_.slot_bytes)}, cpu)},
      pool_(
          domain_->make_pool("loader " + data.name(), options.memory_limit, options.deadline / 4)),
      owner_(domain_->open_loader_owner(pool_)),
      mine_(owner_, keeps_scratch()),
      order_(options.shuffle ? OrderKind::shuffled : OrderKind::sequential, data.size(),
             options.seed, 0) {}

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
  const std::size_t samples = slot_samples(options, data.size());
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
    workers_.emplace_back(*this, owner_).hands.prepare(data);
  }
  mine_.prepare(data);
  if (options.cache != Bytes{}) {
    cache_ = std::make_unique<detail::SampleCache>(*domain_, data.name(), options.cache,
                                                   data.size(), birth_);
  }
  start_fetching();
}

void Loader::Core::Hands::prepare(const AnyDataset& dataset) noexcept {
  try {
    local = dataset.erased().make_local();
  } catch (...) {
    local = nullptr;
  }
}

bool Loader::Core::run_without_workers(Lock& lock) noexcept {
  if (executor_ == nullptr || domain_->has_ended() || executor_->concurrency() > 1) {
    return false;
  }
  lock.unlock();
  const bool ran = executor_->run_one();
  lock.lock();
  return ran;
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

Loader::Core::Slot* Loader::Core::find(std::uint64_t seq) noexcept {
  const std::uint64_t generation = generation_.load(std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.state != SlotState::free && slot.state != SlotState::leased &&
        slot.generation == generation && slot.seq == seq) {
      return &slot;
    }
  }
  return nullptr;
}

Loader::Core::Slot* Loader::Core::find_free() noexcept {
  for (Slot& slot : slots_) {
    if (slot.state == SlotState::free && (stage_ == nullptr || stage_->is_done(slot.copied))) {
      return &slot;
    }
  }
  return nullptr;
}

bool Loader::Core::is_current(const Slot& slot) const noexcept {
  return slot.generation == generation_.load(std::memory_order_relaxed);
}

std::size_t Loader::Core::claimable(const Slot& slot) const noexcept {
  if (!is_current(slot) || slot.error != nullptr) {
    return 0;
  }
  if (slot.state == SlotState::queued) {
    return slot.samples;
  }
  if (slot.state != SlotState::open) {
    return 0;
  }
  std::size_t end = slot.samples;
  if (options.fetch_threads != 0) {
    end = slot.claimed;
    while (end < slot.samples && slot.fetched[end].is_there) {
      ++end;
    }
  }
  return end - slot.claimed;
}

Loader::Core::Slot* Loader::Core::find_work() noexcept {
  Slot* lowest = nullptr;
  for (Slot& slot : slots_) {
    if ((lowest == nullptr || slot.seq < lowest->seq) && claimable(slot) != 0) {
      lowest = &slot;
    }
  }
  return lowest;
}

std::size_t Loader::Core::tasks_wanted() const noexcept {
  std::size_t ranges = 0;
  for (const Slot& slot : slots_) {
    ranges += (claimable(slot) + slot.range - 1) / slot.range;
  }
  return ranges;
}

void Loader::Core::assign(Slot& slot, std::uint64_t seq) noexcept {
  const auto batch = static_cast<std::uint64_t>(options.batch);
  slot.state = SlotState::queued;
  slot.generation = generation_.load(std::memory_order_relaxed);
  slot.epoch = epoch_;
  slot.seq = seq;
  slot.samples = static_cast<std::size_t>(std::min(batch, data.size() - seq * batch));
  slot.range = range_size(slot.samples);
  slot.claimed = 0;
  slot.done = 0;
  slot.by_workers = false;
  slot.fetch_next = 0;
  slot.failed_at = Slot::none;
  slot.left_out.clear();
  slot.order = order_;
  next_ticket_ = std::max(next_ticket_, seq + 1);
}

// Without the mutex, by the one thread that is busy with the slot.
void Loader::Core::clear(Slot& slot) noexcept {
  slot.error = nullptr;
  slot.on_device = {};
  for (detail::Fetched& it : slot.fetched) {
    drop(it);
  }
}

void Loader::Core::pump(Lock& lock) noexcept {
  EBB_ASSERT_VALID(*this);
  if (workers_.empty() || closing_ || !begun_ || epoch_error_ != nullptr) {
    return;
  }
  while (next_ticket_ < batches && next_ticket_ - deliver_ < ahead_) {
    Slot* const slot = find_free();
    if (slot == nullptr) {
      break;
    }
    assign(*slot, next_ticket_);
  }
  const std::size_t wanted = tasks_wanted();
  for (Worker& worker : workers_) {
    if (idle_tasks_ >= wanted) {
      break;
    }
    if (!worker.submitted && !submit(lock, worker)) {
      break;
    }
  }
}

bool Loader::Core::submit(Lock& lock, Worker& worker) noexcept {
  worker.submitted = true;
  worker.hold = shared_from_this();
  ++idle_tasks_;
  ++tasks_;
  lock.unlock();
  try {
    // The task must not become a job of the iteration that happens to be open here. [gc.owner]
    const OwnerScope scope(owner_, HeapStay::with_scope);
    executor_->submit(worker);
    lock.lock();
    return true;
  } catch (...) {
    if (!submit_failed_.exchange(true, std::memory_order_relaxed)) {
      domain_->log(LogLevel::warning,
                   "[Loader] the executor refuses load tasks: next() fills the batches itself; "
                   "said once");
    }
  }
  lock.lock();
  worker.submitted = false;
  worker.hold.reset();  // never the last one: the caller holds the core
  --idle_tasks_;
  --tasks_;
  return false;
}

void Loader::Core::work(Worker& worker) noexcept {
  // Declared first, to go last: it may end the core, and with it the worker.
  const std::shared_ptr<Core> hold = std::move(worker.hold);
  Lock lock(mutex_);
  --idle_tasks_;
  workers_late_ = false;
  if (Slot* const slot = find_work()) {
    slot->by_workers = true;
    help(lock, *slot, worker.hands);
  }
  worker.submitted = false;
  --tasks_;
  pump(lock);
  if (closing_) {
    changed_.notify_all();
  }
}

void Loader::Core::help(Lock& lock, Slot& slot, Hands& hands) noexcept {
  hands.current.store(no_index, std::memory_order_relaxed);
  hands.at = &slot;
  ++slot.busy;
  if (slot.state == SlotState::queued) {
    open_ticket(lock, slot);
  }
  Range range;
  range.first = slot.claimed;
  range.count = std::min(slot.range, claimable(slot));
  if (range.count != 0) {
    slot.claimed += range.count;
    lock.unlock();
    fill(slot, hands, range);
    lock.lock();
    take_in(slot, range);
    to_fetch_.notify_all();
  }
  hands.at = nullptr;
  leave(lock, slot);
  if (range.error != nullptr) {  // of another sample than the first: foreign, so not with the mutex
    lock.unlock();
    range.error = nullptr;
    lock.lock();
  }
}

// Finds out which samples the batch has. Nobody else claims any before that is known.
void Loader::Core::open_ticket(Lock& lock, Slot& slot) noexcept {
  slot.state = SlotState::opening;
  slot.since = domain_->clock().now();
  std::exception_ptr error;
  lock.unlock();
  try {
    const OwnerScope scope(owner_, HeapStay::with_scope);
    find_samples(slot);
  } catch (...) {
    error = load_error(slot, no_index, std::current_exception(), "order");
  }
  for (detail::Fetched& it : slot.fetched) {
    it = {};  // what it says is of another batch
  }
  lock.lock();
  slot.state = SlotState::open;
  slot.samples = slot.indices.size();
  slot.range = std::min(slot.range, std::max<std::size_t>(slot.samples, 1));
  slot.error = std::move(error);
  to_fetch_.notify_all();
}

// What a range came to. Of several that fail the first one counts, as it would for one thread.
void Loader::Core::take_in(Slot& slot, Range& range) noexcept {
  slot.done += range.count;
  if (range.error != nullptr && range.failed_at < slot.failed_at) {
    slot.failed_at = range.failed_at;
    std::swap(slot.error, range.error);
  }
  slot.left_out.insert(slot.left_out.end(), range.left_out.begin(), range.left_out.end());
}

bool Loader::Core::is_complete(const Slot& slot) const noexcept {
  return slot.done == slot.samples && slot.error == nullptr && is_current(slot);
}

// The last thread that is busy with a slot says what has become of it.
void Loader::Core::leave(Lock& lock, Slot& slot) noexcept {
  const bool is_last = slot.busy == 1;
  if (is_last && is_complete(slot) && (stage_ != nullptr || !slot.left_out.empty())) {
    lock.unlock();
    std::exception_ptr error = complete(slot);
    lock.lock();
    slot.error = std::move(error);
  }
  if (is_last && !is_current(slot)) {
    lock.unlock();
    clear(slot);
    lock.lock();
    slot.state = SlotState::free;
  } else if (is_last && slot.error != nullptr) {
    slot.state = SlotState::failed;
  } else if (is_last && is_complete(slot)) {
    slot.state = SlotState::ready;
  }
  --slot.busy;
  if (slot.state != SlotState::open) {
    changed_.notify_all();
  }
}

void Loader::Core::cancel_tickets(Lock& lock) noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.busy == 0 && slot.state != SlotState::leased && slot.state != SlotState::free) {
      ++slot.busy;
      leave(lock, slot);
    }
  }
}

bool Loader::Core::is_valid() const noexcept {
  std::uint32_t leased = 0;
  for (const Slot& slot : slots_) {
    leased += slot.hold != nullptr ? 1 : 0;
    if ((slot.hold != nullptr && slot.state != SlotState::leased) ||
        (slot.busy != 0 && is_current(slot) && slot.state != SlotState::open &&
         slot.state != SlotState::opening) ||
        slot.done > slot.claimed || slot.claimed > slot.samples) {
      return false;
    }
  }
  return leased <= slots_.size() && deliver_ <= next_ticket_ && next_ticket_ <= batches &&
         idle_tasks_ <= tasks_ && tasks_ <= workers_.size() + options.fetch_threads;
}

}  // namespace ebb::inline v0
