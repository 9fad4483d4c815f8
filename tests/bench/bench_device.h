// SPDX-License-Identifier: Apache-2.0
// The device that the cuda benchmark runs on: the first GPU, or a simulated one. One thread.
#pragma once

#include <ebb/alloc/pool.h>
#include <ebb/alloc/sim.h>
#include <ebb/runtime/device_stream.h>

#include <memory>
#include <string>

namespace ebb::bench {

// Which one: cuda or sim, as EBB_BENCH_DEVICE says, else cuda where there is one. Throws
// std::invalid_argument for any other word.
ebb::DeviceKind chosen_device();
// Returns its name, for people.
std::string describe_device();

// A runtime with the device and a stream of it.
class BenchDevice {
 public:
  // page is that of a simulated device.
  explicit BenchDevice(ebb::Bytes page = ebb::SimOptions().page);

  ebb::Runtime& runtime() { return rt_; }
  ebb::Device device() const { return stream_.device(); }
  ebb::Stream stream() const { return stream_; }
  // Null on a GPU.
  const ebb::SimMachine* machine() const { return machine_.get(); }
  // Returns a pool of the device's memory, besides the runtime's.
  ebb::Pool make_pool();
  // Waits until a stream's work is done. Throws std::runtime_error after a minute.
  void synchronise(ebb::Stream stream);

 private:
  ebb::RuntimeOptions options() const;

  const std::unique_ptr<ebb::SimMachine> machine_;
  ebb::Runtime rt_;
  ebb::DeviceStream stream_;
};

}  // namespace ebb::bench
