// SPDX-License-Identifier: Apache-2.0
// Work that an owner waits for: tasks, and functions bound to an owner. Used by executors and by
// users who hand work to threads of their own. A Job belongs to one thread at a time.
#pragma once

#include <ebb/alloc/place.h>
#include <ebb/gc/owner.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

namespace detail {
struct JobNote;
}

// Counts as work of owner from construction to finish() or destruction; closing the owner's
// iteration waits for it. A job of an iteration that has closed counts nowhere. [gc.close]
class Job {
 public:
  Job() noexcept = default;
  explicit Job(Owner owner) noexcept;
  // The same, and reports name the place. Throws std::bad_alloc.
  Job(Owner owner, Place at);
  // Returns the job of something that a device does: no close waits for it, but the iteration is
  // not retired before it has finished, and a loop opens no further iteration while in_flight of
  // them are not.
  static Job on_device(Owner owner) noexcept;

  Job(Job&& other) noexcept
      : owner_(other.owner_),
        counts_(std::exchange(other.counts_, Counts::nothing)),
        domain_(std::move(other.domain_)),
        note_(std::exchange(other.note_, nullptr)) {}
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
  // closed already, the error is logged; that of something that a device does is also thrown by the
  // loop's next open after it, or by finish().
  void fail(const std::exception_ptr& error) noexcept;

 private:
  enum class Counts : std::uint8_t { nothing, task, device_work };

  Job(Owner owner, Counts counts) noexcept;

  Owner owner_;
  Counts counts_ = Counts::nothing;
  std::shared_ptr<Domain> domain_;   // so that the owner may be used as long as the job
  detail::JobNote* note_ = nullptr;  // owned
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
  Bound(F function, Owner owner, Place at) : function_(std::move(function)), job_(owner, at) {}

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
// or is destroyed it is a job of that owner, which reports name by its place. Throws on a thread
// that has no owner.
//
//   std::jthread worker(ebb::bind([&] { ... }));
template <class F>
Bound<std::decay_t<F>> bind(F&& function, Place at = Place::here()) {
  return {std::forward<F>(function), Owner::current("bind"), at};
}

}  // namespace ebb::inline v0
