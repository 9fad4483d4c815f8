// SPDX-License-Identifier: Apache-2.0
// What a storage and a guard cost: made and dropped on the loop's thread, dropped elsewhere, opened
// and closed with nothing alive. Rivals: a std::shared_ptr to bytes, over tuned glibc and mimalloc.
#include "handoff.h"
#include "harness.h"
#include "owned_bytes.h"
#include "rivals.h"

namespace {

using ebb::bench::Effort;
using ebb::bench::Figures;
using ebb::bench::keep_alive;
using ebb::bench::nanoseconds_per_call;

constexpr int calls = 200'000;

template <class Maker>
void measure_sizes(const Effort& effort, Figures& figures) {
  Maker maker;
  for (const std::size_t bytes : ebb::bench::owned_sizes) {
    const std::string size = ebb::bench::size_name(bytes);
    figures["make_drop_" + size] = nanoseconds_per_call(
        effort.calls(calls), [&](int) { keep_alive(ebb::bench::address_of(maker.make(bytes))); });
    if (bytes <= 1024) {
      figures["dropped_elsewhere_" + size] =
          ebb::bench::handoff_ns(maker, bytes, effort.calls(calls / 2));
    }
  }
}

Figures measure_ebb(const Effort& effort) {
  Figures figures;
  {
    ebb::Runtime rt;
    ebb::Loop loop(rt);
    figures["guard_open_close"] =
        nanoseconds_per_call(effort.calls(calls), [&](int) { ebb::Iteration it(loop); });
  }
  measure_sizes<ebb::bench::Storages>(effort, figures);
  return figures;
}

Figures measure_shared_ptr(const Effort& effort) {
  Figures figures;
  measure_sizes<ebb::bench::SharedBytes>(effort, figures);
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  return ebb::bench::run({.name = "storage",
                          .sides = {{.name = "ebb", .measure = measure_ebb},
                                    ebb::bench::rival("glibc-tuned", "all", measure_shared_ptr),
                                    ebb::bench::rival("mimalloc", "all", measure_shared_ptr)}},
                         argc, argv);
}
