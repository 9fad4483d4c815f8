// SPDX-License-Identifier: Apache-2.0
#include "driver_calls.h"

#include <array>

namespace ebb::bench {
namespace {

using ebb::SimCall;

constexpr std::array backend_calls{
    SimCall::make_context,  SimCall::reserve,       SimCall::commit,
    SimCall::decommit,      SimCall::release,       SimCall::reserve_pinned,
    SimCall::pin,           SimCall::unpin,         SimCall::release_pinned,
    SimCall::make_stream,   SimCall::borrow_stream, SimCall::destroy_stream,
    SimCall::make_event,    SimCall::destroy_event, SimCall::begin_capture,
    SimCall::destroy_graph,
};

}  // namespace

DriverCalls DriverCalls::so_far(BenchDevice& device) {
  const ebb::Runtime& rt = device.runtime();
  DriverCalls calls;
  calls.source =
      rt.memory(device.device()).source_calls + rt.pinned_memory(device.device()).source_calls;
  calls.backend = calls.source;
  if (device.machine() != nullptr) {
    const ebb::SimCounts counts = device.machine()->counts();
    calls.backend = 0;
    for (const SimCall call : backend_calls) {
      calls.backend += counts.of(call);
    }
    calls.records = counts.of(SimCall::record);
    calls.queries = counts.of(SimCall::query);
    calls.waits = counts.of(SimCall::wait);
  }
  return calls;
}

void add_calls(const DriverCalls& before, BenchDevice& device, double iterations,
               const std::string& name, Figures& figures) {
  const DriverCalls now = DriverCalls::so_far(device);
  const auto add = [&](const std::string& figure, std::uint64_t DriverCalls::*field) {
    figures[figure + "_per_iteration/" + name] =
        static_cast<double>(now.*field - before.*field) / iterations;
  };
  add("backend_calls", &DriverCalls::backend);
  add("source_calls", &DriverCalls::source);
  if (device.machine() != nullptr) {
    add("events", &DriverCalls::records);
    add("queries", &DriverCalls::queries);
    add("waits", &DriverCalls::waits);
  }
}

}  // namespace ebb::bench
