// SPDX-License-Identifier: Apache-2.0
// Opening and closing one iteration: the steps of [gc.close].
#include "close_wait.h"
#include "domain_impl.h"
#include "log_safely.h"
#include "series_impl.h"
#include "slot.h"
#include "stragglers.h"

#include <ebb/gc/close.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace ebb::inline v0 {
namespace {

// The time of one close.
class Closing {
 public:
  explicit Closing(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  Closing(Closing&&) = delete;
  Closing& operator=(Closing&&) = delete;
  ~Closing() { flag_ = false; }

 private:
  bool& flag_;
};

// Releases what was deferred and no open iteration is charged for.
void run_idle_releases(Domain::Impl& domain) noexcept {
  if (!detail::slot().defer_releases) {
    domain.deferred.run(domain.long_lived);
  }
}

}  // namespace

OpenOwner::OpenOwner(CloseSeries& series, std::uint64_t iteration, Place place)
    : series_(series), iteration_(iteration), place_(place) {
  CloseSeries::Impl& impl = series.impl();
  impl.domain->impl().require_usable("Iteration");
  series.rethrow_stored();
  detail::drop_stale_owner();
  impl.wait_for_devices(impl.options.in_flight, "Iteration::Iteration");
  if (impl.has_stored.load(std::memory_order_relaxed)) [[unlikely]] {
    series.rethrow_stored();  // what a device has called since a close
  }
  impl.domain->require_devices("Iteration");
  run_idle_releases(impl.domain->impl());
  record_ = impl.spare.exchange(nullptr, std::memory_order_acquire);
  if (record_ == nullptr) {
    record_ = &impl.domain->impl().take_record();
  }
  if (!detail::slot().watched) {
    detail::watch_thread_end();
  }
  thread_ = detail::this_thread_number();
  record_->since = record_->pool.cell_epoch();
  record_->tracks = impl.options.policy == Policy::revoke;
  record_->has_immigrants.store(false, std::memory_order_relaxed);
  watch_known_places();
  generation_ = record_->open(thread_, iteration);
  const detail::Slot& slot = detail::slot();
  OwnerRecord* const outer = slot.owner.record();
  record_->enclosing = outer;
  record_->strand = {thread_, 0};
  if (detail::is_open(slot.owner) && outer->opener.load(std::memory_order_relaxed) == thread_) {
    record_->strand.depth = outer->strand.depth + 1;
  }
  if (outer == nullptr && slot.has_fallbacks) {
    fallback_ = detail::fallback_owner();
  }
  detail::enter_iteration(saved_, *record_, generation_,
                          (outer != nullptr ? slot.owner : fallback_).stream(),
                          impl.begin_replay(*record_, place));
}

OpenOwner::~OpenOwner() {
  if (!open_ || record_->domain->impl().in_child()) {
    return;
  }
  try {
    close_briefly();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (open_) {
      abandon(error);  // misuse, or no memory to say which
    } else {
      series_.store(error);
    }
  }
}

Owner OpenOwner::parent() const noexcept {
  const Owner& outer = enclosing();
  const bool enclosed = outer.is_open() && outer.domain() == record_->domain;
  return enclosed ? outer : record_->domain->long_lived();
}

// Tracing is a help only: without memory for it the iteration goes on untraced.
void OpenOwner::watch_known_places() noexcept {
  if (record_->traces.is_armed()) [[unlikely]] {
    record_->watched = detail::Traces::never;
    record_->traces.disarm();
  }
  if (series_.impl().has_watched.load(std::memory_order_relaxed)) [[unlikely]] {
    try {
      series_.impl().arm(*record_);
    } catch (const std::bad_alloc&) {
    }
  }
}

CloseResult OpenOwner::close() {
  return close(Reports::always);
}

CloseResult OpenOwner::close_briefly() {
  return close(Reports::news);
}

CloseResult OpenOwner::close(Reports reports) {
  record_->domain->impl().mark.require_own_process("Iteration::close");
  if (!open_) {
    throw misuse("it is closed already");
  }
  if (thread_ != detail::this_thread_number()) {
    throw misuse("it was opened by another thread, and only that one may close it");
  }
  if (closing_) {
    throw misuse("it is closing already, and runs what has asked for that");
  }
  const Owner& current = detail::slot().owner;
  if (current.record() != record_ && detail::is_open(current)) {
    throw misuse(
        "it is not the innermost one of this thread: close what was opened after it first");
  }
  if (detail::slot().scopes > saved_.scopes) {
    throw misuse("a scope, task or bound function that began within it has not ended");
  }
  const Closing closing(closing_);
  return close_steps(reports);
}

std::invalid_argument OpenOwner::misuse(const char* why) const {
  std::string text = "[Iteration::close] loop \"" + series_.options().name + "\", iteration " +
                     std::to_string(iteration_) + ", opened at " + place_.file + ":" +
                     std::to_string(place_.line) + ": " + why;
  if (open_) {
    detail::append_places(text, detail::find_stragglers(*record_));
  }
  return std::invalid_argument(text);
}

CloseResult OpenOwner::close_steps(Reports reports) {
  OwnerRecord& record = *record_;
  CloseSeries::Impl& impl = series_.impl();
  CloseResult result;
  if (record.live() != 0 || record.jobs.load(std::memory_order_seq_cst) != 0) {
    try {
      result.waited = detail::wait_for_stragglers(impl, record);
    } catch (const std::bad_alloc&) {  // no memory to look further: the policy, at once
    }
  }
  open_ = false;
  impl.end_replay(record, place_);
  if (record.devices != nullptr) {
    record.devices->end();
  }
  // Storages that a foreign thread makes with a copied owner at this very moment either see the
  // end, or are seen here.
  record.end_generation();
  std::shared_ptr<Domain> kept;
  if (impl.domain->impl().ended.load(std::memory_order_acquire)) [[unlikely]] {
    kept = record.forget_opener();
  }
  result.jobs_pending = static_cast<std::uint64_t>(
      std::max<std::int64_t>(record.jobs.load(std::memory_order_seq_cst), 0));
  const bool alive = record.live() != 0;
  const std::exception_ptr failed = record.take_error();
  leave();
  const std::uint64_t closed_before = impl.closed.fetch_add(1, std::memory_order_relaxed);
  if (!alive && result.jobs_pending == 0) {
    impl.note_clean(record.strand);
    let_go();
  } else {
    settle(result, reports, closed_before >= impl.options.warmup, failed != nullptr);
  }
  run_idle_releases(impl.domain->impl());
  if (failed != nullptr) {
    std::rethrow_exception(failed);
  }
  impl.domain->require_devices("Iteration::close");
  return result;
}

void OpenOwner::leave() noexcept {
  // Where the slot names another guard, that was ended by another thread, as were all between:
  // their domains need not stay for the slot any more.
  OwnerRecord* inner = detail::slot().owner.record();
  while (inner != nullptr && inner != record_) {
    const std::shared_ptr<Domain> kept = inner->forget_opener();
    inner = kept != nullptr ? inner->enclosing : nullptr;
  }
  detail::leave_owner(saved_, true);
  detail::drop_stale_owner();
}

void OpenOwner::let_go() noexcept {
  OwnerRecord& record = *record_;
  CloseSeries::Impl& impl = series_.impl();
  if (record.device_work.load(std::memory_order_seq_cst) != 0 ||
      (record.devices != nullptr && !record.devices->is_retired())) [[unlikely]] {
    return impl.add_unretired(record);
  }
  if (const std::exception_ptr late = record.take_error()) [[unlikely]] {
    impl.store(late);
  }
  OwnerRecord* expected = nullptr;
  const bool is_idle = record.live() == 0 && record.jobs.load(std::memory_order_seq_cst) == 0;
  if (!is_idle || !impl.spare.compare_exchange_strong(expected, &record, std::memory_order_release,
                                                      std::memory_order_relaxed)) {
    record.domain->impl().give_record(record);
  }
}

void OpenOwner::abandon(const std::exception_ptr& why) noexcept {
  OwnerRecord& record = *record_;
  const bool mine = thread_ == detail::this_thread_number();
  // What began after this restores a slot that names the record, which so is not used again.
  const detail::Slot& slot = detail::slot();
  const bool named = !mine || slot.scopes > saved_.scopes ||
                     (slot.owner.record() != &record && slot.owner.is_open());
  open_ = false;
  if (named) {
    record.keep_domain_for_opener();
  }
  if (mine) {
    series_.impl().end_replay(record, place_);
  } else {
    record.ended_elsewhere.store(true, std::memory_order_relaxed);
  }
  record.end_generation();
  // On a foreign thread the local counts cannot be read: one scan adopts what there is.
  const std::uint64_t adopted = (mine ? detail::adopt_all(record, Policy::adopt)
                                      : detail::adopt_stragglers(record, Policy::adopt))
                                    .count;
  if (const std::exception_ptr failed = record.take_error()) {
    series_.store(failed);  // of a job
  }
  if (!named) {
    record.domain->impl().give_record(record);
    leave();
    record.forget_opener();
  }
  detail::log_safely(series_.domain(), LogLevel::error, [&why, adopted] {
    return detail::describe_error(why) + "\n  the guard's destructor adopted " +
           std::to_string(adopted) + " storages";
  });
}

}  // namespace ebb::inline v0
