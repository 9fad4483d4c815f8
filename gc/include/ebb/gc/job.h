// SPDX-License-Identifier: Apache-2.0
// Work that an owner waits for: tasks, and functions bound to an owner. Used by executors and by
// users who hand work to threads of their own. A Job belongs to one thread at a time.
#pragma once

#include <ebb/gc/owner.h>

#include <concepts>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

// Counts as work of owner from construction to finish() or destruction; closing the owner's
// iteration waits for it. A job of an iteration that has closed counts nowhere. [gc.close]
class Job {
 public:
  Job() noexcept = default;
  explicit Job(Owner owner) noexcept;
  Job(Job&& other) noexcept
      : owner_(other.owner_),
        counted_(std::exchange(other.counted_, false)),
        domain_(std::move(other.domain_)) {}
  Job& operator=(Job&& other) noexcept;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { finish(); }

  void finish() noexcept;
  // Throws ForkedError in a forked child of the process that made the job: there it counts nowhere,
  // and nobody waits for it. [rt.fork]
  void require_own_process(const char* function) const;
  Owner owner() const noexcept { return owner_; }
  // Stores the first error of the owner's jobs; the iteration's close throws it. When that has
  // closed already, the error is logged.
  void fail(std::exception_ptr error) noexcept;

 private:
  Owner owner_;
  bool counted_ = false;
  std::shared_ptr<Domain> domain_;  // so that the owner may be used as long as the job
};

namespace detail {

// Finishes a job at the end of a block.
class JobEnd {
 public:
  explicit JobEnd(Job& job) noexcept : job_(job) {}
  JobEnd(const JobEnd&) = delete;
  JobEnd& operator=(const JobEnd&) = delete;
  JobEnd(JobEnd&&) = delete;
  JobEnd& operator=(JobEnd&&) = delete;
  ~JobEnd() { job_.finish(); }

 private:
  Job& job_;
};

}  // namespace detail

// A function with the owner that it runs under. Move-only.
template <class F>
class Bound {
 public:
  Bound(F function, Owner owner) : function_(std::move(function)), job_(owner) {}

  // Runs the function under the bound owner. The first call ends the job; a call after the
  // iteration has closed charges the runtime and is reported as late. Throws ForkedError, and does
  // not run the function, in a forked child.
  template <class... Args>
    requires std::invocable<F&, Args...>
  decltype(auto) operator()(Args&&... args) {
    job_.require_own_process("bind");
    const detail::JobEnd end(job_);  // after the scope
    OwnerScope scope(job_.owner());
    return function_(std::forward<Args>(args)...);
  }

 private:
  F function_;
  Job job_;
};

// Returns function bound to the current owner, for a thread of the caller's own. Until it has run
// or is destroyed it is a job of that owner. Throws on a thread that has no owner.
//
//   std::jthread worker(ebb::bind([&] { ... }));
template <class F>
Bound<std::decay_t<F>> bind(F&& function) {
  return {std::forward<F>(function), Owner::current("bind")};
}

}  // namespace ebb::inline v0
