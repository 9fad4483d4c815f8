// SPDX-License-Identifier: Apache-2.0
// Jobs: what an iteration waits for besides storages. [gc.close]
#include "log_safely.h"
#include "owner_record.h"

#include <ebb/alloc/fork.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/job.h>

#include <string>

namespace ebb::inline v0 {

Job::Job(Owner owner) noexcept : owner_(owner) {
  if (!owner_) {
    return;
  }
  // Held while the owner is used: the last one of an iteration may end the runtime.
  domain_ = owner_.domain()->weak_from_this().lock();
  if (owner_.kind() != OwnerKind::runtime && !owner_.domain()->in_child()) {
    counted_ = owner_.record()->add_job(owner_.generation());
  }
}

Job& Job::operator=(Job&& other) noexcept {
  if (this != &other) {
    finish();
    owner_ = other.owner_;
    counted_ = std::exchange(other.counted_, false);
    domain_ = std::move(other.domain_);
  }
  return *this;
}

void Job::finish() noexcept {
  if (std::exchange(counted_, false) && !domain_->in_child()) {
    owner_.record()->end_job();
  }
}

void Job::require_own_process(const char* function) const {
  if (domain_ != nullptr && domain_->in_child()) {
    detail::throw_forked(function);
  }
}

void Job::fail(std::exception_ptr error) noexcept {
  if (domain_ != nullptr && domain_->in_child()) {
    return;
  }
  if (counted_ && owner_.is_open()) {
    owner_.record()->store_error(std::move(error));
  } else if (Domain* const domain = owner_.domain()) {
    detail::log_safely(*domain, LogLevel::error, [&error] {
      return "a task failed after its iteration had closed: " + detail::describe_error(error);
    });
  }
}

}  // namespace ebb::inline v0
