// SPDX-License-Identifier: Apache-2.0
// What a test does to its simulated devices. Any thread.
#include "sim/sim_backend.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/sim.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace ebb::inline v0 {

namespace {

// What fresh device memory reads as: one page in a file, mapped privately for each page, so that
// what nobody touches costs nothing.
int make_pattern(std::size_t page_bytes) {
  const int file = ::memfd_create("ebb/sim", MFD_CLOEXEC);
  const std::vector<unsigned char> page(page_bytes, 0xa5);
  std::size_t done = 0;
  while (file >= 0 && done < page.size()) {
    const ssize_t more = ::write(file, page.data() + done, page.size() - done);
    if (more <= 0) {
      const int error = errno;
      ::close(file);
      throw std::system_error(error, std::generic_category(), "[SimMachine] no memory for a page");
    }
    done += static_cast<std::size_t>(more);
  }
  if (file < 0) {
    throw std::system_error(errno, std::generic_category(), "[SimMachine] memfd_create");
  }
  return file;
}

std::shared_ptr<SimBackend> make_sim_backend(const SimOptions& options) {
  const std::size_t page = options.page.count();
  EBB_REQUIRE(options.devices >= 1, "SimMachine", "there is no device");
  EBB_REQUIRE(page % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) == 0 &&
                  (page & (page - 1)) == 0 && page != 0,
              "SimMachine", "a page of ", std::to_string(page),
              " bytes is no power of two, or less than the system's");
  return std::make_shared<SimBackend>(options, make_pattern(page));
}

SimQueuePtr queue_of(SimBackend& backend, Stream stream, const char* function) {
  const auto lock = backend.streams().reading();
  return backend.streams().at(stream, function);
}

}  // namespace

SimMachine::SimMachine(SimOptions options) : backend_(make_sim_backend(options)) {}

SimMachine::~SimMachine() {
  resume_all();
}

std::shared_ptr<Backend> SimMachine::backend() const {
  return backend_;
}

Device SimMachine::device(unsigned index) const {
  const Device device{DeviceKind::sim, index};
  backend_->require_device(device, "SimMachine::device");
  return device;
}

void* SimMachine::host_stream(Device device) {
  backend_->require_device(device, "SimMachine::host_stream");
  return backend_->streams().make_host_stream(device);
}

void SimMachine::hold(Stream stream) {
  queue_of(*backend_, stream, "SimMachine::hold")
      ->pace()
      .is_held.store(true, std::memory_order_relaxed);
}

void SimMachine::hold_all() {
  backend_->streams().hold_all(true);
}

void SimMachine::resume(Stream stream) {
  queue_of(*backend_, stream, "SimMachine::resume")
      ->pace()
      .is_held.store(false, std::memory_order_relaxed);
}

void SimMachine::resume_all() {
  backend_->streams().hold_all(false);
}

unsigned SimMachine::step(Stream stream, unsigned count, std::chrono::milliseconds deadline) {
  const SimQueuePtr known = queue_of(*backend_, stream, "SimMachine::step");
  SimQueue& queue = *known;
  EBB_REQUIRE(queue.pace().is_held.load(std::memory_order_relaxed), "SimMachine::step", "stream ",
              std::to_string(stream.id), " is not held");
  const std::uint64_t before = queue.completed();
  const std::uint64_t steps = std::min<std::uint64_t>(count, queue.pushed() - before);
  queue.pace().steps.store(steps, std::memory_order_relaxed);
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (queue.completed() < before + steps && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  queue.pace().steps.store(0, std::memory_order_relaxed);
  return static_cast<unsigned>(queue.completed() - before);
}

void SimMachine::set_delay(Stream stream, std::chrono::microseconds per_operation) {
  queue_of(*backend_, stream, "SimMachine::set_delay")
      ->pace()
      .delay_us.store(per_operation.count(), std::memory_order_relaxed);
}

void SimMachine::set_delay_all(std::chrono::microseconds per_operation) {
  backend_->streams().set_delay_all(per_operation);
}

void SimMachine::set_event_lag(Stream stream, std::chrono::microseconds lag) {
  queue_of(*backend_, stream, "SimMachine::set_event_lag")
      ->pace()
      .lag_us.store(lag.count(), std::memory_order_relaxed);
}

void SimMachine::set_event_lag_all(std::chrono::microseconds lag) {
  backend_->streams().set_lag_all(lag);
}

bool SimMachine::is_idle() const {
  return backend_->streams().is_idle(std::memory_order_relaxed);
}

bool SimMachine::drain(std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!backend_->streams().is_idle(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void SimMachine::fail(SimCall call, std::uint64_t after, SimFault fault) {
  EBB_REQUIRE(fault.code != 0, "SimMachine::fail", "code 0 is success");
  backend_->gate().fail(call, after, fault);
}

void SimMachine::lose(Device device, int code) {
  backend_->require_device(device, "SimMachine::lose");
  EBB_REQUIRE(code != 0, "SimMachine::lose", "code 0 is success");
  backend_->gate().lose(device, code);
}

void SimMachine::set_capacity(Device device, Bytes capacity) {
  backend_->pages_of(device, "SimMachine::set_capacity").set_capacity(capacity);
}

void SimMachine::set_pinned_capacity(Device device, Bytes capacity) {
  backend_->pinned_of(device, "SimMachine::set_pinned_capacity").set_capacity(capacity);
}

void SimMachine::shut_down() {
  backend_->gate().shut_down();
}

SimCounts SimMachine::counts() const {
  return backend_->counts();
}

SimMemory SimMachine::memory(Device device) const {
  return backend_->pages_of(device, "SimMachine::memory").memory();
}

SimMemory SimMachine::pinned_memory(Device device) const {
  return backend_->pinned_of(device, "SimMachine::pinned_memory").memory();
}

std::vector<std::string> SimMachine::violations() const {
  return backend_->gate().violations();
}

}  // namespace ebb::inline v0
