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
  domain_->close_loader_owner(owner_);
}

void Loader::Core::allocate() {
  const OwnerScope scope(owner_, HeapStay::with_scope);
  const Bytes bytes{layout_.slot_bytes};
  for (std::uint64_t n = ahead_ + options.leases; n > 0; --n) {
    Slot& slot = slots_.emplace_back();
    slot.core = this;
    slot.memory = Storage::make(owner_, bytes, default_align_cpu, birth_);
    slot.indices.reserve(slot_samples(options, data.size()));
  }
  for (unsigned n = options.workers; n > 0; --n) {
    workers_.emplace_back(*this, owner_).hands.prepare(data);
  }
  mine_.prepare(data);
}

void Loader::Core::Hands::prepare(const AnyDataset& dataset) noexcept {
  try {
    local = dataset.erased().make_local();
  } catch (...) {
    local = nullptr;
  }
}

bool Loader::Core::run_without_workers(Lock& lock) noexcept {
  if (domain_->has_ended() || executor_->concurrency() > 1) {
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
    cancel_tickets();
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
    if (slot.state == SlotState::free) {
      return &slot;
    }
  }
  return nullptr;
}

Loader::Core::Slot* Loader::Core::find_queued() noexcept {
  Slot* lowest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state == SlotState::queued && (lowest == nullptr || slot.seq < lowest->seq)) {
      lowest = &slot;
    }
  }
  return lowest;
}

void Loader::Core::assign(Slot& slot, std::uint64_t seq) noexcept {
  const auto batch = static_cast<std::uint64_t>(options.batch);
  slot.state = SlotState::queued;
  slot.generation = generation_.load(std::memory_order_relaxed);
  slot.epoch = epoch_;
  slot.seq = seq;
  slot.samples = static_cast<std::size_t>(std::min(batch, data.size() - seq * batch));
  slot.order = order_;
  ++queued_;
  next_ticket_ = std::max(next_ticket_, seq + 1);
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
  for (Worker& worker : workers_) {
    if (idle_tasks_ >= queued_) {
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
  if (Slot* const slot = find_queued()) {
    start_filling(*slot);
    ++counts_.filled_by_workers;
    lock.unlock();
    fill(*slot, worker.hands);
    lock.lock();
  }
  worker.submitted = false;
  --tasks_;
  pump(lock);
  if (closing_) {
    changed_.notify_all();
  }
}

void Loader::Core::start_filling(Slot& slot) noexcept {
  slot.state = SlotState::filling;
  slot.since = domain_->clock().now();
  slot.current.store(detail::no_index, std::memory_order_relaxed);
  --queued_;
}

void Loader::Core::cancel_tickets() noexcept {
  generation_.fetch_add(1, std::memory_order_relaxed);
  for (Slot& slot : slots_) {
    if (slot.state != SlotState::filling && slot.state != SlotState::leased) {
      slot.state = SlotState::free;
    }
  }
  queued_ = 0;
}

bool Loader::Core::is_valid() const noexcept {
  std::uint32_t queued = 0;
  std::uint32_t leased = 0;
  for (const Slot& slot : slots_) {
    queued += slot.state == SlotState::queued ? 1 : 0;
    leased += slot.hold != nullptr ? 1 : 0;
    if (slot.hold != nullptr && slot.state != SlotState::leased) {
      return false;
    }
  }
  return queued == queued_ && leased <= slots_.size() && deliver_ <= next_ticket_ &&
         next_ticket_ <= batches && idle_tasks_ <= tasks_ && tasks_ <= workers_.size();
}

}  // namespace ebb::inline v0
