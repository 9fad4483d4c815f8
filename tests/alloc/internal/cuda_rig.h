// SPDX-License-Identifier: Apache-2.0
// A CUDA backend with one stream and some pages, for tests. Includes the private backend header;
// main thread.
#pragma once

#include "backend.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace ebb::test {

// Pages of a source, given back at the end.
class Pages {
 public:
  Pages(Source& source, Bytes bytes) : source_(source), range_(source.reserve(bytes)) {
    REQUIRE(range_);
    REQUIRE(source.commit(range_));
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Pages(Pages&&) = delete;
  Pages& operator=(Pages&&) = delete;
  ~Pages() { source_.release(range_); }

  std::byte* begin() const { return range_.begin; }

 private:
  Source& source_;
  Range range_;
};

// Holds a stream up from when it is queued until open().
class Gate {
 public:
  Gate(Backend& backend, Stream stream) { backend.call(&Gate::pass, this, stream); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  Gate(Gate&&) = delete;
  Gate& operator=(Gate&&) = delete;
  ~Gate() {
    open();
    while (!is_passed_.load(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }

  void open() { is_open_.store(true, std::memory_order_release); }

 private:
  static void pass(void* gate) {
    auto* self = static_cast<Gate*>(gate);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!self->is_open_.load(std::memory_order_acquire) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    self->is_passed_.store(true, std::memory_order_release);
  }

  std::atomic<bool> is_open_{false};
  std::atomic<bool> is_passed_{false};
};

struct CudaRig {
  std::unique_ptr<Backend> backend = make_backend();
  Device device = backend->devices().front().device;
  Stream stream = new_stream(1);

  Stream new_stream(std::uint32_t lane) {
    const Stream made{device, next_stream_id(lane)};
    backend->make_stream(made);
    return made;
  }
  Event record(Stream on) {
    const Event event = backend->make_event(device);
    backend->record(event, on);
    return event;
  }
  // Waits until event is done, and fails where that takes too long.
  void finish(Event event) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!backend->is_done(event)) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::yield();
    }
  }
  void finish(Stream on) {
    const Event event = record(on);
    finish(event);
    backend->destroy_event(event);
  }
  // Returns count values from device memory.
  template <class T>
  std::vector<T> read(const void* from, std::size_t count) {
    std::vector<T> values(count);
    backend->copy(values.data(), from, Bytes::of<T>(count), stream);
    finish(stream);
    return values;
  }
};

}  // namespace ebb::test
