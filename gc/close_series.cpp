// SPDX-License-Identifier: Apache-2.0
// The history of a loop's closes: places, streaks, and errors that destructors stored.
#include "domain_impl.h"
#include "log_safely.h"
#include "series_impl.h"
#include "slot.h"

#include <ebb/alloc/check.h>
#include <ebb/gc/close.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

namespace ebb::inline v0 {
namespace {

// So that a deadline is in the clock's range.
constexpr Milliseconds longest_patience = std::chrono::hours(24);

}  // namespace

Replay* CloseSeries::Impl::begin_replay(OwnerRecord& record, const Place& place) noexcept {
  if (record.devices != nullptr) {
    record.devices->begin(options.plans ? &device_plans : nullptr, place);
  }
  const std::shared_ptr<PlanSet>* const set = options.plans ? plans.find(place) : nullptr;
  if (set == nullptr) {
    return nullptr;
  }
  if (record.replay == nullptr) [[unlikely]] {
    try {
      record.replay = std::make_unique<Replay>();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  record.replay->begin(**set, place);
  return record.replay.get();
}

void CloseSeries::Impl::end_replay(OwnerRecord& record, const Place& place) noexcept {
  if (record.devices != nullptr && record.devices->end_replay()) {
    plan(*record.devices->plans());
  }
  if (record.replay == nullptr || !record.replay->end()) [[likely]] {
    return;
  }
  if (const std::shared_ptr<PlanSet>* const set = plans.find(place)) {
    plan(*set);
  }
}

void CloseSeries::Impl::plan(const std::shared_ptr<PlanSet>& set) noexcept {
  if (options.plan_elsewhere == nullptr || domain->has_ended()) {
    return;  // once the runtime has ended, so have its executors
  }
  if (set->claim_work() && !options.plan_elsewhere(options.plan_context, set)) {
    set->unclaim_work();
  }
}

bool CloseSeries::Impl::all_known(const std::vector<detail::Tally>& places) {
  if (!has_history.load(std::memory_order_relaxed)) {
    return false;
  }
  const std::lock_guard lock(mutex);
  return std::all_of(places.begin(), places.end(), [this](const detail::Tally& p) {
    return known_.find(history_, p.place) != nullptr;
  });
}

News CloseSeries::Impl::note(const Place& place, const Strand& strand, bool after_warmup) {
  constexpr std::uint32_t escalate_at = 3;
  Known* known = known_.find(history_, place);
  const bool is_new = known == nullptr;
  if (is_new) {
    known = &known_.add(history_, Known{.place = place});
  }
  known->seen = true;
  known->strand = strand;
  known->missed = 0;
  known->waited = is_new;
  known->streak += after_warmup ? 1 : 0;
  if (after_warmup && !known->logged) {
    known->logged = true;
    return News::first;
  }
  if (known->streak >= escalate_at && !known->escalated) {
    known->escalated = true;
    return News::escalated;
  }
  return News::none;
}

News CloseSeries::Impl::note(const OwnerRecord& record, bool jobs, bool after_warmup) {
  const std::lock_guard lock(mutex);
  // A job is no state that warms up.
  News news = jobs ? note(Place{}, record.strand, true) : News::none;
  for (const detail::Tally& tally : record.tallies) {
    news = std::max(news, note(tally.place, record.strand, after_warmup));
  }
  forget_unseen(record.strand);
  return news;
}

void CloseSeries::Impl::note_clean(const Strand& strand) noexcept {
  if (has_history.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex);
    forget_unseen(strand);
  }
}

// A strand may come no more, so the closes of others tell too, in the end.
void CloseSeries::Impl::forget_unseen(const Strand& strand) noexcept {
  constexpr std::uint32_t missed_most = 64;
  for (Known& known : history_) {
    known.missed += known.seen ? 0 : 1;
  }
  const auto forgotten = std::erase_if(history_, [&strand](const Known& known) {
    return !known.seen && (known.strand == strand || known.missed > missed_most);
  });
  if (forgotten != 0) {
    known_.fill_in(history_);
  }
  for (Known& known : history_) {
    known.seen = false;
  }
  has_history.store(!history_.empty(), std::memory_order_relaxed);
  if (std::none_of(history_.begin(), history_.end(),
                   [](const Known& known) { return known.logged && !known.escalated; })) {
    watched_.clear();  // nothing is to be told with backtraces any more
    has_watched.store(false, std::memory_order_relaxed);
  }
}

void CloseSeries::Impl::fill_in(std::vector<StragglerPlace>& places) {
  const std::lock_guard lock(mutex);
  for (StragglerPlace& place : places) {
    if (const Known* const known = known_.find(history_, place.place)) {
      place.streak = std::max(known->streak, 1u);
      place.waited = known->waited;
    }
  }
}

void CloseSeries::Impl::watch(const std::vector<StragglerPlace>& places) {
  const std::lock_guard lock(mutex);
  watched_.clear();
  for (const StragglerPlace& place : places) {
    const Known* const known = known_.find(history_, place.place);
    if (known == nullptr || !known->logged || known->escalated) {
      continue;
    }
    for (const StragglerTrace& trace : place.traces) {
      watched_.push_back(trace.sequence);
    }
  }
  std::sort(watched_.begin(), watched_.end());
  watched_.erase(std::unique(watched_.begin(), watched_.end()), watched_.end());
  has_watched.store(!watched_.empty(), std::memory_order_relaxed);
}

// Once a place was escalated, with the traces, no more are taken: they would cost every iteration.
void CloseSeries::Impl::arm(OwnerRecord& record) {
  const std::lock_guard lock(mutex);
  record.watched = record.traces.arm(watched_);
}

bool CloseSeries::Impl::would_pass_bound(std::int64_t bytes) const noexcept {
  const std::int64_t adopted = domain->impl().adopted_bytes.load(std::memory_order_relaxed);
  const std::int64_t sum = std::max<std::int64_t>(adopted, 0) + std::max<std::int64_t>(bytes, 0);
  return Bytes{static_cast<std::size_t>(sum)} > options.straggler_bytes;
}

std::string CloseSeries::Impl::describe_bound() const {
  return "adopted stragglers hold " + to_string(domain->stats().adopted_bytes) +
         ", more than straggler_bytes (" + to_string(options.straggler_bytes) +
         "): drop them, keep() what is meant to last, or raise the bound";
}

bool CloseSeries::Impl::collect(OwnerRecord& record) noexcept {
  const std::uint64_t thread = detail::this_thread_number();
  const std::uint64_t generation = record.generation.load(std::memory_order_relaxed);
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex);
    if (collector != 0) {
      return collector == thread;  // then one of them closes an iteration
    }
    collector = thread;
    count = hooks.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    try {
      hook_at(i)();
    } catch (...) {
      record.store_error(generation, std::current_exception());
    }
  }
  const std::lock_guard lock(mutex);
  collector = 0;
  return true;
}

const std::function<void()>& CloseSeries::Impl::hook_at(std::size_t i) {
  const std::lock_guard lock(mutex);
  return hooks[i];
}

void CloseSeries::Impl::log_limited(LogLevel level, std::string text) {
  {
    const std::lock_guard lock(mutex);
    if (!log_limit.allows(domain->clock().now())) {
      return;
    }
    if (const std::uint64_t left_out = log_limit.take_left_out(); left_out != 0) {
      text += "\n  (" + std::to_string(left_out) + " more reports of this loop were not logged)";
    }
  }
  domain->log(level, text);
}

CloseSeries::CloseSeries(std::shared_ptr<Domain> domain, CloseOptions options)
    : impl_(std::make_unique<Impl>(std::move(domain), std::move(options))) {}

CloseSeries::~CloseSeries() {
  if (impl_->domain->in_child()) {
    return;
  }
  if (OwnerRecord* const spare = impl_->spare.exchange(nullptr, std::memory_order_acquire)) {
    impl_->domain->impl().give_record(*spare);
  }
  impl_->leave_devices();
  if (impl_->stored != nullptr) {
    detail::log_safely(*impl_->domain, LogLevel::error, [this] {
      return "loop \"" + impl_->options.name +
             "\" ends with an error that nobody asked for (call finish()): " +
             detail::describe_error(impl_->stored);
    });
  }
}

const CloseOptions& CloseSeries::options() const noexcept {
  return impl_->options;
}

Domain& CloseSeries::domain() const noexcept {
  return *impl_->domain;
}

void CloseSeries::Impl::store(std::exception_ptr error) noexcept {
  std::exception_ptr lost;
  {
    const std::lock_guard lock(mutex);
    (stored == nullptr ? stored : lost) = std::move(error);
    has_stored.store(true, std::memory_order_relaxed);
  }
  if (lost != nullptr) {
    detail::log_safely(*domain, LogLevel::error, [this, &lost] {
      return "loop \"" + options.name + "\": a further error: " + detail::describe_error(lost);
    });
  }
}

void CloseSeries::store(std::exception_ptr error) noexcept {
  if (!impl_->domain->in_child()) {
    impl_->store(std::move(error));
  }
}

void CloseSeries::rethrow_stored() {
  impl_.mark().require_own_process("Loop::finish");
  if (!impl_->has_stored.load(std::memory_order_relaxed)) {
    return;
  }
  std::exception_ptr error;
  {
    const std::lock_guard lock(impl_->mutex);
    error = std::exchange(impl_->stored, nullptr);
    impl_->has_stored.store(false, std::memory_order_relaxed);
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

void CloseSeries::finish() {
  impl_.mark().require_own_process("Loop::finish");
  EBB_REQUIRE(!impl_->domain->impl().captures_here(), "Loop::finish",
              "nothing runs while a graph is captured: call it after the captured step");
  impl_->wait_for_devices(1, "Loop::finish");
  impl_->domain->require_devices("Loop::finish");
  impl_->domain->run_deferred();
  rethrow_stored();
}

void CloseSeries::on_collect(std::function<void()> hook) {
  impl_.mark().require_own_process("Loop::on_collect");
  EBB_REQUIRE(hook != nullptr, "Loop::on_collect", "the hook is empty");
  const std::lock_guard lock(impl_->mutex);
  impl_->hooks.push_back(std::move(hook));
}

bool CloseSeries::wait_plan(Milliseconds patience) {
  impl_.mark().require_own_process("Loop::wait_plan");
  const auto deadline = std::chrono::steady_clock::now() + std::min(patience, longest_patience);
  std::vector<std::shared_ptr<PlanSet>> sets = plans();
  std::ranges::move(device_plans(), std::back_inserter(sets));
  for (const std::shared_ptr<PlanSet>& set : sets) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (!set->wait(std::max(std::chrono::ceil<Milliseconds>(left), Milliseconds::zero()))) {
      return false;
    }
  }
  return true;
}

std::vector<std::shared_ptr<PlanSet>> CloseSeries::plans() const {
  return impl_->plans.all();
}

std::vector<std::shared_ptr<PlanSet>> CloseSeries::device_plans() const {
  return impl_->device_plans.all();
}

std::string CloseSeries::save_plans() const {
  impl_.mark().require_own_process("Loop::save_plans");
  return impl_->plans.save() + impl_->device_plans.save();
}

// All is read before any is added.
void CloseSeries::load_plans(std::string_view text) {
  impl_.mark().require_own_process("Loop::load_plans");
  std::vector<SavedPlans> host = split_plans(text);
  const auto is_host = [](const SavedPlans& part) {
    return part.granule.value() != default_align_cuda.value();
  };
  const auto first = std::stable_partition(host.begin(), host.end(), is_host);
  std::vector<SavedPlans> devices(std::make_move_iterator(first),
                                  std::make_move_iterator(host.end()));
  host.erase(first, host.end());
  detail::PlanSites::Loaded for_host = impl_->plans.read(std::move(host));
  detail::PlanSites::Loaded for_devices = impl_->device_plans.read(std::move(devices));
  impl_->plans.add(std::move(for_host));
  impl_->device_plans.add(std::move(for_devices));
}

std::uint64_t CloseSeries::stragglers_total() const noexcept {
  return impl_->stragglers.load(std::memory_order_relaxed);
}

std::uint64_t CloseSeries::closed_total() const noexcept {
  return impl_->closed.load(std::memory_order_relaxed);
}

}  // namespace ebb::inline v0
