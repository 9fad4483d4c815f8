// SPDX-License-Identifier: Apache-2.0
// The runtime: options checked, executors made on demand, and its end. [rt.global] [rt.exit]
#include <ebb/alloc/devices.h>
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

void require(bool condition, const std::string& text) {
  if (!condition) {
    throw std::invalid_argument("[Runtime] " + text);
  }
}

void check_devices(const std::vector<Device>& wanted) {
  const std::vector<DeviceInfo> present = devices();
  for (const Device device : wanted) {
    const bool found = std::any_of(present.begin(), present.end(),
                                   [device](const DeviceInfo& d) { return d.device == device; });
    require(found, "devices: there is no " + to_string(device) + " here");
  }
}

bool bypass_asked() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read only, and nothing of ebb's writes the environment
  const char* const value = std::getenv("EBB_BYPASS");
  return value != nullptr && std::string_view(value) == "1";
}

RuntimeOptions checked(RuntimeOptions options) {
  require(options.threads <= max_threads, "threads: " + std::to_string(options.threads) +
                                              " is more than " + std::to_string(max_threads));
  check_devices(options.devices);
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
          .source = options.source};
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

}  // namespace ebb::inline v0
