// SPDX-License-Identifier: Apache-2.0
// Iterations that are closed while devices still work for them: how many there may be, and the wait
// for the oldest. [gc.close]
#include "domain_impl.h"
#include "series_impl.h"
#include "waiting.h"

#include <ebb/alloc/error.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

namespace ebb::inline v0 {
namespace {

// Whether the device has come past all that the iteration queued. Others may count down at any
// time; streams are asked, by one thread at a time.
bool is_retired(const OwnerRecord& record) noexcept {
  if (record.devices != nullptr && !record.devices->is_retired()) {
    return false;
  }
  // A lost device ends nothing that it has begun: such a record rests.
  return record.device_work.load(std::memory_order_seq_cst) == 0 ||
         record.domain->has_lost_device();
}

std::string describe(const CloseSeries::Impl& series, std::uint64_t iteration) {
  return "loop \"" + series.options.name + "\", iteration " + std::to_string(iteration) +
         " is closed, and a device still works for it";
}

// The longest sleep: another thread of the loop may drop the record that this one waits for.
constexpr std::chrono::milliseconds longest_sleep{50};
// Between which bounds sleeps grow where streams are asked: nobody tells when they are there.
constexpr std::chrono::microseconds shortest_nap{50};
constexpr std::chrono::microseconds longest_nap{1000};

}  // namespace

void CloseSeries::Impl::add_unretired(OwnerRecord& record) noexcept {
  const std::lock_guard lock(unretired_mutex_);
  try {
    unretired_.push_back({&record, record.iteration});
    has_unretired.store(true, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // not waited for, then; it rests until it has retired
    domain->impl().give_record(record);
  }
}

// Returns the first error that came after a close, if any.
std::exception_ptr CloseSeries::Impl::drop_retired() noexcept {
  std::exception_ptr failed;
  std::erase_if(unretired_, [&](const Unretired& unretired) {
    const bool retired = is_retired(*unretired.record);
    if (retired) {
      std::exception_ptr late = unretired.record->take_error();
      failed = failed == nullptr ? std::move(late) : failed;
      domain->impl().give_record(*unretired.record);
    }
    return retired;
  });
  has_unretired.store(!unretired_.empty(), std::memory_order_relaxed);
  return failed;
}

// The devices are asked for under the lock: others may drop the record.
void CloseSeries::Impl::throw_late(std::uint64_t iteration, const char* function) {
  std::string devices;
  {
    const std::lock_guard lock(unretired_mutex_);
    for (const Unretired& it : unretired_) {
      if (it.iteration == iteration && it.record->devices != nullptr) {
        devices = it.record->devices->describe_pending();
      }
    }
  }
  throw DeviceError(function, 0, devices,
                    describe(*this, iteration) + " after " +
                        std::to_string(options.device_deadline.count()) + " ms");
}

void CloseSeries::Impl::wait_for_devices(std::size_t most, const char* function) {
  if (!has_unretired.load(std::memory_order_relaxed) || domain->impl().captures_here()) {
    return;  // what is captured runs later, in its order
  }
  Clock& clock = domain->clock();
  const TimePoint start = clock.now();
  const TimePoint deadline = deadline_after(clock, options.device_deadline);
  detail::SlowNotice notice(start);
  std::chrono::microseconds nap = shortest_nap;
  for (;;) {
    Unretired oldest{};
    std::exception_ptr failed;
    {
      const std::lock_guard lock(unretired_mutex_);
      failed = drop_retired();
      oldest = unretired_.size() < most ? oldest : unretired_.front();
    }
    if (failed != nullptr) {
      store(std::move(failed));
    }
    if (oldest.record == nullptr) {
      return;
    }
    const TimePoint now = clock.now();
    if (now >= deadline) {
      throw_late(oldest.iteration, function);
    }
    if (notice.is_due(now)) {
      domain->log(LogLevel::warning, describe(*this, oldest.iteration));
    }
    const detail::Waiting waiting(*oldest.record);
    std::unique_lock lock(oldest.record->mutex);
    const bool asks = oldest.record->devices != nullptr;
    if (asks || oldest.record->device_work.load(std::memory_order_seq_cst) != 0) {
      const auto until = now + (asks ? TimePoint::duration(nap) : longest_sleep);
      clock.wait_until(oldest.record->changed, lock, std::min(deadline, until));
      nap = std::min(2 * nap, longest_nap);
    }
  }
}

void CloseSeries::Impl::leave_devices() noexcept {
  const std::lock_guard lock(unretired_mutex_);
  for (const Unretired& unretired : unretired_) {
    if (unretired.record->devices != nullptr) {
      unretired.record->devices->forget();
    }
    domain->impl().give_record(*unretired.record);
  }
  unretired_.clear();
}

}  // namespace ebb::inline v0
