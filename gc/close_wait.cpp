// SPDX-License-Identifier: Apache-2.0
// Waiting for stragglers and jobs with a deadline. [gc.close]
#include "close_wait.h"

#include "domain_impl.h"
#include "stragglers.h"
#include "waiting.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {
namespace {

// One close that has to wait, on the opening thread.
class CloseWait {
 public:
  CloseWait(CloseSeries::Impl& series, OwnerRecord& record)
      : series_(series), record_(record), deferred_(series.domain->impl().deferred) {}

  // Returns whether there is nothing left to wait for.
  bool is_over() {
    look();
    if (live_ == 0 && !jobs_) {
      return true;
    }
    if (live_ != tallied_live_) {
      tally_stragglers(record_);
      tallied_live_ = live_;
    }
    if (!jobs_ && !record_.tallies.empty() && series_.all_known(record_.tallies)) {
      return true;
    }
    return false;
  }

  // Runs the hooks, once. Returns whether it did: not while another thread runs them.
  bool collect() noexcept {
    if (collected_) {
      return false;
    }
    collected_ = series_.collect(record_);
    return collected_;
  }

  // Runs a waiting task of the loop's executor while jobs are waited for. Returns whether it did.
  bool help() const noexcept {
    const CloseOptions& options = series_.options;
    // Not once the runtime has ended, and its executors with it.
    return jobs_ && options.help != nullptr && !series_.domain->has_ended() &&
           options.help(options.help_context);
  }

  // Sleeps until a count goes down, a release is deferred, or the time has come.
  void sleep(Clock& clock, TimePoint until) {
    if (!collected_) {
      until = std::min(until, clock.now() + hooks_sleep);
    }
    std::unique_lock lock(record_.mutex);
    // Counted down since: look again instead of sleeping through the notification.
    if (record_.live() == live_ && has_jobs() == jobs_ && deferred_.pushed() == pushed_) {
      clock.wait_until(record_.changed, lock, until);
    }
  }

  void say_what_it_waits_for() const {
    std::string text = "loop \"" + series_.options.name + "\", iteration " +
                       std::to_string(record_.iteration) + ": closing still waits for " +
                       std::to_string(live_) + " storages and " +
                       std::to_string(record_.jobs.load(std::memory_order_relaxed)) + " jobs";
    append_jobs(text, record_.job_places());
    append_places(text, find_stragglers(record_));
    series_.domain->log(LogLevel::warning, text);
  }

 private:
  // The longest sleep before hooks that another thread runs are asked for again.
  static constexpr std::chrono::milliseconds hooks_sleep{5};

  bool has_jobs() const noexcept { return record_.jobs.load(std::memory_order_seq_cst) != 0; }

  // Releases what was deferred, then notes what is left.
  void look() noexcept {
    pushed_ = deferred_.pushed();
    deferred_.run(&record_);
    live_ = record_.live();
    jobs_ = has_jobs();
  }

  CloseSeries::Impl& series_;
  OwnerRecord& record_;
  DeferredReleases& deferred_;
  std::uint64_t pushed_ = 0;
  std::int64_t live_ = 0;
  std::int64_t tallied_live_ = -1;
  bool jobs_ = false;
  bool collected_ = false;
};

}  // namespace

Milliseconds wait_for_stragglers(CloseSeries::Impl& series, OwnerRecord& record) {
  Clock& clock = series.domain->clock();
  const TimePoint start = clock.now();
  const TimePoint deadline = deadline_after(clock, series.options.deadline);
  const Waiting waiting(record);
  SlowNotice notice(start);
  CloseWait wait(series, record);
  while (!wait.is_over()) {
    if (wait.collect()) {
      continue;
    }
    const TimePoint now = clock.now();
    if (now >= deadline) {
      break;
    }
    if (notice.is_due(now)) {
      wait.say_what_it_waits_for();
    }
    if (!wait.help()) {
      wait.sleep(clock, std::min(deadline, notice.next()));
    }
  }
  return std::chrono::duration_cast<Milliseconds>(clock.now() - start);
}

}  // namespace ebb::inline v0::detail
