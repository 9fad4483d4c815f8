// SPDX-License-Identifier: Apache-2.0
// Opening and closing iterations at the level of lifetimes: runtime builds Loop and Iteration on
// it. One series belongs to one loop; its iterations may be open on several threads.
#pragma once

#include <ebb/alloc/fork.h>
#include <ebb/alloc/replay.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/error.h>
#include <ebb/gc/owner.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

// What happens to stragglers at the deadline. [gc.policy]
enum class Policy : std::uint8_t {
  adopt,  // they become the runtime's, are reported, and count against straggler_bytes
  fail,   // as adopt, and StragglerError is thrown once warmup iterations have closed
  // As adopt, and their memory is given up at once, so that a cycle of references costs no memory:
  // whole pages go back, the rest is zeroed, and the addresses stay reserved until the last
  // reference goes. Tensors then throw RevokedError, and a raw pointer reads zeros. Not strings,
  // foreign memory, or what a StorageHolder holds, as it does for containers, raw memory and
  // exports: those are only adopted.
  revoke,
};

struct CloseOptions {
  std::string name = "loop";
  Milliseconds deadline{250};
  Policy policy = Policy::adopt;
  // Iterations whose stragglers are neither reported nor thrown; Policy::revoke and straggler_bytes
  // hold for them too.
  std::uint64_t warmup = 3;
  Bytes straggler_bytes{std::size_t{64} << 20};
  unsigned in_flight = 2;  // iterations that may be closed while devices still work for them; not 0
  // How long an open waits for one of those before it throws DeviceError.
  Milliseconds device_deadline{60'000};
  // Whether storages that straggled before are traced while they are made again.
  bool traces = true;
  // Whether what iterations make is planned, once it was seen to repeat. [alloc.replay]
  bool plans = true;
  // Lets some other thread call work() of plans. False: none can; it is then asked again. May be
  // empty: wait_plan() plans.
  bool (*plan_elsewhere)(void* context, const std::shared_ptr<PlanSet>& plans) noexcept = nullptr;
  void* plan_context = nullptr;
  // Runs one waiting task of the loop's executor, if any; called while jobs are waited for.
  bool (*help)(void* context) noexcept = nullptr;
  void* help_context = nullptr;
};

// What a close found.
struct CloseResult {
  std::uint64_t stragglers = 0;
  Bytes straggler_bytes;
  std::uint64_t revoked = 0;  // of the stragglers
  std::uint64_t jobs_pending = 0;
  Milliseconds waited{0};
  // Null when everything was finalized, and after OpenOwner::close_briefly without news.
  std::shared_ptr<const StragglerReport> report;

  bool clean() const noexcept { return stragglers == 0 && jobs_pending == 0; }
};

// The close state that the iterations of one loop share: places that straggled, counts, and the
// error that a destructor could not throw. Thread-safe. In a forked child what may throw throws
// ForkedError, and the rest, destructors included, does nothing. [rt.fork]
class CloseSeries {
 public:
  CloseSeries(std::shared_ptr<Domain> domain, CloseOptions options);
  CloseSeries(const CloseSeries&) = delete;
  CloseSeries& operator=(const CloseSeries&) = delete;
  CloseSeries(CloseSeries&&) = delete;
  CloseSeries& operator=(CloseSeries&&) = delete;
  ~CloseSeries();  // logs an error that nobody claimed

  const CloseOptions& options() const noexcept;
  Domain& domain() const noexcept;
  // Throws what a destructor stored, or what a device has called threw since its iteration had
  // closed, if anything, once.
  void rethrow_stored();
  void store(std::exception_ptr error) noexcept;
  // Waits until no device works for a closed iteration any more, runs deferred releases, and throws
  // what a destructor stored. Throws DeviceError at device_deadline, and when a device was lost.
  void finish();
  // Adds a hook that a close runs on its thread when it would have to wait for a straggler: the
  // place where a garbage-collected language collects. What it throws, the close throws. Hooks run
  // one at a time in the order of their adding: a close waits, by its deadline, while another
  // thread runs them. An iteration that a hook closes runs none. [gc.close]
  void on_collect(std::function<void()> hook);

  // Waits until all iterations that were seen twice are planned, and plans them where nobody does.
  // False: patience has ended first.
  bool wait_plan(Milliseconds patience);
  // Returns the plans of host memory, and of devices', by the places where iterations were opened.
  std::vector<std::shared_ptr<PlanSet>> plans() const;
  std::vector<std::shared_ptr<PlanSet>> device_plans() const;
  // Returns all plans as text. Throws as PlanSet::save does.
  std::string save_plans() const;
  // Adds the plans of such a text to those of their places, also where no iteration was opened
  // yet. Throws std::invalid_argument as split_plans() and PlanSet::load do, and adds nothing then.
  void load_plans(std::string_view text);

  std::uint64_t stragglers_total() const noexcept;
  std::uint64_t closed_total() const noexcept;

  class Impl;
  Impl& impl() noexcept { return *impl_; }

 private:
  detail::OwnedHere<Impl> impl_;
};

// An open iteration: from construction to close, what this thread makes is charged to it.
// Made, closed and destroyed on one thread, last in first out. [gc.nest]
class OpenOwner {
 public:
  // Throws what an earlier destructor of the series stored, std::invalid_argument once the runtime
  // has been destroyed, and DeviceError at device_deadline, and once for each device that was lost.
  // place is the guard's site.
  OpenOwner(CloseSeries& series, std::uint64_t iteration, Place place);
  OpenOwner(const OpenOwner&) = delete;
  OpenOwner& operator=(const OpenOwner&) = delete;
  OpenOwner(OpenOwner&&) = delete;
  OpenOwner& operator=(OpenOwner&&) = delete;
  // Closes if still open, with the same steps and deadline; never throws: errors are stored.
  ~OpenOwner();

  // The steps of [gc.close]. Throws StragglerError by the policy, the first error of a job, or
  // std::invalid_argument on another thread, out of order, within a scope or bound function that
  // began after it, or from what this close itself runs (then nothing is closed).
  CloseResult close();
  // The same without a report where there is no news: what straggles was logged before.
  CloseResult close_briefly();
  bool is_open() const noexcept { return open_; }

  Owner owner() const noexcept { return {*record_, generation_, enclosing().stream()}; }
  // The owner that encloses this iteration: its parent, or the runtime.
  Owner parent() const noexcept;

 private:
  // Whom the thread charged when this was opened: its parent, if it belongs to the same domain.
  const Owner& enclosing() const noexcept { return saved_.owner ? saved_.owner : fallback_; }

  enum class Reports : std::uint8_t { always, news };

  CloseResult close(Reports reports);
  CloseResult close_steps(Reports reports);
  // What is left to do when something was alive: adopt, report, throw by the policy.
  void settle(CloseResult& result, Reports reports, bool after_warmup, bool has_other_error);
  void watch_known_places() noexcept;
  // Gives the record of a closed iteration away that nothing is counted in but device work.
  void let_go() noexcept;
  // The slot gets back what it had before. [gc.owner]
  void leave() noexcept;
  std::invalid_argument misuse(const char* why) const;
  // The destructor's way out of misuse: adopts at once and logs why.
  void abandon(const std::exception_ptr& why) noexcept;

  CloseSeries& series_;
  OwnerRecord* record_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint64_t iteration_;
  std::uint64_t thread_ = 0;
  Place place_;
  detail::Slot saved_;
  Owner fallback_;  // a FallbackOwner's, when the thread had no owner of its own
  bool open_ = true;
  bool closing_ = false;  // the host's code that a close runs may come back here
};

}  // namespace ebb::inline v0
