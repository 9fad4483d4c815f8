// SPDX-License-Identifier: Apache-2.0
// Opening and closing iterations at the level of lifetimes: runtime builds Loop and Iteration on
// it. One series belongs to one loop; its iterations may be open on several threads.
#pragma once

#include <ebb/alloc/fork.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/error.h>
#include <ebb/gc/owner.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace ebb::inline v0 {

// What happens to stragglers at the deadline. [gc.policy]
enum class Policy : std::uint8_t {
  adopt,  // they become the runtime's, are reported, and count against straggler_bytes
  fail,   // as adopt, and StragglerError is thrown once warmup iterations have closed
};

struct CloseOptions {
  std::string name = "loop";
  Milliseconds deadline{250};
  Policy policy = Policy::adopt;
  std::uint64_t warmup = 3;  // iterations whose stragglers are adopted without a report
  Bytes straggler_bytes{std::size_t{64} << 20};
  // Runs one waiting task of the loop's executor, if any; called while jobs are waited for.
  bool (*help)(void* context) noexcept = nullptr;
  void* help_context = nullptr;
};

// What a close found.
struct CloseResult {
  std::uint64_t stragglers = 0;
  Bytes straggler_bytes;
  std::uint64_t jobs_pending = 0;
  Milliseconds waited{0};
  std::shared_ptr<const StragglerReport> report;  // null when everything was finalized

  bool clean() const noexcept { return report == nullptr; }
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
  // Throws what a destructor stored, if anything, once.
  void rethrow_stored();
  void store(std::exception_ptr error) noexcept;

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
  // Throws what an earlier destructor of the series stored, and std::invalid_argument once the
  // runtime has been destroyed. place is the guard's site.
  OpenOwner(CloseSeries& series, std::uint64_t iteration, Place place);
  OpenOwner(const OpenOwner&) = delete;
  OpenOwner& operator=(const OpenOwner&) = delete;
  OpenOwner(OpenOwner&&) = delete;
  OpenOwner& operator=(OpenOwner&&) = delete;
  // Closes if still open, with the same steps and deadline; never throws: errors are stored.
  ~OpenOwner();

  // The steps of [gc.close]. Throws StragglerError by the policy, the first error of a job, or
  // std::invalid_argument on another thread or out of order (then nothing is closed).
  CloseResult close();
  bool is_open() const noexcept { return open_; }

  Owner owner() const noexcept { return {*record_, generation_, saved_.owner.stream()}; }
  // The owner that encloses this iteration: its parent, or the runtime.
  Owner parent() const noexcept;

 private:
  CloseResult close_steps();
  // What is left to do when something was alive: adopt, report, throw by the policy.
  void settle(CloseResult& result, bool after_warmup, bool has_other_error);
  void give_spare() noexcept;
  // The slot gets back what it had before. [gc.owner]
  void leave() noexcept;
  std::invalid_argument misuse(const char* why) const;
  // The destructor's way out of misuse: adopts at once and logs why.
  void abandon(const char* why) noexcept;

  CloseSeries& series_;
  OwnerRecord* record_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint64_t iteration_;
  std::uint64_t thread_ = 0;
  Place place_;
  detail::Slot saved_;
  bool open_ = true;
};

}  // namespace ebb::inline v0
