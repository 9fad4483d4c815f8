// SPDX-License-Identifier: Apache-2.0
// The lifetimes of one runtime: owner records, pools, log, shutdown.
#include "device_heaps.h"
#include "domain_impl.h"
#include "log_safely.h"
#include "slot.h"
#include "storage_cell.h"
#include "stragglers.h"

#include <ebb/gc/domain.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>

namespace ebb::inline v0 {
namespace {

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> serial{0};  // relaxed: only uniqueness matters
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

const char* level_word(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::info:
      return "";
    case LogLevel::warning:
      return "warning: ";
    case LogLevel::error:
      return "error: ";
  }
  return "";
}

}  // namespace

std::uint64_t next_pool_number() noexcept {
  static std::atomic<std::uint64_t> number{0};  // relaxed: only uniqueness matters
  return number.fetch_add(1, std::memory_order_relaxed) + 1;
}

Domain::Impl::Impl(Domain& its_domain, DomainOptions its_options)
    : domain(its_domain),
      options(std::move(its_options)),
      serial(next_serial()),
      pool_number(next_pool_number()) {
  for (const DomainDevice& device : options.devices) {
    devices.emplace_back(device, devices.size());
  }
}

void Domain::Impl::throw_unusable(const char* function) const {
  mark.require_own_process(function);
  throw std::invalid_argument("[" + std::string(function) + "] the runtime has been destroyed");
}

OwnerRecord& Domain::Impl::make_record(OwnerKind kind, PoolHandle its_pool, std::uint64_t number) {
  const std::lock_guard lock(records_mutex_);
  OwnerRecord& record = records_.emplace_back(domain, kind, std::move(its_pool), number);
  if (!devices.empty() && kind == OwnerKind::iteration) {
    record.devices = std::make_unique<detail::DeviceUse>(devices);
  }
  idle_.reserve(records_.size());  // so that give_record never allocates
  resting_.reserve(records_.size());
  return record;
}

OwnerRecord& Domain::Impl::take_record() {
  OwnerRecord* found = nullptr;
  {
    const std::lock_guard lock(records_mutex_);
    if (!idle_.empty()) {
      found = idle_.back();
      idle_.pop_back();
    } else {
      const auto rested = std::find_if(resting_.begin(), resting_.end(),
                                       [](const OwnerRecord* r) { return r->is_idle(); });
      if (rested != resting_.end()) {
        found = *rested;
        resting_.erase(rested);
      }
    }
  }
  if (found != nullptr) {
    static_cast<void>(found->take_error());  // of what a device did after its loop had ended
    return *found;
  }
  return make_record(OwnerKind::iteration, long_lived->pool, pool_number);
}

void Domain::Impl::give_record(OwnerRecord& record) noexcept {
  record.make_remote();  // whoever takes it next may be another thread
  const std::lock_guard lock(records_mutex_);
  (record.is_idle() ? idle_ : resting_).push_back(&record);
}

void Domain::Impl::stay_for_open_guards() noexcept {
  const std::lock_guard lock(records_mutex_);
  for (OwnerRecord& record : records_) {
    const bool open = record.generation.load(std::memory_order_acquire) % 2 == 1;
    if (record.kind == OwnerKind::iteration && open) {
      record.keep_domain_for_opener();
    }
  }
}

Domain::Domain(DomainOptions options) : impl_(std::make_unique<Impl>(*this, std::move(options))) {}

Domain::~Domain() = default;

std::shared_ptr<Domain> Domain::make(DomainOptions options) {
  detail::install_slot_hook();
  std::shared_ptr<Domain> domain(new Domain(std::move(options)));
  Impl& impl = *domain->impl_;
  Source& source = impl.options.source != nullptr ? *impl.options.source : system_source();
  impl.pool.emplace(source, PoolOptions{.name = "runtime",
                                        .limit = impl.options.memory_limit,
                                        .bypass = impl.options.bypass,
                                        .construct_cell = detail::StorageCell::construct,
                                        .keep_alive = domain});
  impl.long_lived = &impl.make_record(OwnerKind::runtime, PoolHandle(*impl.pool), impl.pool_number);
  impl.long_lived_generation = impl.long_lived->open(no_thread, 0);
  return domain;
}

bool Domain::in_child() const noexcept {
  return impl_->in_child();
}

bool Domain::has_ended() const noexcept {
  return impl_->ended.load(std::memory_order_acquire);
}

void Domain::require_usable(const char* function) const {
  impl_->require_usable(function);
}

std::uint64_t Domain::serial() const noexcept {
  return impl_->serial;
}

Owner Domain::long_lived() const noexcept {
  return {*impl_->long_lived, impl_->long_lived_generation, Stream{}};
}

Clock& Domain::clock() const noexcept {
  return impl_->options.clock != nullptr ? *impl_->options.clock : steady_clock();
}

void Domain::log(LogLevel level, std::string_view text) const noexcept {
  if (impl_->in_child()) {
    return;  // the hook may want a lock that a thread of the parent held
  }
  if (impl_->options.log) {
    try {
      impl_->options.log(level, text);
    } catch (...) {
      std::fputs("[ebb] the log hook threw; its message is lost\n", stderr);
    }
    return;
  }
  std::fprintf(stderr, "[ebb] %s%.*s\n", level_word(level), static_cast<int>(text.size()),
               text.data());
}

Pool Domain::make_pool(std::string name, Bytes limit, std::chrono::milliseconds limit_wait) const {
  impl_->require_usable("Domain::make_pool");
  Source& source = impl_->options.source != nullptr ? *impl_->options.source : system_source();
  return Pool(source, PoolOptions{.name = std::move(name),
                                  .limit = limit,
                                  .bypass = impl_->options.bypass,
                                  .construct_cell = detail::StorageCell::construct,
                                  .keep_alive = impl_->domain.shared_from_this(),
                                  .limit_wait = limit_wait});
}

Owner Domain::open_loader_owner(Pool& pool) {
  impl_->require_usable("Domain::open_loader_owner");
  OwnerRecord& record = impl_->make_record(OwnerKind::loader, PoolHandle(pool), next_pool_number());
  const std::uint64_t generation = record.open(no_thread, 0);
  return {record, generation, Stream{}};
}

void Domain::close_loader_owner(Owner owner) noexcept {
  if (impl_->in_child()) {
    return;
  }
  owner.record()->end_generation();
  detail::park_heap_of_pool(owner.record()->pool_number);
}

DomainStats Domain::stats() const noexcept {
  const auto count = [](std::int64_t n) { return static_cast<std::uint64_t>(n > 0 ? n : 0); };
  DomainStats stats;
  if (impl_->in_child()) {
    return stats;
  }
  stats.storages_live = count(impl_->long_lived->live());
  stats.storages_unowned = impl_->storages_unowned.load(std::memory_order_relaxed);
  stats.storages_late = impl_->storages_late.load(std::memory_order_relaxed);
  stats.adopted_live = count(impl_->adopted_live.load(std::memory_order_relaxed));
  stats.adopted_bytes = Bytes{count(impl_->adopted_bytes.load(std::memory_order_relaxed))};
  stats.undeclared_uses = impl_->undeclared.count();
  return stats;
}

MemoryStats Domain::memory() const noexcept {
  return impl_->long_lived->pool.stats();
}

bool Domain::run_deferred() noexcept {
  return !in_child() && impl_->deferred.run(nullptr);
}

Bytes Domain::trim() noexcept {
  run_deferred();
  Bytes given = impl_->long_lived->pool.trim();
  for (const detail::DeviceMemory& device : impl_->devices) {
    given += device.memory.trim() + device.pinned.trim();
  }
  return given;
}

std::string Domain::Impl::describe_outliving() const {
  const std::vector<StragglerPlace> places = detail::find_stragglers(*long_lived);
  std::string text =
      "the runtime ends while " + detail::describe_total(places) + " are alive; they stay valid";
  detail::append_places(text, places);
  return text;
}

void Domain::shutdown() noexcept {
  if (impl_->in_child() || impl_->ended.load(std::memory_order_relaxed)) {
    return;
  }
  impl_->long_lived->end_generation();
  impl_->deferred.close();
  detail::park_heap_of_pool(impl_->pool_number);
  for (const detail::DeviceMemory& device : impl_->devices) {
    detail::park_device_heap_of_pool(device.memory.number);
    detail::park_device_heap_of_pool(device.pinned.number);
  }
  if (impl_->long_lived->live() > 0) {
    detail::log_safely(*this, LogLevel::info, [this] { return impl_->describe_outliving(); });
  }
  impl_->ended.store(true, std::memory_order_release);
  impl_->stay_for_open_guards();
  impl_->pool.reset();
  for (detail::DeviceMemory& device : impl_->devices) {
    device.memory.close();
    device.pinned.close();
  }
}

}  // namespace ebb::inline v0
