// SPDX-License-Identifier: Apache-2.0
// Jobs: what an iteration waits for besides storages. [gc.close]
#include "log_safely.h"
#include "owner_record.h"

#include <ebb/gc/domain.h>
#include <ebb/gc/job.h>

#include <string>

namespace ebb::inline v0 {

Job::Job(Owner owner) noexcept : owner_(owner) {
  if (owner_ && owner_.kind() != OwnerKind::runtime) {
    // Held until the count is down again: the last one of an iteration may end the runtime.
    domain_ = owner_.domain()->weak_from_this().lock();
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
  if (std::exchange(counted_, false)) {
    owner_.record()->end_job();
  }
  domain_.reset();
}

void Job::fail(std::exception_ptr error) noexcept {
  if (counted_ && owner_.is_open()) {
    owner_.record()->store_error(std::move(error));
  } else if (Domain* const domain = owner_.domain()) {
    detail::log_safely(*domain, LogLevel::error, [&error] {
      return "a task failed after its iteration had closed: " + detail::describe_error(error);
    });
  }
}

}  // namespace ebb::inline v0
