// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: streams, events and graphs by number over the runtime library, which is linked
// statically and finds the driver at run time. Any thread.
#include "backend.h"

#include "cuda/copy.h"
#include "cuda/device_table.h"
#include "cuda/fill.h"
#include "cuda/number_table.h"

namespace ebb::inline v0 {

namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend() = default;
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;
  CudaBackend(CudaBackend&&) = delete;
  CudaBackend& operator=(CudaBackend&&) = delete;
  ~CudaBackend() override;

  std::vector<DeviceInfo> devices() override;
  std::string missing() override;
  Source& source(Device device) override { return devices_.get(device, "Backend::source").pages; }
  Source& pinned(Device device) override { return devices_.get(device, "Backend::pinned").pinned; }

  void make_stream(Stream stream) override;
  void borrow_stream(Stream stream, void* handle) override;
  void destroy_stream(Stream stream) noexcept override;
  void* handle_of(Stream stream) override {
    return devices_.get(stream.device, "Backend::handle_of")
        .streams.find(stream, "Backend::handle_of");
  }

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

 private:
  struct EventHandle {
    cudaEvent_t handle;
    const CudaDevice* device;
  };
  struct GraphHandle {
    cudaGraphExec_t handle;
    const CudaDevice* device;
  };

  // What every call on a stream begins with: the handle, and the device's context made current.
  struct OnStream {
    const CudaDevice& device;
    cudaStream_t handle;
    CurrentContext current;

    OnStream(CudaBackend& backend, Stream stream, const char* function)
        : device(backend.devices_.get(stream.device, function)),
          handle(device.streams.find(stream, function)),
          current(device.context) {}
  };

  static void destroy(cudaStream_t stream, const CudaDevice& device) noexcept;
  static void destroy(const EventHandle& event) noexcept;
  static void destroy(const GraphHandle& graph) noexcept;
  static bool update(const GraphHandle& graph, cudaGraph_t captured);
  GraphExec instantiate(cudaGraph_t captured, const CudaDevice& device);

  const detail::ForkMark mark_;
  DeviceTable devices_;
  NumberTable<EventHandle> events_{"event"};
  NumberTable<GraphHandle> graphs_{"graph"};
};

struct GraphDeleter {
  void operator()(cudaGraph_t graph) const noexcept {
    static_cast<void>(succeeded(cudaGraphDestroy(graph)));
  }
};
using CapturedGraph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, GraphDeleter>;

CudaBackend::~CudaBackend() {
  if (mark_.in_child()) {
    return;
  }
  while (const auto graph = graphs_.remove_last()) {
    destroy(*graph);
  }
  while (const auto event = events_.remove_last()) {
    destroy(*event);
  }
  devices_.for_each([](CudaDevice& device) {
    for (std::uint32_t lane = 1; lane < Stream::lanes; ++lane) {
      destroy(device.streams.remove_lane(lane), device);
    }
  });
}

std::vector<DeviceInfo> CudaBackend::devices() {
  std::vector<DeviceInfo> list;
  int count = 0;
  if (!succeeded(cudaGetDeviceCount(&count))) {
    return list;
  }
  for (int index = 0; index < count; ++index) {
    const Device device{DeviceKind::cuda, static_cast<std::uint32_t>(index)};
    cudaDeviceProp prop{};
    check(cudaGetDeviceProperties(&prop, index), "cudaGetDeviceProperties", device);
    list.push_back({device, prop.name, Bytes{prop.totalGlobalMem}});
  }
  return list;
}

std::string CudaBackend::missing() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (succeeded(result)) {
    return count == 0 ? "no CUDA device found" : "";
  }
  if (result == cudaErrorInsufficientDriver) {  // what the runtime says of none, too
    return "no NVIDIA driver is installed, or it is older than CUDA " +
           std::to_string(CUDART_VERSION / 1000) + " needs";
  }
  return std::string("driver does not work: ") + cudaGetErrorString(result);
}

void CudaBackend::make_stream(Stream stream) {
  CudaDevice& device = devices_.get(stream.device, "Backend::make_stream");
  const CurrentContext current(device.context);
  cudaStream_t handle = nullptr;
  check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
        stream.device);
  try {
    device.streams.add(stream, handle, false, "Backend::make_stream");
  } catch (...) {
    destroy(handle, device);
    throw;
  }
}

void CudaBackend::borrow_stream(Stream stream, void* handle) {
  CudaDevice& device = devices_.get(stream.device, "Backend::borrow_stream");
  device.streams.add(stream, static_cast<cudaStream_t>(handle), true, "Backend::borrow_stream");
}

void CudaBackend::destroy_stream(Stream stream) noexcept {
  if (CudaDevice* const device = devices_.find(stream.device)) {
    destroy(device->streams.remove(stream), *device);
  }
}

Event CudaBackend::make_event(Device device) {
  const CudaDevice& on = devices_.get(device, "Backend::make_event");
  const CurrentContext current(on.context);
  EventHandle made{nullptr, &on};
  check(cudaEventCreateWithFlags(&made.handle, cudaEventDisableTiming), "cudaEventCreateWithFlags",
        device);
  const Event event{next_event_id()};
  try {
    events_.add(event.id, made);
  } catch (...) {
    destroy(made);
    throw;
  }
  return event;
}

void CudaBackend::destroy_event(Event event) noexcept {
  if (const auto known = events_.remove(event.id)) {
    destroy(*known);
  }
}

void CudaBackend::record(Event event, Stream stream) {
  const OnStream on(*this, stream, "Backend::record");
  const EventHandle known = events_.find(event.id, "Backend::record");
  check(cudaEventRecord(known.handle, on.handle), "cudaEventRecord", stream.device);
}

bool CudaBackend::is_done(Event event) {
  const EventHandle known = events_.find(event.id, "Backend::is_done");
  const CurrentContext current(known.device->context);
  const cudaError_t result = cudaEventQuery(known.handle);
  if (result == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(result, "cudaEventQuery", known.device->context.device());
  return true;
}

void CudaBackend::wait(Stream stream, Event event) {
  const OnStream on(*this, stream, "Backend::wait");
  const EventHandle known = events_.find(event.id, "Backend::wait");
  check(cudaStreamWaitEvent(on.handle, known.handle, 0), "cudaStreamWaitEvent", stream.device);
}

void CudaBackend::copy(void* to, const void* from, Bytes bytes, Stream stream) {
  const OnStream on(*this, stream, "Backend::copy");
  queue_copy({devices_, stream, on.handle}, to, from, bytes.count());
}

void CudaBackend::copy_rows(void* to, const void* from, const CopyRows& rows, Stream stream) {
  const OnStream on(*this, stream, "Backend::copy_rows");
  queue_copy_rows({devices_, stream, on.handle}, to, from, rows);
}

void CudaBackend::fill(void* to, FillPattern pattern, std::size_t count, Stream stream) {
  const OnStream on(*this, stream, "Backend::fill");
  queue_fill(on.device.context, on.handle, to, pattern, count);
}

void CudaBackend::call(void (*function)(void* context), void* context, Stream stream) {
  const OnStream on(*this, stream, "Backend::call");
  check(cudaLaunchHostFunc(on.handle, function, context), "cudaLaunchHostFunc", stream.device);
}

// Thread-local: what other threads ask of the driver meanwhile neither fails nor spoils the
// capture.
void CudaBackend::begin_capture(Stream stream) {
  const OnStream on(*this, stream, "Backend::begin_capture");
  check(cudaStreamBeginCapture(on.handle, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture", stream.device);
}

GraphExec CudaBackend::end_capture(Stream stream, GraphExec into) {
  const OnStream on(*this, stream, "Backend::end_capture");
  cudaGraph_t ended = nullptr;
  const cudaError_t result = cudaStreamEndCapture(on.handle, &ended);
  const CapturedGraph captured(ended);
  check(result, "cudaStreamEndCapture", stream.device);
  if (into.id != 0 && update(graphs_.find(into.id, "Backend::end_capture"), ended)) {
    return into;
  }
  return instantiate(ended, on.device);
}

void CudaBackend::abandon_capture(Stream stream) noexcept {
  CudaDevice* const device = devices_.find(stream.device);
  if (device == nullptr) {
    return;
  }
  const CurrentContext current(device->context, std::nothrow);
  cudaGraph_t ended = nullptr;
  if (current.is_set()) {
    cudaStream_t handle = device->streams.peek(stream);
    static_cast<void>(handle != nullptr && succeeded(cudaStreamEndCapture(handle, &ended)));
    const CapturedGraph captured(ended);
  }
}

void CudaBackend::launch(GraphExec graph, Stream stream) {
  const OnStream on(*this, stream, "Backend::launch");
  const GraphHandle known = graphs_.find(graph.id, "Backend::launch");
  check(cudaGraphLaunch(known.handle, on.handle), "cudaGraphLaunch", stream.device);
}

void CudaBackend::destroy_graph(GraphExec graph) noexcept {
  if (const auto known = graphs_.remove(graph.id)) {
    destroy(*known);
  }
}

// A graph that runs is freed by the driver when it has ended, and so are streams and events.
void CudaBackend::destroy(cudaStream_t stream, const CudaDevice& device) noexcept {
  const CurrentContext current(device.context, std::nothrow);
  if (current.is_set() && stream != nullptr) {
    static_cast<void>(succeeded(cudaStreamDestroy(stream)));
  }
}

void CudaBackend::destroy(const EventHandle& event) noexcept {
  const CurrentContext current(event.device->context, std::nothrow);
  if (current.is_set()) {
    static_cast<void>(succeeded(cudaEventDestroy(event.handle)));
  }
}

void CudaBackend::destroy(const GraphHandle& graph) noexcept {
  const CurrentContext current(graph.device->context, std::nothrow);
  if (current.is_set()) {
    static_cast<void>(succeeded(cudaGraphExecDestroy(graph.handle)));
  }
}

// False when the work has another shape; graph is then what it was.
bool CudaBackend::update(const GraphHandle& graph, cudaGraph_t captured) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t result = cudaGraphExecUpdate(graph.handle, captured, &info);
  if (result == cudaErrorGraphExecUpdateFailure) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(result, "cudaGraphExecUpdate", graph.device->context.device());
  return true;
}

GraphExec CudaBackend::instantiate(cudaGraph_t captured, const CudaDevice& device) {
  GraphHandle made{nullptr, &device};
  check(cudaGraphInstantiate(&made.handle, captured, 0), "cudaGraphInstantiate",
        device.context.device());
  const GraphExec graph{next_event_id()};
  try {
    graphs_.add(graph.id, made);
  } catch (...) {
    destroy(made);
    throw;
  }
  return graph;
}

}  // namespace

std::unique_ptr<Backend> make_backend() {
  return std::make_unique<CudaBackend>();
}

const char* backend_name() noexcept {
  return "cuda";
}

}  // namespace ebb::inline v0
