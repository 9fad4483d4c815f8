// SPDX-License-Identifier: Apache-2.0
#include "bench_device.h"

#include <ebb/alloc/device_context.h>
#include <ebb/alloc/devices.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace ebb::bench {
namespace {

constexpr ebb::Bytes sim_memory{std::size_t{4} << 30};

std::unique_ptr<ebb::SimMachine> make_machine(ebb::Bytes page) {
  return chosen_device() == ebb::DeviceKind::sim
             ? std::make_unique<ebb::SimMachine>(
                   ebb::SimOptions{.memory = sim_memory, .page = page})
             : nullptr;
}

}  // namespace

ebb::DeviceKind chosen_device() {
  const char* const set = std::getenv("EBB_BENCH_DEVICE");
  if (set == nullptr) {
    return ebb::no_cuda_reason().empty() ? ebb::DeviceKind::cuda : ebb::DeviceKind::sim;
  }
  const std::string_view name = set;
  if (name != "cuda" && name != "sim") {
    throw std::invalid_argument("there is no device " + std::string(name) +
                                " to run on: only cuda and sim");
  }
  return name == "cuda" ? ebb::DeviceKind::cuda : ebb::DeviceKind::sim;
}

std::string describe_device() {
  if (chosen_device() == ebb::DeviceKind::sim) {
    return "simulated";
  }
  for (const ebb::DeviceInfo& info : ebb::devices()) {
    if (info.device.kind == ebb::DeviceKind::cuda) {
      return info.name;
    }
  }
  throw std::invalid_argument("there is no CUDA device: " + ebb::no_cuda_reason());
}

BenchDevice::BenchDevice(ebb::Bytes page)
    : machine_(make_machine(page)), rt_(options()), stream_(rt_, {chosen_device(), 0}) {}

// What outlives an iteration of a trace is as recorded, and needs no report.
ebb::RuntimeOptions BenchDevice::options() const {
  ebb::RuntimeOptions options;
  options.devices = {ebb::cpu, {chosen_device(), 0}};
  options.log = [](ebb::LogLevel, std::string_view) {};
  if (machine_ != nullptr) {
    options.backend = machine_->backend();
  }
  return options;
}

ebb::Pool BenchDevice::make_pool() {
  ebb::DeviceContext& context = rt_.domain()->device(device(), "BenchDevice::make_pool");
  ebb::PoolOptions options;
  options.name = "bench";
  options.keep_alive = rt_.domain();
  options.order = &context;
  return {context.pages(), options};
}

void BenchDevice::synchronise(ebb::Stream stream) {
  if (!ebb::synchronise(rt_, stream, std::chrono::minutes(1))) {
    throw std::runtime_error("[BenchDevice::synchronise] the device takes more than a minute");
  }
}

}  // namespace ebb::bench
