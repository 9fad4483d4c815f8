// SPDX-License-Identifier: Apache-2.0
// A domain with a simulated device, whose log the test reads. For the tests of gc.
#pragma once

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/device_work.h>
#include <ebb/alloc/sim.h>
#include <ebb/gc/close.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/manual_clock.h>
#include <ebb/gc/storage.h>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::test {

using namespace ebb::literals;

class DeviceFixture {
 public:
  explicit DeviceFixture(Bytes limit = 0_B)
      : context(std::make_shared<DeviceContext>(machine.device(), machine.backend())),
        domain(Domain::make({.log =
                                 [this](LogLevel, std::string_view text) {
                                   const std::lock_guard lock(mutex_);
                                   lines_.emplace_back(text);
                                 },
                             .clock = &clock,
                             .devices = {{context, limit, 0_B}}})),
        device(machine.device()),
        stream(context->make_stream()),
        other(context->make_stream()) {}
  DeviceFixture(const DeviceFixture&) = delete;
  DeviceFixture& operator=(const DeviceFixture&) = delete;
  DeviceFixture(DeviceFixture&&) = delete;
  DeviceFixture& operator=(DeviceFixture&&) = delete;
  ~DeviceFixture() {
    domain->shutdown();
    CHECK(machine.violations().empty());
  }

  Owner owner() const { return domain->long_lived().on(stream); }
  static Storage make(const Owner& owner, Bytes bytes = 64_KiB, Place at = Place::here()) {
    return Storage::make(owner, bytes, default_align_cuda, {at});
  }
  static Storage make_pinned(const Owner& owner, Bytes bytes = 64_KiB, Place at = Place::here()) {
    return Storage::make_pinned(owner, bytes, default_align_cpu, {at});
  }
  // Gives the device work with the storage.
  void work_with(const Storage& storage, Stream on) const {
    storage.used_on(on);
    if (storage.is_pinned()) {
      const Storage target = make(domain->long_lived().on(on), storage.bytes());
      context->copy(target.data(), storage.data(), storage.bytes(), on);
    } else {
      context->fill(storage.data(), {}, storage.bytes().count(), on);
    }
  }
  // Waits until the host has seen that all on a stream is done.
  bool see_done(Stream on) const {
    return context->wait_until(context->newest(on),
                               std::chrono::steady_clock::now() + std::chrono::seconds(10));
  }
  // How many lines of the log have part in them.
  std::size_t logged(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const std::string& line : lines_) {
      count += line.find(part) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  SimMachine machine;
  std::shared_ptr<DeviceContext> context;
  ManualClock clock;
  std::shared_ptr<Domain> domain;
  Device device;
  Stream stream;
  Stream other;

 private:
  mutable std::mutex mutex_;  // guards lines_
  std::vector<std::string> lines_;
};

}  // namespace ebb::test
