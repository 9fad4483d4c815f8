// SPDX-License-Identifier: Apache-2.0
// Waiting for stragglers and jobs with a deadline. [gc.close]
#include "close_wait.h"

#include "stragglers.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {
namespace {

// While it is set, whoever counts down notifies record.changed.
class ClosingFlag {
 public:
  explicit ClosingFlag(OwnerRecord& record) noexcept : record_(record) {
    record_.closing.store(true, std::memory_order_seq_cst);
  }
  ClosingFlag(const ClosingFlag&) = delete;
  ClosingFlag& operator=(const ClosingFlag&) = delete;
  ClosingFlag(ClosingFlag&&) = delete;
  ClosingFlag& operator=(ClosingFlag&&) = delete;
  ~ClosingFlag() { record_.closing.store(false, std::memory_order_seq_cst); }

 private:
  OwnerRecord& record_;
};

bool jobs_pending(const OwnerRecord& record) noexcept {
  return record.jobs.load(std::memory_order_seq_cst) != 0;
}

// One line every few seconds of a wait without end, so that a hang says what it hangs on.
class SlowNotice {
 public:
  SlowNotice(CloseSeries::Impl& series, OwnerRecord& record, TimePoint start)
      : series_(series), record_(record), next_(start + period) {}

  TimePoint next() const noexcept { return next_; }
  void say_if_due(TimePoint now, const std::vector<StragglerPlace>& places) {
    if (now < next_) {
      return;
    }
    next_ = now + period;
    std::string text = "loop \"" + series_.options.name + "\", iteration " +
                       std::to_string(record_.iteration) + ": closing still waits for " +
                       std::to_string(record_.live()) + " storages and " +
                       std::to_string(record_.jobs.load(std::memory_order_relaxed)) + " jobs";
    append_places(text, places);
    series_.domain->log(LogLevel::warning, text);
  }

 private:
  static constexpr std::chrono::seconds period{5};
  CloseSeries::Impl& series_;
  OwnerRecord& record_;
  TimePoint next_;
};

// Not once the runtime has ended, and its executors with it.
bool help_with_a_task(const CloseSeries::Impl& series) noexcept {
  const CloseOptions& options = series.options;
  return options.help != nullptr && !series.domain->has_ended() &&
         options.help(options.help_context);
}

}  // namespace

Milliseconds wait_for_stragglers(CloseSeries::Impl& series, OwnerRecord& record) {
  Clock& clock = series.domain->clock();
  const TimePoint start = clock.now();
  const TimePoint deadline = deadline_after(clock, series.options.deadline);
  const ClosingFlag flag(record);
  SlowNotice notice(series, record, start);
  std::vector<StragglerPlace> places;
  std::int64_t scanned_live = -1;
  for (;;) {
    const std::int64_t live = record.live();
    const bool jobs = jobs_pending(record);
    if (live == 0 && !jobs) {
      break;
    }
    if (live != scanned_live) {
      places = find_stragglers(record);
      scanned_live = live;
    }
    if (!jobs && !places.empty() && series.all_known(places)) {
      break;
    }
    const TimePoint now = clock.now();
    if (now >= deadline) {
      break;
    }
    notice.say_if_due(now, places);
    if (jobs && help_with_a_task(series)) {
      continue;
    }
    std::unique_lock lock(record.mutex);
    // Counted down since: look again instead of sleeping through the notification.
    if (record.live() == live && jobs_pending(record) == jobs) {
      clock.wait_until(record.changed, lock, std::min(deadline, notice.next()));
    }
  }
  return std::chrono::duration_cast<Milliseconds>(clock.now() - start);
}

}  // namespace ebb::inline v0::detail
