// SPDX-License-Identifier: Apache-2.0
// The simulated driver. Made by SimMachine, used by runtimes as any backend. Any thread.
// [alloc.sim]
#pragma once

#include "backend.h"
#include "sim/call_gate.h"
#include "sim/capture.h"
#include "sim/events.h"
#include "sim/source.h"
#include "sim/streams.h"

#include <ebb/alloc/sim.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// The lock of streams is taken before that of events, that before an event's own, that before the
// captures'.
class SimBackend final : public Backend {
 public:
  // pattern: see SimRange::Use. Closed in the end.
  SimBackend(const SimOptions& options, int pattern);
  SimBackend(const SimBackend&) = delete;
  SimBackend& operator=(const SimBackend&) = delete;
  SimBackend(SimBackend&&) = delete;
  SimBackend& operator=(SimBackend&&) = delete;
  ~SimBackend() override;

  std::vector<DeviceInfo> devices() override;
  std::string missing() override;
  Source& source(Device device) override;
  Source& pinned(Device device) override;

  void make_stream(Stream stream) override;
  void borrow_stream(Stream stream, void* handle) override;
  void destroy_stream(Stream stream) noexcept override;
  void* handle_of(Stream stream) override;

  Event make_event(Device device) override;
  void destroy_event(Event event) noexcept override;
  void record(Event event, Stream stream) override;
  bool is_done(Event event) override;
  void wait(Stream stream, Event event) override;

  void copy(void* to, const void* from, Bytes bytes, Stream stream) override;
  void copy_rows(void* to, const void* from, const CopyRows& rows, Stream stream) override;
  void fill(void* to, FillPattern pattern, std::size_t count, Stream stream) override;
  void call(void (*function)(void* context), void* context, Stream stream) override;

  void begin_capture(Stream stream) override;
  GraphExec end_capture(Stream stream, GraphExec into) override;
  void abandon_capture(Stream stream) noexcept override;
  void launch(GraphExec graph, Stream stream) override;
  void destroy_graph(GraphExec graph) noexcept override;

  // ---- for the machine ----
  CallGate& gate() noexcept { return *gate_; }
  SimStreams& streams() noexcept { return streams_; }
  // Neither makes a context.
  SimSource& pages_of(Device device, const char* function);
  SimSource& pinned_of(Device device, const char* function);
  void require_device(Device device, const char* function) const;
  SimCounts counts() const;

 private:
  struct PerDevice {
    std::unique_ptr<SimSource> pages;
    std::unique_ptr<SimSource> pinned;
    std::atomic<bool> has_context{false};  // written under context_mutex_
  };

  void enter(SimCall call, Device device, const char* function);
  void make_context(Device device);
  void queue_copy(SimCall call, SimCopy copy, Stream stream);
  void submit(SimCall call, SimWork work, Stream stream);

  const SimOptions options_;
  const int pattern_;
  const std::shared_ptr<CallGate> gate_;
  SimAddresses addresses_;
  SimCaptures captures_;
  std::vector<PerDevice> devices_;
  std::mutex context_mutex_;
  SimTable<SimEvent> events_{"event"};
  SimTable<SimGraph> graphs_{"graph"};
  SimStreams streams_;  // the last: its end stops what uses the rest
};

}  // namespace ebb::inline v0
