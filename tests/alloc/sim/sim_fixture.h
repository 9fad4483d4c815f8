// SPDX-License-Identifier: Apache-2.0
// A simulated machine with what most tests of it need: streams, pages and pinned pages at hand.
// Used by the tests of the simulated device. One thread.
#pragma once

#include "backend.h"

#include <ebb/alloc/sim.h>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

namespace ebb::test {

constexpr Bytes sim_page{std::size_t{64} * 1024};

class SimFixture {
 public:
  explicit SimFixture(unsigned devices = 1)
      : machine({devices, sim_page * 16, sim_page, sim_page * 8}), backend(machine.backend()) {}

  Stream stream(unsigned device = 0) {
    const Stream stream{machine.device(device), next_stream_id(++last_lane_ % Stream::lanes)};
    backend->make_stream(stream);
    return stream;
  }
  // Returns count ints of committed device memory, a page or more.
  int* ints(std::size_t count, unsigned device = 0) {
    return committed(backend->source(machine.device(device)), count);
  }
  int* pinned_ints(std::size_t count, unsigned device = 0) {
    return committed(backend->pinned(machine.device(device)), count);
  }
  Event recorded(Stream stream) {
    const Event event = backend->make_event(stream.device);
    backend->record(event, stream);
    return event;
  }
  // Whether the event is done within ten seconds.
  bool comes(Event event) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!backend->is_done(event)) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }
  void copy_ints(int* to, const int* from, std::size_t count, Stream stream) {
    backend->copy(to, from, Bytes::of<int>(count), stream);
  }
  void fill_ints(int* to, std::uint32_t value, std::size_t count, Stream stream) {
    backend->fill(to, {value, sizeof(int)}, count, stream);
  }

  SimMachine machine;
  std::shared_ptr<Backend> backend;

 private:
  static int* committed(Source& source, std::size_t count) {
    const Range range = source.reserve(Bytes::of<int>(count));
    REQUIRE(range);
    REQUIRE(source.commit(range));
    return reinterpret_cast<int*>(range.begin);
  }

  std::uint32_t last_lane_ = 0;
};

// Returns the code of the DeviceError that f throws, or 0 if it throws none.
template <class F>
int code_of(F f) {
  try {
    f();
  } catch (const DeviceError& error) {
    return error.code();
  }
  return 0;
}

}  // namespace ebb::test
