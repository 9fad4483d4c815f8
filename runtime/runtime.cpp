// SPDX-License-Identifier: Apache-2.0
// The runtime: options checked, executors made on demand, and its end. [rt.global] [rt.exit]
#include "host_calls.h"

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/open_devices.h>
#include <ebb/runtime/runtime.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace ebb::inline v0 {
namespace {

constexpr unsigned max_threads = 1024;
// How long the end of a runtime waits for functions that devices have not come to.
constexpr Milliseconds host_calls_patience{5'000};

void require(bool condition, const std::string& text) {
  if (!condition) {
    throw std::invalid_argument("[Runtime] " + text);
  }
}

// The limit of what is reserved on a device; 0: none.
Bytes device_limit(const RuntimeOptions& options, const DeviceInfo& info) {
  Bytes limit = options.device_limit;
  if (options.device_fraction < 1) {
    require(info.memory != Bytes{}, "device_fraction: the system does not tell how much memory " +
                                        to_string(info.device) + " has: use device_limit");
    const double part = options.device_fraction * static_cast<double>(info.memory.count());
    const Bytes bytes{std::max<std::size_t>(static_cast<std::size_t>(part), 1)};
    limit = limit == Bytes{} ? bytes : std::min(limit, bytes);
  }
  return limit;
}

std::vector<DomainDevice> domain_devices(const RuntimeOptions& options) {
  std::vector<DomainDevice> devices;
  for (OpenDevice& it : open_devices("Runtime", options.devices, options.backend)) {
    devices.push_back({std::move(it.context), device_limit(options, it.info), options.pinned_limit,
                       it.info.memory});
  }
  return devices;
}

bool bypass_asked() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read only, and nothing of ebb's writes the environment
  const char* const value = std::getenv("EBB_BYPASS");
  return value != nullptr && std::string_view(value) == "1";
}

RuntimeOptions checked(RuntimeOptions options) {
  require(options.threads <= max_threads, "threads: " + std::to_string(options.threads) +
                                              " is more than " + std::to_string(max_threads));
  require(options.device_fraction > 0 && options.device_fraction <= 1,
          "device_fraction: must be above 0 and at most 1");
  require(options.device_deadline >= Milliseconds::zero(), "device_deadline: must not be negative");
  if (options.threads == 0) {
    options.threads = std::max(1u, std::thread::hardware_concurrency());
  }
  options.bypass = options.bypass || bypass_asked();
  return options;
}

DomainOptions domain_options(const RuntimeOptions& options) {
  return {.log = options.log,
          .clock = options.clock,
          .memory_limit = options.memory_limit,
          .bypass = options.bypass,
          .source = options.source,
          .devices = domain_devices(options),
          .on_out_of_memory = options.on_out_of_memory,
          .device_deadline = options.device_deadline};
}

}  // namespace

class Runtime::Impl {
 public:
  explicit Impl(RuntimeOptions its_options)
      : options(checked(std::move(its_options))), domain(Domain::make(domain_options(options))) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() {
    ended->store(true, std::memory_order_relaxed);
    load_executors.clear();  // first: loader tasks may use the step executor
    step_executor.reset();
    host_calls->end(std::min(options.device_deadline, host_calls_patience));
    domain->shutdown();
  }

  std::unique_ptr<Executor> make_executor(std::string name, unsigned threads) const {
    if (options.executor == ExecutorKind::jthread || detail::is_forked_child()) {
      return make_jthread_executor(std::move(name), threads);
    }
    return make_tbb_executor(
        std::move(name), threads,
        [this](LogLevel level, std::string_view text) { domain->log(level, text); });
  }

  const RuntimeOptions options;
  const std::shared_ptr<Domain> domain;
  const std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<detail::HostCalls> host_calls = std::make_shared<detail::HostCalls>(domain);
  // Guards the executors while they are made. A waiting executor is used without it.
  std::mutex mutex;
  std::unique_ptr<Executor> step_executor;
  std::vector<std::unique_ptr<Executor>> load_executors;
};

Runtime::Runtime(RuntimeOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Runtime::~Runtime() = default;

Owner Runtime::owner() const noexcept {
  const Owner current = Owner::current_or_none();
  return current && current.domain() == impl_->domain.get() ? current : impl_->domain->long_lived();
}

Executor& Runtime::step_executor() {
  impl_.mark().require_own_process("Runtime::step_executor");
  if (impl_->options.step_executor != nullptr) {
    return *impl_->options.step_executor;
  }
  const std::lock_guard lock(impl_->mutex);
  if (impl_->step_executor == nullptr) {
    impl_->step_executor = impl_->make_executor("ebb/step", impl_->options.threads);
  }
  return *impl_->step_executor;
}

Executor& Runtime::load_executor(unsigned workers) {
  impl_.mark().require_own_process("Runtime::load_executor");
  if (impl_->options.load_executor != nullptr) {
    return *impl_->options.load_executor;
  }
  const std::lock_guard lock(impl_->mutex);
  for (const auto& executor : impl_->load_executors) {
    if (executor->concurrency() > workers) {
      return *executor;
    }
  }
  impl_->load_executors.push_back(impl_->make_executor("ebb/load", workers + 1));
  return *impl_->load_executors.back();
}

const RuntimeOptions& Runtime::options() const noexcept {
  return impl_->options;
}

std::shared_ptr<const std::atomic<bool>> Runtime::ending() const noexcept {
  return impl_->ended;
}

const std::shared_ptr<Domain>& Runtime::domain() const noexcept {
  return impl_->domain;
}

detail::HostCalls& detail::host_calls(Runtime& rt) noexcept {
  return *rt.impl_->host_calls;
}

}  // namespace ebb::inline v0
