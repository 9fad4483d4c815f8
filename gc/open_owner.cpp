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
#include <thread>
#include <utility>

namespace ebb::inline v0 {
namespace {

// How often the scan is repeated for storages that are just being made or released by another
// thread; after that the record rests until they are done. Who makes one looks for the end of the
// generation itself when it is there.
constexpr int adoption_rounds = 200;

// Adopts until nothing is counted any more. The generation has ended.
std::uint64_t adopt_all(OwnerRecord& record) noexcept {
  std::uint64_t adopted = 0;
  for (int round = 0; round < adoption_rounds && record.live() != 0; ++round) {
    adopted += detail::adopt_stragglers(record);
    if (record.live() != 0) {
      std::this_thread::yield();
    }
  }
  return adopted;
}

}  // namespace

OpenOwner::OpenOwner(CloseSeries& series, std::uint64_t iteration, Place place)
    : series_(series), iteration_(iteration), place_(place) {
  CloseSeries::Impl& impl = series.impl();
  impl.domain->impl().require_usable("Iteration");
  series.rethrow_stored();
  detail::drop_stale_owner();
  record_ = impl.spare.exchange(nullptr, std::memory_order_acquire);
  if (record_ == nullptr) {
    record_ = &impl.domain->impl().take_record();
  }
  if (!detail::slot().watched) {
    detail::watch_thread_end();
  }
  thread_ = detail::this_thread_number();
  generation_ = record_->open(thread_, iteration);
  record_->enclosing = detail::slot().owner.record();
  detail::enter_owner(saved_, Owner(*record_, generation_, saved_.owner.stream()));
}

OpenOwner::~OpenOwner() {
  if (!open_ || record_->domain->impl().in_child()) {
    return;
  }
  try {
    close();
  } catch (const std::exception& e) {
    if (open_) {
      abandon(e.what());  // misuse, or no memory to say which
    } else {
      series_.store(std::current_exception());
    }
  } catch (...) {
    series_.store(std::current_exception());
  }
}

Owner OpenOwner::parent() const noexcept {
  const bool enclosed = saved_.owner.is_open() && saved_.owner.domain() == record_->domain;
  return enclosed ? saved_.owner : record_->domain->long_lived();
}

CloseResult OpenOwner::close() {
  record_->domain->impl().mark.require_own_process("Iteration::close");
  if (!open_) {
    throw misuse("it is closed already");
  }
  if (thread_ != detail::this_thread_number()) {
    throw misuse("it was opened by another thread, and only that one may close it");
  }
  const Owner current = detail::slot().owner;
  if (current.is_open() && current.record() != record_) {
    throw misuse(
        "it is not the innermost one of this thread: close what was opened after it first");
  }
  return close_steps();
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

CloseResult OpenOwner::close_steps() {
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
  const std::exception_ptr failed =
      record.has_error.load(std::memory_order_relaxed) ? record.take_error() : nullptr;
  leave();
  const std::uint64_t closed_before = impl.closed.fetch_add(1, std::memory_order_relaxed);
  if (!alive && result.jobs_pending == 0) {
    impl.note_clean();
    give_spare();
  } else {
    settle(result, closed_before >= impl.options.warmup, failed != nullptr);
  }
  if (failed != nullptr) {
    std::rethrow_exception(failed);
  }
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

void OpenOwner::give_spare() noexcept {
  OwnerRecord* expected = nullptr;
  if (!series_.impl().spare.compare_exchange_strong(expected, record_, std::memory_order_release,
                                                    std::memory_order_relaxed)) {
    record_->domain->impl().give_record(*record_);
  }
}

void OpenOwner::settle(CloseResult& result, bool after_warmup, bool has_other_error) {
  OwnerRecord& record = *record_;
  CloseSeries::Impl& impl = series_.impl();
  Domain& domain = *impl.domain;
  StragglerReport report;
  report.loop = impl.options.name;
  report.iteration = iteration_;
  report.waited = result.waited;
  report.deadline = impl.options.deadline;
  report.jobs = result.jobs_pending;
  try {
    report.places = detail::find_stragglers(record);
  } catch (const std::bad_alloc&) {  // the report is poorer then; adoption needs no memory
  }
  result.stragglers = adopt_all(record);
  domain.impl().give_record(record);
  if (result.stragglers == 0 && result.jobs_pending == 0) {
    impl.note_clean();  // the last reference went while the generation ended
    return;
  }

  const bool worth_a_line = impl.note(report.places, after_warmup);
  report.count = result.stragglers;
  for (const StragglerPlace& place : report.places) {
    report.bytes += place.bytes;
  }
  result.straggler_bytes = report.bytes;
  const bool fails = impl.options.policy == Policy::fail && after_warmup;
  report.action = fails ? CloseAction::failed : CloseAction::adopted;
  result.report = std::make_shared<const StragglerReport>(report);
  if (after_warmup) {
    impl.stragglers.fetch_add(result.stragglers, std::memory_order_relaxed);
  }
  const Bytes adopted = domain.stats().adopted_bytes;
  const bool too_much = adopted > impl.options.straggler_bytes;
  if ((worth_a_line || result.jobs_pending != 0) && !fails) {
    domain.log(LogLevel::warning, report.text());
  }
  if (has_other_error) {
    return;  // the first error of a task comes before what it left behind
  }
  if (too_much) {
    throw StragglerError("adopted stragglers hold " + to_string(adopted) +
                             ", more than straggler_bytes (" +
                             to_string(impl.options.straggler_bytes) +
                             "): drop them, keep() what is meant to last, or raise the bound",
                         std::move(report));
  }
  if (fails) {
    throw StragglerError("", std::move(report));
  }
}

void OpenOwner::abandon(const char* why) noexcept {
  OwnerRecord& record = *record_;
  const bool mine = thread_ == detail::this_thread_number();
  open_ = false;
  record.end_generation();
  // On a foreign thread the local counts cannot be read: one scan adopts what there is, and the
  // record is not used again.
  if (!mine) {
    record.keep_domain_for_opener();
  }
  const std::uint64_t adopted = mine ? adopt_all(record) : detail::adopt_stragglers(record);
  if (mine) {
    record.domain->impl().give_record(record);
    if (!detail::slot().owner.is_open()) {
      leave();  // else what was opened after this restores the slot
    }
    record.forget_opener();
  }
  detail::log_safely(series_.domain(), LogLevel::error, [why, adopted] {
    return std::string(why) + "\n  the guard's destructor adopted " + std::to_string(adopted) +
           " storages";
  });
}

}  // namespace ebb::inline v0
