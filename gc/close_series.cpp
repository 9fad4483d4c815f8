// SPDX-License-Identifier: Apache-2.0
// The history of a loop's closes: places, streaks, and errors that destructors stored.
#include "domain_impl.h"
#include "log_safely.h"
#include "series_impl.h"

#include <ebb/gc/close.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

CloseSeries::Impl::Known* CloseSeries::Impl::find(const Place& place) {
  const auto found = std::find_if(history_.begin(), history_.end(), [&](const Known& known) {
    return known.line == place.line && known.file == place.file;
  });
  return found == history_.end() ? nullptr : &*found;
}

bool CloseSeries::Impl::all_known(const std::vector<StragglerPlace>& places) {
  if (!has_history.load(std::memory_order_relaxed)) {
    return false;
  }
  const std::lock_guard lock(mutex);
  return std::all_of(places.begin(), places.end(),
                     [this](const StragglerPlace& p) { return find(p.place) != nullptr; });
}

bool CloseSeries::Impl::note(std::vector<StragglerPlace>& places, bool after_warmup) {
  constexpr std::uint32_t escalate_at = 3;
  const std::lock_guard lock(mutex);
  std::vector<Known> seen;
  seen.reserve(places.size());
  bool worth_a_line = false;
  for (StragglerPlace& place : places) {
    const Known* const known = find(place.place);
    Known now = known != nullptr
                    ? *known
                    : Known{std::string(place.place.file), place.place.line, 0, false, false};
    place.waited = known == nullptr;
    now.streak += after_warmup ? 1 : 0;
    place.streak = std::max(now.streak, 1u);
    if (after_warmup && !now.logged) {
      now.logged = true;
      worth_a_line = true;
    } else if (now.streak >= escalate_at && !now.escalated) {
      now.escalated = true;
      worth_a_line = true;
    }
    seen.push_back(std::move(now));
  }
  history_ = std::move(seen);
  has_history.store(!history_.empty(), std::memory_order_relaxed);
  return worth_a_line;
}

void CloseSeries::Impl::note_clean() noexcept {
  if (has_history.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex);
    history_.clear();
    has_history.store(false, std::memory_order_relaxed);
  }
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

void CloseSeries::store(std::exception_ptr error) noexcept {
  if (impl_->domain->in_child()) {
    return;
  }
  std::exception_ptr lost;
  {
    const std::lock_guard lock(impl_->mutex);
    (impl_->stored == nullptr ? impl_->stored : lost) = std::move(error);
    impl_->has_stored.store(true, std::memory_order_relaxed);
  }
  if (lost != nullptr) {
    detail::log_safely(*impl_->domain, LogLevel::error, [this, &lost] {
      return "loop \"" + impl_->options.name +
             "\": a further error: " + detail::describe_error(lost);
    });
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

std::uint64_t CloseSeries::stragglers_total() const noexcept {
  return impl_->stragglers.load(std::memory_order_relaxed);
}

std::uint64_t CloseSeries::closed_total() const noexcept {
  return impl_->closed.load(std::memory_order_relaxed);
}

}  // namespace ebb::inline v0
