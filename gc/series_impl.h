// SPDX-License-Identifier: Apache-2.0
// What the iterations of one loop share: which places straggle, which iterations devices still work
// for, hooks and stored errors. Private to gc.
#pragma once

#include "log_limit.h"
#include "owner_record.h"
#include "place_index.h"
#include "plan_sites.h"
#include "stragglers.h"

#include <ebb/gc/close.h>

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// What is worth telling of a close. [gc.report]
enum class News : std::uint8_t {
  none,       // all of it was told before
  first,      // something straggled after warmup that had not, or not since it closed clean
  escalated,  // something straggled for the third time running
};

class CloseSeries::Impl {
 public:
  Impl(std::shared_ptr<Domain> its_domain, CloseOptions its_options)
      : domain(std::move(its_domain)),
        options(std::move(its_options)),
        log_limit(domain->clock().now()) {}

  // Returns whether every one of places straggled at its last close: such a place had its
  // deadline already. [gc.close]
  bool all_known(const std::vector<detail::Tally>& places);
  // Notes what straggled at the close of record, and forgets places that closed clean, which is to
  // say in the strand in which they straggled. jobs: some had not ended.
  News note(const OwnerRecord& record, bool jobs, bool after_warmup);
  void note_clean(const Strand& strand) noexcept;
  // Fills in what note() has learned of each place.
  void fill_in(std::vector<StragglerPlace>& places);
  // From now on storages with the numbers of these are traced when they are made; empty: none.
  void watch(const std::vector<StragglerPlace>& places);
  // Lets record trace what is to be watched in its next generation.
  void arm(OwnerRecord& record);

  // Returns whether bytes more of adopted stragglers would pass straggler_bytes, and what that
  // means.
  bool would_pass_bound(std::int64_t bytes) const noexcept;
  std::string describe_bound() const;

  // Runs the hooks of on_collect; what one throws is the record's error. False, and none are run,
  // while another thread runs them: they may want what this one holds.
  bool collect(OwnerRecord& record) noexcept;
  // Logs what make_text returns, unless too much was logged lately.
  void log_limited(LogLevel level, std::string text);

  // Begins the replay of an iteration opened at place; null where it is to have no plan. That of
  // what it makes on a device begins with the first of it.
  Replay* begin_replay(OwnerRecord& record, const Place& place) noexcept;
  // Ends it, and sees to it that what was recorded is planned.
  void end_replay(OwnerRecord& record, const Place& place) noexcept;

  // Has what was recorded planned by another thread, if one can be told.
  void plan(const std::shared_ptr<PlanSet>& set) noexcept;

  // A closed iteration that devices still work for. Takes the record.
  void add_unretired(OwnerRecord& record) noexcept;
  // Leaves them to their devices: the records rest.
  void leave_devices() noexcept;
  // Waits until less than most iterations are unretired. Throws DeviceError.
  void wait_for_devices(std::size_t most, const char* function);
  // An error that the next open or finish() throws; a further one is logged.
  void store(std::exception_ptr error) noexcept;

  const std::shared_ptr<Domain> domain;
  const CloseOptions options;

  detail::PlanSites plans;
  detail::PlanSites device_plans{{.granule = default_align_cuda}};

  // Relaxed: figures, and hints that save the lock in a clean close.
  std::atomic<std::uint64_t> closed{0};
  std::atomic<std::uint64_t> stragglers{0};
  std::atomic<bool> has_history{false};
  std::atomic<bool> has_stored{false};
  std::atomic<bool> has_watched{false};
  std::atomic<bool> has_unretired{false};
  // The record of the last clean close, for the next open. Acquire and release: whoever takes it
  // sees what the thread that put it back did to it.
  std::atomic<OwnerRecord*> spare{nullptr};

  // Guards stored, the history, the watched numbers, the log's limit, and the two below.
  std::mutex mutex;
  std::exception_ptr stored;
  detail::LogLimit log_limit;

  // A deque: hooks run without the lock, and may come while others run.
  std::deque<std::function<void()>> hooks;
  std::uint64_t collector = 0;  // the number of the thread that runs them

 private:
  struct Known {
    Place place;  // no file: jobs that did not end
    std::uint32_t streak = 0;
    bool waited = false;  // its last close was its first
    bool logged = false;
    bool escalated = false;
    bool seen = false;
    Strand strand{};           // of the last one in which it straggled
    std::uint32_t missed = 0;  // closes of others since
  };
  const std::function<void()>& hook_at(std::size_t i);
  News note(const Place& place, const Strand& strand, bool after_warmup);
  void forget_unseen(const Strand& strand) noexcept;
  std::exception_ptr drop_retired() noexcept;
  [[noreturn]] void throw_late(std::uint64_t iteration, const char* function);

  std::vector<Known> history_;
  detail::PlaceIndex known_;            // of history_
  std::vector<std::uint64_t> watched_;  // ascending

  std::mutex unretired_mutex_;  // guards unretired_: the oldest first
  struct Unretired {
    OwnerRecord* record;
    std::uint64_t iteration;
  };
  std::vector<Unretired> unretired_;
};

}  // namespace ebb::inline v0
