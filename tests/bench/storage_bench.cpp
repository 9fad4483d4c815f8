// SPDX-License-Identifier: Apache-2.0
// What a storage and a guard cost: made and dropped on the loop's thread, dropped elsewhere, opened
// and closed with nothing alive. Rivals: a std::shared_ptr to bytes, over tuned glibc and mimalloc.
#include "harness.h"

#include <ebb/gc/storage.h>
#include <ebb/runtime/loop.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <malloc.h>

namespace {

using ebb::bench::Figures;
using ebb::bench::keep_alive;
using ebb::bench::nanoseconds_per_call;

constexpr int calls = 200'000;
constexpr std::array<std::size_t, 4> sizes{64, 1024, 16 << 10, 1 << 20};

std::string size_name(std::size_t bytes) {
  return bytes < 1024        ? std::to_string(bytes) + "B"
         : bytes < (1 << 20) ? std::to_string(bytes >> 10) + "KiB"
                             : std::to_string(bytes >> 20) + "MiB";
}

// One thread makes batches of handles and another drops them; both ends are timed together.
template <class Handle, class Make>
double dropped_elsewhere(Make make) {
  constexpr int batch = 256;
  constexpr int rounds = 400;
  std::array<std::vector<Handle>, 2> boxes;
  std::atomic<int> filled{0};
  std::atomic<int> emptied{0};
  std::thread dropper([&] {
    for (int round = 0; round < rounds; ++round) {
      while (filled.load(std::memory_order_acquire) <= round) {
      }
      boxes[static_cast<std::size_t>(round % 2)].clear();
      emptied.store(round + 1, std::memory_order_release);
    }
  });
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round) {
    while (emptied.load(std::memory_order_acquire) < round - 1) {
    }
    std::vector<Handle>& box = boxes[static_cast<std::size_t>(round % 2)];
    box.reserve(batch);
    for (int i = 0; i < batch; ++i) {
      box.push_back(make());
    }
    filled.store(round + 1, std::memory_order_release);
  }
  dropper.join();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / (batch * rounds);
}

Figures measure_ebb() {
  ebb::Runtime rt;
  ebb::Loop loop(rt);
  Figures figures;
  figures["guard_open_close"] = nanoseconds_per_call(calls, [&](int) { ebb::Iteration it(loop); });
  ebb::Iteration it(loop);
  const auto make = [&](std::size_t bytes) {
    return ebb::Storage::make(it.owner(), ebb::Bytes{bytes}, ebb::default_align_cpu,
                              {ebb::Place::here()});
  };
  for (const std::size_t bytes : sizes) {
    figures["make_drop_" + size_name(bytes)] =
        nanoseconds_per_call(calls, [&](int) { keep_alive(make(bytes).data()); });
    if (bytes <= 1024) {
      figures["dropped_elsewhere_" + size_name(bytes)] =
          dropped_elsewhere<ebb::Storage>([&] { return make(bytes); });
    }
  }
  return figures;
}

Figures measure_shared_ptr() {
  Figures figures;
  const auto make = [](std::size_t bytes) {
    return std::shared_ptr<std::byte>(static_cast<std::byte*>(std::malloc(bytes)), std::free);
  };
  for (const std::size_t bytes : sizes) {
    figures["make_drop_" + size_name(bytes)] =
        nanoseconds_per_call(calls, [&](int) { keep_alive(make(bytes).get()); });
    if (bytes <= 1024) {
      figures["dropped_elsewhere_" + size_name(bytes)] =
          dropped_elsewhere<std::shared_ptr<std::byte>>([&] { return make(bytes); });
    }
  }
  return figures;
}

Figures measure_tuned_glibc() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  return measure_shared_ptr();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mimalloc = ebb::bench::first_existing(
      {"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2", "/usr/lib/aarch64-linux-gnu/libmimalloc.so.2",
       "/usr/lib/libmimalloc.so", "/usr/local/lib/libmimalloc.so"});
  return ebb::bench::run({.name = "storage",
                          .sides = {{.name = "ebb", .measure = measure_ebb},
                                    {.name = "glibc-tuned", .measure = measure_tuned_glibc},
                                    {.name = "mimalloc",
                                     .measure = measure_shared_ptr,
                                     .environment = {{"LD_PRELOAD", mimalloc}},
                                     .missing = mimalloc.empty() ? "install libmimalloc2.0" : ""}}},
                         argc, argv);
}
