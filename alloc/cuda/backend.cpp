// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: streams and events by number over the runtime library, which is linked
// statically and finds the driver at run time. Any thread: one lock.
#include "backend.h"

#include "cuda/cuda_source.h"
#include "cuda/driver.h"

#include <ebb/alloc/check.h>

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <unordered_map>

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
  Source& source(Device device) override;

  Stream make_stream(Device device) override;
  void destroy_stream(Stream stream) noexcept override;
  void synchronise(Stream stream) override;

  Event record(Stream stream) override;
  bool is_done(Event event) override;
  void wait(Stream stream, Event event) override;
  void synchronise(Event event) override;
  void release(Event event) noexcept override;

  void copy(void* to, const void* from, Bytes bytes, Stream stream) override;

 private:
  struct EventHandle {
    cudaEvent_t handle;
    Device device;
  };

  cudaStream_t handle_of(Stream stream, const char* function);
  EventHandle handle_of(Event event, const char* function);

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, cudaStream_t> streams_;
  std::unordered_map<std::uint64_t, EventHandle> events_;
  std::map<std::uint32_t, std::unique_ptr<CudaSource>> sources_;  // by device index
};

void require_cuda(Device device, const char* function) {
  EBB_REQUIRE(device.kind == DeviceKind::cuda, function, to_string(device), " is no CUDA device");
}

CudaBackend::~CudaBackend() {
  // After the driver has shut down these fail, and nothing is left to do.
  for (const auto& [id, event] : events_) {
    static_cast<void>(cudaEventDestroy(event.handle));
  }
  for (const auto& [id, stream] : streams_) {
    static_cast<void>(cudaStreamDestroy(stream));
  }
}

std::vector<DeviceInfo> CudaBackend::devices() {
  std::vector<DeviceInfo> list;
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
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
  if (result == cudaSuccess) {
    return count == 0 ? "no CUDA device found" : "";
  }
  static_cast<void>(cudaGetLastError());
  int driver = 0;
  const bool none = cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0;
  return std::string(none ? "driver not found: " : "driver does not work: ") +
         cudaGetErrorString(result);
}

Source& CudaBackend::source(Device device) {
  require_cuda(device, "Backend::source");
  const std::lock_guard lock(mutex_);
  std::unique_ptr<CudaSource>& source = sources_[device.index];
  if (source == nullptr) {
    source = std::make_unique<CudaSource>(device);
  }
  return *source;
}

Stream CudaBackend::make_stream(Device device) {
  require_cuda(device, "Backend::make_stream");
  const CurrentDevice current(device);
  const Stream stream{device, next_stream_id()};
  const std::lock_guard lock(mutex_);
  cudaStream_t& handle = streams_[stream.id];
  const cudaError_t result = cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);
  if (result != cudaSuccess) {
    streams_.erase(stream.id);
  }
  check(result, "cudaStreamCreateWithFlags", device);
  return stream;
}

void CudaBackend::destroy_stream(Stream stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto entry = streams_.find(stream.id);
  if (entry != streams_.end()) {
    static_cast<void>(cudaStreamDestroy(entry->second));
    streams_.erase(entry);
  }
}

void CudaBackend::synchronise(Stream stream) {
  cudaStream_t handle = handle_of(stream, "Backend::synchronise");
  const CurrentDevice current(stream.device);
  check(cudaStreamSynchronize(handle), "cudaStreamSynchronize", stream.device);
}

Event CudaBackend::record(Stream stream) {
  cudaStream_t on = handle_of(stream, "Backend::record");
  const CurrentDevice current(stream.device);
  cudaEvent_t handle = nullptr;
  check(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming), "cudaEventCreateWithFlags",
        stream.device);
  try {
    check(cudaEventRecord(handle, on), "cudaEventRecord", stream.device);
    const Event event{next_event_id()};
    const std::lock_guard lock(mutex_);
    events_.emplace(event.id, EventHandle{handle, stream.device});
    return event;
  } catch (...) {
    static_cast<void>(cudaEventDestroy(handle));
    throw;
  }
}

bool CudaBackend::is_done(Event event) {
  const EventHandle known = handle_of(event, "Backend::is_done");
  const cudaError_t result = cudaEventQuery(known.handle);
  if (result == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(result, "cudaEventQuery", known.device);
  return true;
}

void CudaBackend::wait(Stream stream, Event event) {
  cudaStream_t handle = handle_of(stream, "Backend::wait");
  const EventHandle known = handle_of(event, "Backend::wait");
  const CurrentDevice current(stream.device);
  check(cudaStreamWaitEvent(handle, known.handle, 0), "cudaStreamWaitEvent", stream.device);
}

void CudaBackend::synchronise(Event event) {
  const EventHandle known = handle_of(event, "Backend::synchronise");
  check(cudaEventSynchronize(known.handle), "cudaEventSynchronize", known.device);
}

void CudaBackend::release(Event event) noexcept {
  const std::lock_guard lock(mutex_);
  const auto entry = events_.find(event.id);
  if (entry != events_.end()) {
    static_cast<void>(cudaEventDestroy(entry->second.handle));
    events_.erase(entry);
  }
}

void CudaBackend::copy(void* to, const void* from, Bytes bytes, Stream stream) {
  cudaStream_t handle = handle_of(stream, "Backend::copy");
  const CurrentDevice current(stream.device);
  check(cudaMemcpyAsync(to, from, bytes.count(), cudaMemcpyDefault, handle), "cudaMemcpyAsync",
        stream.device);
}

cudaStream_t CudaBackend::handle_of(Stream stream, const char* function) {
  require_cuda(stream.device, function);
  if (stream.id == 0) {
    return nullptr;  // the default stream
  }
  const std::lock_guard lock(mutex_);
  const auto entry = streams_.find(stream.id);
  EBB_REQUIRE(entry != streams_.end(), function, "there is no stream ", std::to_string(stream.id));
  return entry->second;
}

CudaBackend::EventHandle CudaBackend::handle_of(Event event, const char* function) {
  const std::lock_guard lock(mutex_);
  const auto entry = events_.find(event.id);
  EBB_REQUIRE(entry != events_.end(), function, "there is no event ", std::to_string(event.id));
  return entry->second;
}

}  // namespace

std::unique_ptr<Backend> make_backend() {
  return std::make_unique<CudaBackend>();
}

const char* backend_name() noexcept {
  return "cuda";
}

}  // namespace ebb::inline v0
