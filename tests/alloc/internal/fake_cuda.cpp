// SPDX-License-Identifier: Apache-2.0
// The functions of fake_cuda.h. Their names and types are CUDA's. One thread.
#include "fake_cuda.h"

#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace ebb::test {

FakeCuda fake;

namespace {

constexpr std::size_t page_bytes = FakeCuda::page_bytes;

// What every call begins with: counts it, and returns how it is to fail.
int begin(const char* name) {
  ++fake.calls[name];
  if (fake.is_gone) {
    return cudaErrorCudartUnloading;
  }
  const auto failure = fake.failures.find(name);
  if (failure == fake.failures.end() || failure->second.first-- > 0) {
    return 0;
  }
  const int code = failure->second.second;
  fake.failures.erase(failure);
  return code;
}
CUresult driver_call(const char* name) {
  return static_cast<CUresult>(begin(name));
}
cudaError_t ended(int result) {
  fake.last_error = result != 0 ? result : fake.last_error;
  return static_cast<cudaError_t>(result);
}
cudaError_t runtime_call(const char* name) {
  return ended(begin(name));
}
// A call of the runtime that would make a context where none is current.
cudaError_t context_call(const char* name, int device) {
  fake.wrong_contexts += fake.current != device ? 1 : 0;
  return runtime_call(name);
}

FakeStream* fake_of(cudaStream_t stream) {
  return reinterpret_cast<FakeStream*>(stream);
}
int device_of(cudaStream_t stream) {
  return stream == nullptr ? fake.current : fake_of(stream)->device;
}

// Does work, or keeps it for the graph.
cudaError_t queue(const char* name, cudaStream_t stream, std::function<void()> work) {
  const cudaError_t result = context_call(name, device_of(stream));
  if (result == cudaSuccess && stream != nullptr && fake_of(stream)->capture != nullptr) {
    fake_of(stream)->capture->push_back(std::move(work));
  } else if (result == cudaSuccess) {
    work();
  }
  return result;
}

char* page_of(const void* address) {
  const auto integer = reinterpret_cast<std::uintptr_t>(address);
  return reinterpret_cast<char*>(integer - integer % page_bytes);
}
char* at(CUdeviceptr address) {
  return reinterpret_cast<char*>(static_cast<std::uintptr_t>(address));
}

// As the driver: a range lies within one registration, or within none.
bool may_copy(const void* address, std::size_t bytes) {
  char* const first = page_of(address);
  char* const last = page_of(static_cast<const char*>(address) + bytes - 1);
  return first == last || (fake.registered.count(first) == 0 && fake.registered.count(last) == 0);
}

template <class T>
CUresult fill(const char* name, CUdeviceptr to, T value, std::size_t count, CUstream stream) {
  return static_cast<CUresult>(queue(name, stream, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(at(to) + i * sizeof value, &value, sizeof value);
    }
  }));
}

CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < FakeCuda::devices ? driver_call("cuDeviceGet") : CUDA_ERROR_INVALID_DEVICE;
}
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<std::intptr_t>(device + 1));
}
CUresult retain(CUcontext* context, CUdevice device) {
  fake.contexts.insert(device);
  *context = context_of(device);
  return driver_call("cuDevicePrimaryCtxRetain");
}
CUresult get_current(CUcontext* context) {
  *context = context_of(fake.current);
  return driver_call("cuCtxGetCurrent");
}
CUresult set_current(CUcontext context) {
  fake.current = static_cast<int>(reinterpret_cast<std::intptr_t>(context)) - 1;
  return driver_call("cuCtxSetCurrent");
}

CUresult reserve(CUdeviceptr* to, std::size_t bytes, std::size_t /*alignment*/,
                 CUdeviceptr /*hint*/, unsigned long long /*flags*/) {
  void* const all = ::mmap(nullptr, bytes + page_bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* const first = page_of(static_cast<char*>(all) + page_bytes - 1);
  fake.reserved[first] = bytes;  // what lies before it stays mapped: the test ends soon
  *to = reinterpret_cast<CUdeviceptr>(first);
  return driver_call("cuMemAddressReserve");
}
CUresult free_addresses(CUdeviceptr address, std::size_t bytes) {
  const auto entry = fake.reserved.find(at(address));
  if (entry == fake.reserved.end() || entry->second != bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::munmap(at(address), bytes);
  fake.reserved.erase(entry);
  return driver_call("cuMemAddressFree");
}
CUresult create(CUmemGenericAllocationHandle* /*handle*/, std::size_t /*bytes*/,
                const CUmemAllocationProp* /*prop*/, unsigned long long /*flags*/) {
  return driver_call("cuMemCreate");
}
CUresult release(CUmemGenericAllocationHandle /*handle*/) {
  return driver_call("cuMemRelease");
}
CUresult map(CUdeviceptr address, std::size_t bytes, std::size_t /*offset*/,
             CUmemGenericAllocationHandle /*handle*/, unsigned long long /*flags*/) {
  const CUresult result = driver_call("cuMemMap");
  if (result == CUDA_SUCCESS) {
    ::mprotect(at(address), bytes, PROT_READ | PROT_WRITE);
    fake.mapped.insert(at(address));
  }
  return result;
}
CUresult unmap(CUdeviceptr address, std::size_t bytes) {
  if (fake.mapped.erase(at(address)) == 0 || bytes != page_bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::mprotect(at(address), bytes, PROT_NONE);
  return driver_call("cuMemUnmap");
}
CUresult set_access(CUdeviceptr /*address*/, std::size_t /*bytes*/,
                    const CUmemAccessDesc* /*access*/, std::size_t /*count*/) {
  return driver_call("cuMemSetAccess");
}
CUresult granularity(std::size_t* bytes, const CUmemAllocationProp* /*prop*/,
                     CUmemAllocationGranularity_flags /*flags*/) {
  *bytes = page_bytes;
  return driver_call("cuMemGetAllocationGranularity");
}
CUresult fill_8(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill("cuMemsetD8Async", to, value, count, stream);
}
CUresult fill_16(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return fill("cuMemsetD16Async", to, value, count, stream);
}
CUresult fill_32(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill("cuMemsetD32Async", to, value, count, stream);
}
CUresult fill_rows_32(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                      std::size_t height, CUstream stream) {
  return static_cast<CUresult>(queue("cuMemsetD2D32Async", stream, [=] {
    for (std::size_t i = 0; i < width * height; ++i) {
      std::memcpy(at(to) + i / width * pitch + i % width * sizeof value, &value, sizeof value);
    }
  }));
}

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::map<std::string, void*>& driver_functions() {
  static const std::map<std::string, void*> functions{
      {"cuDeviceGet", address_of(device_get)},
      {"cuDevicePrimaryCtxRetain", address_of(retain)},
      {"cuCtxGetCurrent", address_of(get_current)},
      {"cuCtxSetCurrent", address_of(set_current)},
      {"cuMemAddressReserve", address_of(reserve)},
      {"cuMemAddressFree", address_of(free_addresses)},
      {"cuMemCreate", address_of(create)},
      {"cuMemRelease", address_of(release)},
      {"cuMemMap", address_of(map)},
      {"cuMemUnmap", address_of(unmap)},
      {"cuMemSetAccess", address_of(set_access)},
      {"cuMemGetAllocationGranularity", address_of(granularity)},
      {"cuMemsetD8Async", address_of(fill_8)},
      {"cuMemsetD16Async", address_of(fill_16)},
      {"cuMemsetD32Async", address_of(fill_32)},
      {"cuMemsetD2D32Async", address_of(fill_rows_32)},
  };
  return functions;
}

}  // namespace

}  // namespace ebb::test

using namespace ebb::test;  // NOLINT(google-build-using-namespace): what follows is extern "C"

// ---- the runtime ----

cudaError_t cudaGetDeviceCount(int* count) {
  *count = FakeCuda::devices;
  return runtime_call("cudaGetDeviceCount");
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int /*device*/) {
  std::strcpy(prop->name, "fake");
  return runtime_call("cudaGetDeviceProperties");
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return runtime_call("cudaDriverGetVersion");
}
cudaError_t cudaGetDevice(int* device) {
  *device = fake.current < 0 ? 0 : fake.current;
  return runtime_call("cudaGetDevice");
}
cudaError_t cudaGetLastError() {
  return static_cast<cudaError_t>(std::exchange(fake.last_error, 0));
}
const char* cudaGetErrorString(cudaError_t /*error*/) {
  return "as the test wants it";
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* status) {
  const auto found = driver_functions().find(symbol);
  const bool is_known = found != driver_functions().end();
  *function = is_known ? found->second : nullptr;
  *status = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const cudaError_t result = context_call("cudaStreamCreateWithFlags", fake.current);
  if (result == cudaSuccess) {
    auto* const made = new FakeStream{fake.current, nullptr};
    fake.streams.insert(made);
    *stream = reinterpret_cast<cudaStream_t>(made);
  }
  return result;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  fake.streams.erase(fake_of(stream));
  const cudaError_t result = context_call("cudaStreamDestroy", device_of(stream));
  delete fake_of(stream);
  return result;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const cudaError_t result = runtime_call("cudaEventCreateWithFlags");
  fake.wrong_contexts += fake.current < 0 || flags != cudaEventDisableTiming ? 1 : 0;
  *event = reinterpret_cast<cudaEvent_t>(static_cast<std::intptr_t>(1));
  fake.events += result == cudaSuccess ? 1 : 0;
  return result;
}
cudaError_t cudaEventDestroy(cudaEvent_t /*event*/) {
  --fake.events;
  return runtime_call("cudaEventDestroy");
}
cudaError_t cudaEventRecord(cudaEvent_t /*event*/, cudaStream_t stream) {
  return context_call("cudaEventRecord", device_of(stream));
}
cudaError_t cudaEventQuery(cudaEvent_t /*event*/) {
  return runtime_call("cudaEventQuery");
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t /*event*/, unsigned /*flags*/) {
  return context_call("cudaStreamWaitEvent", device_of(stream));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (kind != cudaMemcpyDefault || !may_copy(to, bytes) || !may_copy(from, bytes)) {
    return ended(cudaErrorInvalidValue);
  }
  return queue("cudaMemcpyAsync", stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  if (to_device == from_device) {
    return ended(cudaErrorInvalidValue);
  }
  return queue("cudaMemcpyPeerAsync", stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind != cudaMemcpyDefault || !may_copy(to, (rows - 1) * to_pitch + width) ||
      !may_copy(from, (rows - 1) * from_pitch + width)) {
    return ended(cudaErrorInvalidValue);
  }
  return queue("cudaMemcpy2DAsync", stream, [=] {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(static_cast<char*>(to) + row * to_pitch,
                  static_cast<const char*>(from) + row * from_pitch, width);
    }
  });
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parms, cudaStream_t stream) {
  if (parms->srcDevice == parms->dstDevice || parms->extent.depth != 1) {
    return ended(cudaErrorInvalidValue);
  }
  return queue("cudaMemcpy3DPeerAsync", stream, [p = *parms] {
    for (std::size_t row = 0; row < p.extent.height; ++row) {
      std::memcpy(static_cast<char*>(p.dstPtr.ptr) + row * p.dstPtr.pitch,
                  static_cast<const char*>(p.srcPtr.ptr) + row * p.srcPtr.pitch, p.extent.width);
    }
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* context) {
  return queue("cudaLaunchHostFunc", stream, [=] { function(context); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const cudaError_t result = context_call("cudaStreamBeginCapture", device_of(stream));
  if (result == cudaSuccess && mode == cudaStreamCaptureModeThreadLocal) {
    fake_of(stream)->capture = new FakeWork;
    ++fake.graphs;
  }
  return result;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  FakeWork* const work = std::exchange(fake_of(stream)->capture, nullptr);
  if (work == nullptr) {
    return ended(cudaErrorIllegalState);
  }
  const cudaError_t result = context_call("cudaStreamEndCapture", device_of(stream));
  if (result != cudaSuccess) {
    --fake.graphs;
    delete work;
    return result;
  }
  *graph = reinterpret_cast<cudaGraph_t>(work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  --fake.graphs;
  delete reinterpret_cast<FakeWork*>(graph);
  return runtime_call("cudaGraphDestroy");
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  const cudaError_t result = runtime_call("cudaGraphInstantiate");
  if (result == cudaSuccess) {
    ++fake.execs;
    *exec = reinterpret_cast<cudaGraphExec_t>(new FakeWork(*reinterpret_cast<FakeWork*>(graph)));
  }
  return result;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* /*info*/) {
  auto& known = *reinterpret_cast<FakeWork*>(exec);
  const auto& work = *reinterpret_cast<FakeWork*>(graph);
  if (known.size() != work.size()) {
    return ended(cudaErrorGraphExecUpdateFailure);
  }
  known = work;
  return runtime_call("cudaGraphExecUpdate");
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return queue("cudaGraphLaunch", stream, [exec] {
    for (const auto& work : *reinterpret_cast<FakeWork*>(exec)) {
      work();
    }
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  --fake.execs;
  delete reinterpret_cast<FakeWork*>(exec);
  return runtime_call("cudaGraphExecDestroy");
}

cudaError_t cudaHostRegister(void* begin_of, std::size_t bytes, unsigned flags) {
  const cudaError_t result = runtime_call("cudaHostRegister");
  fake.wrong_contexts += fake.current < 0 ? 1 : 0;
  if (bytes != page_bytes || page_of(begin_of) != begin_of ||
      (flags & cudaHostRegisterPortable) == 0) {
    return ended(cudaErrorInvalidValue);
  }
  if (result == cudaSuccess && !fake.registered.insert(static_cast<char*>(begin_of)).second) {
    return ended(cudaErrorHostMemoryAlreadyRegistered);
  }
  return result;
}
cudaError_t cudaHostUnregister(void* begin_of) {
  const cudaError_t result = runtime_call("cudaHostUnregister");
  return fake.registered.erase(static_cast<char*>(begin_of)) == 1
             ? result
             : ended(cudaErrorHostMemoryNotRegistered);
}
