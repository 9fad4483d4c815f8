// SPDX-License-Identifier: Apache-2.0
// Whether this process is a forked child of the one that made an object. A child has its parent's
// memory, but not its threads, and whatever lock they held is held for ever: so in a child calls
// throw, and releases and destructors do nothing. Used by all modules. Any thread. [rt.fork]
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace ebb::inline v0::detail {

// How many forks lie between the process that loaded ebb and this one, as far as ebb has seen them:
// the fork hook raises it in the child, before fork() returns and while it has one thread. Relaxed:
// no thread sees it change.
extern constinit std::atomic<std::uint32_t> forks;

// False in most processes: what is on a hot path asks this first.
inline bool is_forked_child() noexcept {
  return forks.load(std::memory_order_relaxed) != 0;
}

[[noreturn, gnu::cold]] void throw_forked(const char* function);
// Tells leak checkers that object, and what it leads to, stays: it is a parent's.
void leave_behind(const void* object) noexcept;

// Remembers the process that made it. A value.
class ForkMark {
 public:
  // Installs the fork hook if this is the first one. Throws std::bad_alloc when that is refused.
  ForkMark();

  // Whether this is a forked child of the process that made the mark.
  bool in_child() const noexcept { return forks.load(std::memory_order_relaxed) != forks_; }
  // Throws ForkedError, "[function] ...", in a child.
  void require_own_process(const char* function) const {
    if (in_child()) [[unlikely]] {
      throw_forked(function);
    }
  }

 private:
  std::uint32_t forks_;
};

// Owns a T as std::unique_ptr does, but leaves it alone in a forked child: for what has threads,
// locks that they may have held, or conditions that they waited for.
template <class T>
class OwnedHere {
 public:
  explicit OwnedHere(std::unique_ptr<T> object) : object_(std::move(object)) {}
  OwnedHere(OwnedHere&&) = delete;
  OwnedHere& operator=(OwnedHere&&) = delete;
  OwnedHere(const OwnedHere&) = delete;
  OwnedHere& operator=(const OwnedHere&) = delete;
  ~OwnedHere() {
    if (mark_.in_child()) {
      leave_behind(object_.release());
    }
  }

  T* operator->() const noexcept { return object_.get(); }
  T& operator*() const noexcept { return *object_; }
  const ForkMark& mark() const noexcept { return mark_; }

 private:
  ForkMark mark_;
  std::unique_ptr<T> object_;
};

}  // namespace ebb::inline v0::detail
