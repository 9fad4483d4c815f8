// SPDX-License-Identifier: Apache-2.0
// Which fallback owners each thread has entered. [gc.owner]
#include "slot.h"

#include <ebb/gc/domain.h>
#include <ebb/gc/fallback_owner.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

struct FallbackOwner::Lent {
  explicit Lent(Owner its_owner) noexcept : owner(its_owner) {}

  const Owner owner;
  // Relaxed: only the flag itself is passed on; whoever must see it set is told by other means that
  // the work is over.
  std::atomic<bool> ended{false};
};

namespace {

using LentPtr = std::shared_ptr<const FallbackOwner::Lent>;

bool has_ended(const LentPtr& lent) noexcept {
  return lent->ended.load(std::memory_order_relaxed);
}

enum class Life : unsigned char { unborn, alive, over };
// Of this thread's list, which is not made for threads that never enter, and is gone before other
// things that end with the thread.
constinit thread_local Life life = Life::unborn;

// Innermost last. Those that ended without being left stay until the next entry.
struct Entered {
  std::vector<LentPtr> list;
  Entered() noexcept { life = Life::alive; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  Entered(Entered&&) = delete;
  Entered& operator=(Entered&&) = delete;
  ~Entered() { life = Life::over; }
};

std::vector<LentPtr>& entered() noexcept {
  thread_local Entered here;
  return here.list;
}

}  // namespace

FallbackOwner::FallbackOwner(Owner owner, const char* function) {
  if (!owner) {
    throw std::invalid_argument("[" + std::string(function) + "] the owner is empty");
  }
  owner.domain()->require_usable(function);
  domain_ = owner.domain()->weak_from_this().lock();
  lent_ = std::make_shared<Lent>(owner);
}

void FallbackOwner::enter() noexcept {
  if (life == Life::over) {
    return;
  }
  std::vector<LentPtr>& list = entered();
  detail::slot().has_fallbacks = true;
  std::erase_if(list, has_ended);
  try {
    list.push_back(lent_);
  } catch (const std::bad_alloc&) {  // as the header says
  }
}

void FallbackOwner::leave() noexcept {
  if (life != Life::alive) {
    return;
  }
  std::vector<LentPtr>& list = entered();
  const auto mine = std::find(list.rbegin(), list.rend(), lent_);
  if (mine != list.rend()) {
    list.erase(std::next(mine).base());
  }
}

void FallbackOwner::end() noexcept {
  lent_->ended.store(true, std::memory_order_relaxed);
}

Owner detail::fallback_owner() noexcept {
  if (life != Life::alive) {
    return {};
  }
  const std::vector<LentPtr>& list = entered();
  const auto innermost = std::find_if_not(list.rbegin(), list.rend(), has_ended);
  return innermost != list.rend() ? (*innermost)->owner : Owner{};
}

}  // namespace ebb::inline v0
