// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on a device: pages, streams, events, copies, fills, errors. Includes the private
// backend header. [alloc.cuda]
#include "cuda_rig.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <numeric>
#include <string>

using ebb::test::CudaRig;
using ebb::test::Gate;
using ebb::test::Pages;
using namespace ebb::literals;

namespace {

template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  REQUIRE(cudaGetDriverEntryPointByVersion(name, &found, 10020, cudaEnableDefault, &status) ==
          cudaSuccess);
  REQUIRE(found != nullptr);
  return reinterpret_cast<Function>(found);
}

bool has_context(ebb::Device device) {
  const auto get_state =
      driver_function<decltype(&::cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState");
  unsigned flags = 0;
  int is_active = 0;
  REQUIRE(get_state(static_cast<CUdevice>(device.index), &flags, &is_active) == CUDA_SUCCESS);
  return is_active != 0;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  REQUIRE(driver_function<decltype(&::cuCtxGetCurrent)>("cuCtxGetCurrent")(&context) ==
          CUDA_SUCCESS);
  return context;
}

std::vector<int> counted(std::size_t count) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

struct Log {
  std::vector<int>& entries;
  int entry;
  static void append(void* log) {
    static_cast<Log*>(log)->entries.push_back(static_cast<Log*>(log)->entry);
  }
};

}  // namespace

// First in the file: later cases make contexts, which stay.
TEST_CASE("cuda backend: a context is made on the device that is used, and on no other") {
  const auto backend = ebb::make_backend();
  const std::vector<ebb::DeviceInfo> list = backend->devices();
  for (const ebb::DeviceInfo& info : list) {
    CHECK_FALSE(has_context(info.device));
  }
  // The last one, since the runtime itself would take the first.
  const ebb::Device used = list.back().device;
  const ebb::Stream stream{used, ebb::next_stream_id(1)};
  backend->make_stream(stream);
  const Pages pages(backend->source(used), 2_MiB);
  const Pages host(backend->pinned(used), 2_MiB);
  backend->fill(pages.begin(), {1, 8}, 100, stream);
  backend->copy(pages.begin(), host.begin(), 1_KiB, stream);
  const ebb::Event event = backend->make_event(used);
  backend->record(event, stream);
  backend->wait(stream, event);
  while (!backend->is_done(event)) {
    std::this_thread::yield();
  }
  for (const ebb::DeviceInfo& info : list) {
    CHECK(has_context(info.device) == (info.device == used));
  }
  CHECK(current_context() == nullptr);
}

TEST_CASE("cuda backend: pages are mapped, written, given back and mapped again") {
  CudaRig rig;
  ebb::Source& source = rig.backend->source(rig.device);
  CHECK(source.device() == rig.device);
  const std::size_t page = source.page_size().count();
  const ebb::Range range = source.reserve(ebb::Bytes{4 * page});
  REQUIRE(range);
  const ebb::Range middle{range.begin + page, ebb::Bytes{2 * page}};
  const std::vector<int> values = counted(2 * page / sizeof(int));
  for (int round = 0; round < 3; ++round) {
    REQUIRE(source.commit(middle));
    rig.backend->copy(middle.begin, values.data(), middle.bytes, rig.stream);
    CHECK(rig.read<int>(middle.begin, values.size()) == values);
    source.decommit(middle);
  }
  source.release(range);
}

TEST_CASE("cuda backend: a refusal of pages is false, and leaves no error behind") {
  CudaRig rig;
  ebb::Source& source = rig.backend->source(rig.device);
  REQUIRE(cudaSetDevice(static_cast<int>(rig.device.index)) == cudaSuccess);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  constexpr std::size_t left = std::size_t{64} << 20;
  if (free_bytes < 4 * left) {
    return;
  }
  void* filler = nullptr;
  REQUIRE(cudaMalloc(&filler, free_bytes - left) == cudaSuccess);
  const ebb::Range range = source.reserve(ebb::Bytes{2 * left});
  REQUIRE(range);
  CHECK_FALSE(source.commit(range));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaFree(filler) == cudaSuccess);
  CHECK(source.commit(range));
  source.release(range);
}

TEST_CASE("cuda backend: pinned pages read as zeros, also after they went back") {
  CudaRig rig;
  ebb::Source& source = rig.backend->pinned(rig.device);
  CHECK(source.device() == ebb::cpu);
  const ebb::Range range = source.reserve(5_MiB);
  REQUIRE(range);
  CHECK(range.bytes == 6_MiB);
  CHECK(reinterpret_cast<std::uintptr_t>(range.begin) % source.page_size().count() == 0);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(source.commit(range));
    CHECK(range.begin[0] == std::byte{0});
    CHECK(range.end()[-1] == std::byte{0});
    std::memset(range.begin, 1, range.bytes.count());
    source.decommit(range);
  }
  source.release(range);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("cuda backend: copies go both ways, from pinned and pageable memory, over many pages") {
  CudaRig rig;
  const Pages there(rig.backend->source(rig.device), 16_MiB);
  const Pages pinned(rig.backend->pinned(rig.device), 16_MiB);
  // Neither side begins at a page.
  const std::vector<int> values = counted(2'000'000);
  const ebb::Bytes bytes = ebb::Bytes::of<int>(values.size());
  std::byte* const from = pinned.begin() + 64;
  std::memcpy(from, values.data(), bytes.count());
  rig.backend->copy(there.begin() + 256, from, bytes, rig.stream);
  CHECK(rig.read<int>(there.begin() + 256, values.size()) == values);

  std::memset(from, 0, bytes.count());
  rig.backend->copy(from, there.begin() + 256, bytes, rig.stream);
  rig.finish(rig.stream);
  CHECK(std::memcmp(from, values.data(), bytes.count()) == 0);
}

TEST_CASE("cuda backend: a copy of pinned memory does not block its caller") {
  CudaRig rig;
  const Pages there(rig.backend->source(rig.device), 8_MiB);
  const Pages pinned(rig.backend->pinned(rig.device), 8_MiB);
  Gate gate(*rig.backend, rig.stream);
  rig.backend->copy(there.begin(), pinned.begin(), 8_MiB, rig.stream);
  const ebb::Event event = rig.record(rig.stream);
  CHECK_FALSE(rig.backend->is_done(event));
  gate.open();
  rig.finish(event);
}

TEST_CASE("cuda backend: rows are copied between pitches, across the ends of registrations too") {
  CudaRig rig;
  const Pages there(rig.backend->source(rig.device), 8_MiB);
  const Pages pinned(rig.backend->pinned(rig.device), 8_MiB);
  constexpr std::size_t rows = 1500;
  const ebb::CopyRows shape{3000_B, rows, 4000, 5000};  // 7.5 MB of pinned memory: three ends
  for (std::size_t row = 0; row < rows; ++row) {
    std::memset(pinned.begin() + row * shape.from_pitch, static_cast<int>(row % 251) + 1, 3000);
  }
  rig.backend->fill(there.begin(), {0, 1}, rows * shape.to_pitch, rig.stream);
  rig.backend->copy_rows(there.begin(), pinned.begin(), shape, rig.stream);
  const auto got = rig.read<unsigned char>(there.begin(), rows * shape.to_pitch);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::size_t row = i / shape.to_pitch;
    wrong += got[i] != (i % shape.to_pitch < 3000 ? row % 251 + 1 : 0) ? 1 : 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("cuda backend: a fill repeats patterns of every width, and nothing beside them") {
  CudaRig rig;
  const Pages there(rig.backend->source(rig.device), 2_MiB);
  const std::uint64_t bits = 0x0123456789abcdef;
  for (const std::size_t width : {1U, 2U, 4U, 8U}) {
    for (const std::uint64_t pattern : {bits, std::uint64_t{0x0505050505050505}}) {
      CAPTURE(width);
      rig.backend->fill(there.begin(), {0xff, 1}, 8 * 102, rig.stream);
      rig.backend->fill(there.begin() + 8, {pattern, width}, 100, rig.stream);
      const auto got = rig.read<unsigned char>(there.begin(), 8 * 102);
      std::vector<unsigned char> expected(8 * 102, 0xff);
      for (std::size_t i = 0; i < 100; ++i) {
        std::memcpy(&expected[8 + i * width], &pattern, width);
      }
      CHECK(got == expected);
    }
  }
  CHECK_THROWS_AS(rig.backend->fill(there.begin(), {0, 3}, 1, rig.stream), std::invalid_argument);
}

TEST_CASE("cuda backend: an event is done when the work before it is, and can be recorded again") {
  CudaRig rig;
  const ebb::Event event = rig.backend->make_event(rig.device);
  CHECK(rig.backend->is_done(event));
  for (int round = 0; round < 3; ++round) {
    Gate gate(*rig.backend, rig.stream);
    rig.backend->record(event, rig.stream);
    CHECK_FALSE(rig.backend->is_done(event));
    gate.open();
    rig.finish(event);
  }
  rig.backend->destroy_event(event);
  CHECK_THROWS_AS(rig.backend->is_done(event), std::invalid_argument);
  rig.backend->destroy_event(event);
}

TEST_CASE("cuda backend: a stream waits for an event of another, in order") {
  CudaRig rig;
  const ebb::Stream other = rig.new_stream(2);
  std::vector<int> order;
  Log first{order, 1};
  Log second{order, 2};
  Gate gate(*rig.backend, rig.stream);
  rig.backend->call(&Log::append, &first, rig.stream);
  const ebb::Event event = rig.record(rig.stream);
  rig.backend->wait(other, event);
  rig.backend->call(&Log::append, &second, other);
  const ebb::Event last = rig.record(other);
  CHECK_FALSE(rig.backend->is_done(last));
  gate.open();
  rig.finish(last);
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("cuda backend: a destroyed stream is unknown, and its work goes on to its end") {
  CudaRig rig;
  const ebb::Stream other = rig.new_stream(2);
  std::vector<int> order;
  Log log{order, 1};
  Gate gate(*rig.backend, other);
  rig.backend->call(&Log::append, &log, other);
  const ebb::Event event = rig.record(other);
  rig.backend->destroy_stream(other);
  CHECK_THROWS_WITH_AS(rig.backend->handle_of(other), doctest::Contains("has no stream"),
                       std::invalid_argument);
  gate.open();
  rig.finish(event);
  CHECK(order.size() == 1);
  // The lane is free again, and the old number stays unknown.
  const ebb::Stream next = rig.new_stream(2);
  CHECK_NOTHROW(rig.backend->handle_of(next));
  CHECK_THROWS_AS(rig.backend->record(event, other), std::invalid_argument);
  rig.backend->destroy_stream(other);
  CHECK_NOTHROW(rig.backend->handle_of(next));
  CHECK_THROWS_AS(rig.backend->make_stream({rig.device, ebb::next_stream_id(2)}),
                  std::invalid_argument);
}

TEST_CASE("cuda backend: a borrowed stream is used, and never destroyed") {
  cudaStream_t handle = nullptr;
  {
    CudaRig rig;
    REQUIRE(cudaSetDevice(static_cast<int>(rig.device.index)) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess);
    const ebb::Stream borrowed{rig.device, ebb::next_stream_id(3)};
    rig.backend->borrow_stream(borrowed, handle);
    CHECK(rig.backend->handle_of(borrowed) == handle);
    rig.finish(borrowed);
    rig.backend->destroy_stream(borrowed);
    CHECK(cudaStreamQuery(handle) == cudaSuccess);
    rig.backend->borrow_stream({rig.device, ebb::next_stream_id(3)}, handle);
  }
  CHECK(cudaStreamQuery(handle) == cudaSuccess);
  CHECK(cudaStreamDestroy(handle) == cudaSuccess);
}

TEST_CASE("cuda backend: a failure names the call, the code and the device, and is told once") {
  CudaRig rig;
  try {
    static_cast<void>(rig.backend->end_capture(rig.stream, {}));
    FAIL("nothing is captured");
  } catch (const ebb::DeviceError& error) {
    CHECK(error.call() == "cudaStreamEndCapture");
    CHECK(error.code() == cudaErrorIllegalState);
    CHECK(error.device() == ebb::to_string(rig.device));
    CHECK_FALSE(error.is_lost());
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  const ebb::Device absent{ebb::DeviceKind::cuda, 63};
  CHECK_THROWS_AS(rig.backend->source(absent), ebb::DeviceError);
  CHECK_THROWS_AS(rig.backend->source({ebb::DeviceKind::sim, 0}), std::invalid_argument);
}

TEST_CASE("cuda backend: threads use streams of their own at the same time") {
  CudaRig rig;
  const Pages there(rig.backend->source(rig.device), 16_MiB);
  const Pages pinned(rig.backend->pinned(rig.device), 16_MiB);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 2; lane < 6; ++lane) {
    const ebb::Stream stream = rig.new_stream(lane);
    threads.emplace_back([&rig, &there, &pinned, &failures, stream] {
      const std::size_t offset = stream.lane() * (std::size_t{2} << 20) + 512;
      std::byte* const host = pinned.begin() + offset;
      std::memset(host, static_cast<int>(stream.lane()), std::size_t{1} << 20);
      std::vector<unsigned char> back(std::size_t{1} << 20);
      for (int round = 0; round < 50; ++round) {
        rig.backend->copy(there.begin() + offset, host, 1_MiB, stream);
        rig.backend->copy(back.data(), there.begin() + offset, 1_MiB, stream);
        const ebb::Event event = rig.record(stream);
        while (!rig.backend->is_done(event)) {
          std::this_thread::yield();
        }
        rig.backend->destroy_event(event);
        failures += back.front() != stream.lane() || back.back() != stream.lane() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(failures == 0);
}

TEST_CASE("cuda backend: pages of two devices are copied between them") {
  CudaRig rig;
  const std::vector<ebb::DeviceInfo> list = rig.backend->devices();
  if (list.size() < 2) {
    return;
  }
  const Pages here(rig.backend->source(list[0].device), 2_MiB);
  const Pages there(rig.backend->source(list[1].device), 2_MiB);
  const std::vector<int> values = counted(100 * 100);
  rig.backend->copy(here.begin(), values.data(), ebb::Bytes::of<int>(values.size()), rig.stream);
  rig.backend->copy(there.begin(), here.begin(), ebb::Bytes::of<int>(values.size()), rig.stream);
  CHECK(rig.read<int>(there.begin(), values.size()) == values);
  rig.backend->copy_rows(here.begin(), there.begin(), {400_B, 100, 400, 400}, rig.stream);
  CHECK(rig.read<int>(here.begin(), values.size()) == values);
}
