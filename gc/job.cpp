// SPDX-License-Identifier: Apache-2.0
// Jobs: what an iteration waits for besides storages. [gc.close]
#include "log_safely.h"
#include "owner_record.h"

#include <ebb/alloc/fork.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/job.h>

#include <memory>
#include <string>

namespace ebb::inline v0 {
namespace {

std::atomic<std::int64_t>& count_of(OwnerRecord& record, bool device_work) noexcept {
  return device_work ? record.device_work : record.jobs;
}

}  // namespace

Job::Job(Owner owner, Counts counts) noexcept : owner_(owner) {
  if (!owner_) {
    return;
  }
  // Held while the owner is used: the last one of an iteration may end the runtime.
  domain_ = owner_.domain()->weak_from_this().lock();
  if (owner_.kind() == OwnerKind::runtime || owner_.domain()->in_child()) {
    return;
  }
  OwnerRecord& record = *owner_.record();
  if (record.add_pending(count_of(record, counts == Counts::device_work), owner_.generation())) {
    counts_ = counts;
  }
}

Job::Job(Owner owner) noexcept : Job(owner, Counts::task) {}

Job::Job(Owner owner, Place at) : Job(owner) {
  if (counts_ != Counts::nothing) {
    note_ = new detail::JobNote{at};
    owner_.record()->add_note(*note_);
  }
}

Job Job::on_device(Owner owner) noexcept {
  return {owner, Counts::device_work};
}

Job& Job::operator=(Job&& other) noexcept {
  if (this != &other) {
    finish();
    owner_ = other.owner_;
    counts_ = std::exchange(other.counts_, Counts::nothing);
    domain_ = std::move(other.domain_);
    note_ = std::exchange(other.note_, nullptr);
  }
  return *this;
}

void Job::finish() noexcept {
  const bool in_child = domain_ != nullptr && domain_->in_child();
  if (note_ != nullptr && !in_child) {
    const std::unique_ptr<detail::JobNote> note(std::exchange(note_, nullptr));
    owner_.record()->remove_note(*note);
  }
  const Counts counts = std::exchange(counts_, Counts::nothing);
  if (counts != Counts::nothing && !in_child) {
    OwnerRecord& record = *owner_.record();
    record.end_pending(count_of(record, counts == Counts::device_work));
  }
}

void Job::require_own_process(const char* function) const {
  if (domain_ != nullptr && domain_->in_child()) {
    detail::throw_forked(function);
  }
}

void Job::fail(const std::exception_ptr& error) noexcept {
  if (domain_ != nullptr && domain_->in_child()) {
    return;
  }
  if (counts_ != Counts::nothing && owner_.record()->store_error(owner_.generation(), error)) {
    return;
  }
  if (counts_ == Counts::device_work) {
    owner_.record()->store_late_error(error);
  }
  if (Domain* const domain = owner_.domain()) {
    detail::log_safely(*domain, LogLevel::error, [&error] {
      return "a task failed after its iteration had closed: " + detail::describe_error(error);
    });
  }
}

}  // namespace ebb::inline v0
