// SPDX-License-Identifier: Apache-2.0
// Owner handles and the scopes that set them. [gc.owner]
#include "device_heaps.h"
#include "domain_impl.h"
#include "owner_record.h"
#include "slot.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/fork.h>
#include <ebb/gc/owner.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace ebb::inline v0 {

Owner Owner::current(const char* function) {
  const Owner owner = current_or_none();
  if (!owner) {
    if (detail::slot().forked) {
      detail::throw_forked(function);
    }
    throw std::invalid_argument(
        "[" + std::string(function) +
        "] this thread has no owner to charge: name a Runtime or an Iteration in the call, open an "
        "Iteration, or hand the work over with ebb::bind");
  }
  return owner;
}

Owner Owner::current_or_none() noexcept {
  const Owner owner = detail::slot().owner;
  return owner ? owner : detail::fallback_owner();
}

bool Owner::is_open() const noexcept {
  return detail::is_open(*this);
}

OwnerKind Owner::kind() const noexcept {
  return record_->kind;
}

Domain* Owner::domain() const noexcept {
  return record_ == nullptr ? nullptr : record_->domain;
}

OwnerScope::OwnerScope(Owner owner, HeapStay stay) noexcept : stay_(stay) {
  detail::enter_owner(saved_, owner);
  ++detail::slot().scopes;
  detail::drop_stale_owner();
}

OwnerScope::~OwnerScope() {
  const Owner owner = detail::slot().owner;
  if (owner && owner.domain()->impl().skip_restore.load(std::memory_order_relaxed)) [[unlikely]] {
    return;  // only the tests that prove the tagging tests can fail set this
  }
  if (stay_ == HeapStay::with_scope && detail::slot().device_heaps != 0) [[unlikely]] {
    detail::park_device_heaps_within(saved_.scopes);
  }
  // A loader's heap always goes back to its pool: the loader may end before the thread does.
  detail::leave_owner(saved_,
                      stay_ == HeapStay::with_thread && owner && owner.kind() != OwnerKind::loader);
}

StreamScope::StreamScope(const Owner& owner, Stream stream) : saved_(detail::slot().owner) {
  constexpr const char* function = "StreamScope";
  EBB_REQUIRE(owner, function, "the owner is empty: pass a Runtime or an Iteration");
  EBB_REQUIRE(!saved_ || saved_.domain() == owner.domain(), function,
              "this thread works for another runtime");
  if (stream.device != cpu) {
    owner.domain()->device(stream.device, function).require(stream, function);
  }
  if (!saved_) {
    kept_ = owner.domain()->weak_from_this().lock();
  }
  set_ = (saved_ ? saved_ : owner).on(stream);
  detail::slot().owner = set_;
}

// Guards may have ended in another order: then somebody else's stream is there, and who restores
// this one later finds the domain.
StreamScope::~StreamScope() {
  const Owner& current = detail::slot().owner;
  if (current == set_) {
    detail::slot().owner = saved_;
  } else if (current && kept_ != nullptr) {
    detail::leave_behind(new (std::nothrow) std::shared_ptr<Domain>(std::move(kept_)));
  }
}

Phase::Phase(const char* label) noexcept : saved_(detail::slot().phase) {
  detail::slot().phase = label;
}

Phase::~Phase() {
  detail::slot().phase = saved_;
}

}  // namespace ebb::inline v0
