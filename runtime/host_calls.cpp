// SPDX-License-Identifier: Apache-2.0
// Host functions in the order of a stream. [rt.stream]
#include "host_calls.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/gc/defer.h>
#include <ebb/gc/job.h>

#include <exception>
#include <new>
#include <utility>

namespace ebb::inline v0::detail {

struct HostCalls::Call {
  HostCalls* calls;  // which waits for this, or is left behind
  std::function<void()> function;
  Job job;
};

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
  auto call =
      std::make_unique<Call>(Call{this, std::move(function), Job::on_device(owner.on(Stream{}))});
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
  }
  try {
    context.call(run, call.get(), stream);
  } catch (...) {
    note_end();
    throw;
  }
  call.release();  // NOLINT(bugprone-unused-return-value): run() owns it now
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
  auto* const call = static_cast<Call*>(opaque);
  if (!call->calls->begin()) {
    return;
  }
  std::unique_ptr<Call> owned(call);
  {
    const DeferReleases later;
    const OwnerScope scope(call->job.owner(), HeapStay::with_scope);
    try {
      call->function();
    } catch (...) {
      call->job.fail(std::current_exception());
    }
    call->function = nullptr;
  }
  HostCalls& calls = *call->calls;
  owned.reset();  // first, with what it holds of the domain: then the runtime may go
  calls.note_end();
}

bool HostCalls::begin() noexcept {
  const std::lock_guard lock(mutex_);
  return !ended_;
}

void HostCalls::note_end() noexcept {
  const std::lock_guard lock(mutex_);
  --pending_;
  changed_.notify_all();
}

void HostCalls::end(Milliseconds patience) noexcept {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [this] { return pending_ == 0; })) {
    // One that runs at this moment may end after all others have let go.
    static_cast<void>(new (std::nothrow) std::shared_ptr<HostCalls>(shared_from_this()));
  }
  ended_ = true;
}

}  // namespace ebb::inline v0::detail
