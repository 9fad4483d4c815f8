// SPDX-License-Identifier: Apache-2.0
// Host functions in the order of a stream. [rt.stream]
#include "host_calls.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/fork.h>
#include <ebb/gc/defer.h>
#include <ebb/gc/owner.h>

#include <exception>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

void HostCalls::queue(Stream stream, std::function<void()> function) {
  DeviceContext& context = domain_->use(stream, "launch_host");
  if (context.is_capturing()) {
    RepeatedCalls* const calls = collecting(stream.device);
    EBB_REQUIRE(calls != nullptr, "launch_host", "a graph is captured by others than a GraphStep");
    return context.call(RepeatedCalls::run, calls->add(std::move(function)), stream);
  }
  Owner owner = Owner::current_or_none();
  if (owner.domain() != domain_.get()) {
    owner = domain_->long_lived();
  }
  Calls fresh;
  fresh.push_back({this, std::move(function), Job::on_device(owner.on(Stream{})), {}});
  const auto call = fresh.begin();
  call->self = call;
  {
    const std::lock_guard lock(mutex_);
    EBB_REQUIRE(!ended_, "launch_host", "the runtime has been destroyed");
    waiting_.splice(waiting_.end(), fresh);
    ++pending_;
  }
  try {
    context.call(run, &*call, stream);
  } catch (...) {
    take(*call).clear();
    note_end();
    throw;
  }
}

void HostCalls::collect(Device device, RepeatedCalls* calls) {
  const std::lock_guard lock(mutex_);
  std::erase_if(collecting_, [device](const auto& it) { return it.first == device; });
  if (calls != nullptr) {
    collecting_.emplace_back(device, calls);
  }
}

RepeatedCalls* HostCalls::collecting(Device device) noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& it : collecting_) {
    if (it.first == device) {
      return it.second;
    }
  }
  return nullptr;
}

void HostCalls::run(void* opaque) noexcept {
  auto& call = *static_cast<Call*>(opaque);
  HostCalls& calls = *call.calls;
  Calls taken = calls.take(call);
  if (taken.empty()) {
    return;
  }
  {
    const DeferReleases later;
    const OwnerScope scope(call.job.owner(), HeapStay::with_scope);
    try {
      call.function();
    } catch (...) {
      call.job.fail(std::current_exception());
    }
    call.function = nullptr;
  }
  taken.clear();  // first, with what it holds of the domain: then the runtime may go
  calls.note_end();
}

HostCalls::Calls HostCalls::take(Call& call) noexcept {
  Calls taken;
  const std::lock_guard lock(mutex_);
  if (!ended_) {
    taken.splice(taken.begin(), waiting_, call.self);
  }
  return taken;
}

void HostCalls::note_end() noexcept {
  const std::lock_guard lock(mutex_);
  --pending_;
  changed_.notify_all();
}

void HostCalls::end(Milliseconds patience) noexcept {
  std::unique_lock lock(mutex_);
  if (domain_->has_lost_device()) {
    patience = Milliseconds::zero();  // which comes to nothing any more
  }
  if (!changed_.wait_for(lock, patience, [this] { return pending_ == 0; })) {
    // One that runs at this moment may end after all others have let go.
    leave_behind(new (std::nothrow) std::shared_ptr<HostCalls>(shared_from_this()));
  }
  ended_ = true;
}

}  // namespace ebb::inline v0::detail
