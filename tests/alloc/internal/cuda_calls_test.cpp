// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend asks of the driver, on a fake of it: the right calls, each with the
// device's context and the thread's own restored, and nothing left when a call fails. Includes the
// private backend header. [alloc.cuda] [alloc.graph]
#include "backend.h"
#include "fake_cuda.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

using ebb::test::fake;
using ebb::test::FakeCuda;
using namespace ebb::literals;

namespace {

constexpr ebb::Device first{ebb::DeviceKind::cuda, 0};
constexpr ebb::Device second{ebb::DeviceKind::cuda, 1};

struct Rig {
  Rig() {
    fake = FakeCuda();
    backend = ebb::make_backend();
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;
  Rig(Rig&&) = delete;
  Rig& operator=(Rig&&) = delete;
  // Whatever a test does, these hold at its end.
  ~Rig() {
    backend.reset();
    CHECK(fake.wrong_contexts == 0);
    CHECK(fake.current == -1);
    CHECK(fake.last_error == 0);
    CHECK(fake.streams.empty());
    CHECK(fake.events == 0);
    CHECK(fake.graphs == 0);
    CHECK(fake.execs == 0);
    CHECK(fake.mapped.empty());
    CHECK(fake.reserved.empty());
    CHECK(fake.registered.empty());
  }

  ebb::Stream make_stream(ebb::Device device, std::uint32_t lane) {
    const ebb::Stream stream{device, ebb::next_stream_id(lane)};
    backend->make_stream(stream);
    return stream;
  }

  std::unique_ptr<ebb::Backend> backend;
};

// Pages of a source, given back at the end.
struct Pages {
  Pages(ebb::Source& of, ebb::Bytes bytes) : source(of), range(of.reserve(bytes)) {
    REQUIRE(range);
    REQUIRE(source.commit(range));
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  Pages(Pages&&) = delete;
  Pages& operator=(Pages&&) = delete;
  ~Pages() { source.release(range); }

  ebb::Source& source;
  ebb::Range range;
};

void number(std::byte* begin, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    begin[i] = static_cast<std::byte>(i % 251);
  }
}

}  // namespace

TEST_CASE("cuda calls: a context is made on devices that are used, and current only meanwhile") {
  Rig rig;
  CHECK(rig.backend->devices().size() == 2);
  CHECK(fake.contexts.empty());
  const ebb::Stream stream = rig.make_stream(second, 1);
  const ebb::Event event = rig.backend->make_event(second);
  rig.backend->record(event, stream);
  rig.backend->wait(stream, event);
  CHECK(rig.backend->is_done(event));
  const Pages pages(rig.backend->source(second), 2_MiB);
  const Pages pinned(rig.backend->pinned(second), 2_MiB);
  rig.backend->fill(pages.range.begin, {3, 1}, 10, stream);
  rig.backend->copy(pinned.range.begin, pages.range.begin, 10_B, stream);
  CHECK(pinned.range.begin[9] == std::byte{3});
  CHECK(fake.contexts == std::set<int>{1});
  CHECK(fake.current == -1);
}

TEST_CASE("cuda calls: the context that the thread had is restored") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(second, 1);
  fake.current = 0;
  rig.backend->call([](void*) { CHECK(fake.current == 1); }, nullptr, stream);
  CHECK(fake.current == 0);
  fake.fail("cudaLaunchHostFunc", cudaErrorInvalidValue);
  CHECK_THROWS_AS(rig.backend->call([](void*) {}, nullptr, stream), ebb::DeviceError);
  CHECK(fake.current == 0);
  fake.current = -1;
}

TEST_CASE("cuda calls: what was refused half way is unmapped, and can be had later") {
  Rig rig;
  ebb::Source& source = rig.backend->source(first);
  const ebb::Range range = source.reserve(7_MiB);
  CHECK(range.bytes == 8_MiB);
  for (const char* call : {"cuMemCreate", "cuMemMap"}) {
    fake.fail(call, CUDA_ERROR_OUT_OF_MEMORY, 2);
    CHECK_FALSE(source.commit(range));
    CHECK(fake.mapped.empty());
  }
  fake.fail("cuMemSetAccess", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_FALSE(source.commit(range));
  CHECK(fake.mapped.empty());
  // Every page that was created was released: the mapping keeps it.
  CHECK(fake.count("cuMemCreate") == fake.count("cuMemRelease") + 1);
  CHECK(source.commit(range));
  CHECK(fake.mapped.size() == 4);
  source.decommit({range.begin + FakeCuda::page_bytes, 4_MiB});
  CHECK(fake.mapped.size() == 2);
  source.release(range);
}

TEST_CASE("cuda calls: pages that could not be pinned are given up with those before them") {
  Rig rig;
  ebb::Source& source = rig.backend->pinned(first);
  const ebb::Range range = source.reserve(8_MiB);
  fake.fail("cudaHostRegister", cudaErrorMemoryAllocation, 3);
  CHECK_FALSE(source.commit(range));
  CHECK(fake.registered.empty());
  CHECK(source.commit(range));
  CHECK(fake.registered.size() == 4);
  source.release(range);
}

TEST_CASE("cuda calls: a copy of pinned memory is cut where a registration ends") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  const Pages device(rig.backend->source(first), 10_MiB);
  const Pages pinned(rig.backend->pinned(first), 10_MiB);
  constexpr std::size_t bytes = 7'000'000;
  std::byte* const from = pinned.range.begin + 1000;
  number(from, bytes);
  rig.backend->copy(device.range.begin + 256, from, ebb::Bytes{bytes}, stream);
  CHECK(std::memcmp(device.range.begin + 256, from, bytes) == 0);
  CHECK(fake.count("cudaMemcpyAsync") == 4);

  // Both sides pinned, with ends at other places.
  const Pages other(rig.backend->pinned(first), 10_MiB);
  rig.backend->copy(other.range.begin + 500'000, from, ebb::Bytes{bytes}, stream);
  CHECK(std::memcmp(other.range.begin + 500'000, from, bytes) == 0);

  // The host's own memory and the device's are one piece, however large.
  fake.calls.clear();
  std::vector<std::byte> host(9'000'000);
  rig.backend->copy(host.data(), device.range.begin, ebb::Bytes{host.size()}, stream);
  CHECK(fake.count("cudaMemcpyAsync") == 1);
}

TEST_CASE("cuda calls: rows are copied in as few pieces as registrations allow") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  const Pages device(rig.backend->source(first), 10_MiB);
  const Pages pinned(rig.backend->pinned(first), 10_MiB);
  number(pinned.range.begin, pinned.range.bytes.count());
  for (const std::size_t from_pitch : {5000U, 4096U, 3000U}) {
    CAPTURE(from_pitch);
    fake.calls.clear();
    const ebb::CopyRows rows{3000_B, 1500, 3100, from_pitch};
    std::memset(device.range.begin, 0xff, device.range.bytes.count());
    rig.backend->copy_rows(device.range.begin, pinned.range.begin, rows, stream);
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < rows.rows; ++row) {
      const std::byte* const to = device.range.begin + row * rows.to_pitch;
      wrong += std::memcmp(to, pinned.range.begin + row * from_pitch, 3000) != 0 ? 1 : 0;
      wrong += to[3000] != std::byte{0xff} ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(fake.count("cudaMemcpy2DAsync") <= 4);
    CHECK(fake.count("cudaMemcpyAsync") <= 6);
  }
  CHECK_NOTHROW(
      rig.backend->copy_rows(device.range.begin, pinned.range.begin, {0_B, 3, 1, 1}, stream));
}

TEST_CASE("cuda calls: pages of two devices are copied as between devices, others are not") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  const Pages here(rig.backend->source(first), 2_MiB);
  const Pages there(rig.backend->source(second), 2_MiB);
  number(here.range.begin, 20000);
  rig.backend->copy(there.range.begin, here.range.begin, 10000_B, stream);
  CHECK(std::memcmp(there.range.begin, here.range.begin, 10000) == 0);
  rig.backend->copy_rows(there.range.begin, here.range.begin, {100_B, 100, 100, 200}, stream);
  CHECK(std::memcmp(there.range.begin + 100, here.range.begin + 200, 100) == 0);
  CHECK(fake.count("cudaMemcpyPeerAsync") == 1);
  CHECK(fake.count("cudaMemcpy3DPeerAsync") == 1);
  CHECK(fake.count("cudaMemcpyAsync") == 0);
  rig.backend->copy(here.range.begin + 1000, here.range.begin, 100_B, stream);
  rig.backend->copy_rows(here.range.begin + 1000, here.range.begin, {10_B, 2, 10, 10}, stream);
  CHECK(fake.count("cudaMemcpyAsync") == 1);
  CHECK(fake.count("cudaMemcpy2DAsync") == 1);
}

TEST_CASE("cuda calls: fills of every width write the pattern") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  const Pages pages(rig.backend->source(first), 2_MiB);
  for (const std::uint64_t bits : {std::uint64_t{0x0123456789abcdef}, std::uint64_t{0}}) {
    for (const std::size_t width : {1U, 2U, 4U, 8U}) {
      std::vector<std::byte> expected(200 * 8, std::byte{0xee});
      std::memset(pages.range.begin, 0xee, expected.size());
      rig.backend->fill(pages.range.begin + 8, {bits, width}, 100, stream);
      for (std::size_t i = 0; i < 100; ++i) {
        std::memcpy(&expected[8 + i * width], &bits, width);
      }
      CHECK(std::memcmp(pages.range.begin, expected.data(), expected.size()) == 0);
    }
  }
  CHECK_THROWS_AS(rig.backend->fill(pages.range.begin, {0, 3}, 1, stream), std::invalid_argument);
}

TEST_CASE("cuda calls: graphs are changed in place where they have one shape, else made") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  const Pages pages(rig.backend->source(first), 2_MiB);
  std::byte& value = *pages.range.begin;
  const auto capture = [&](std::initializer_list<std::uint64_t> values, ebb::GraphExec into) {
    rig.backend->begin_capture(stream);
    for (const std::uint64_t bits : values) {
      rig.backend->fill(&value, {bits, 1}, 1, stream);
    }
    return rig.backend->end_capture(stream, into);
  };
  const ebb::GraphExec graph = capture({7}, {});
  CHECK(value == std::byte{0});
  rig.backend->launch(graph, stream);
  CHECK(value == std::byte{7});
  CHECK(capture({9}, graph) == graph);
  rig.backend->launch(graph, stream);
  CHECK(value == std::byte{9});
  const ebb::GraphExec other = capture({1, 2}, graph);
  CHECK(other != graph);
  CHECK(fake.execs == 2);
  rig.backend->destroy_graph(graph);
  CHECK(fake.execs == 1);
  CHECK_THROWS_AS(rig.backend->launch(graph, stream), std::invalid_argument);

  fake.fail("cudaStreamEndCapture", cudaErrorStreamCaptureInvalidated);
  CHECK_THROWS_AS(capture({1}, {}), ebb::DeviceError);
  fake.fail("cudaGraphInstantiate", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(capture({1}, {}), ebb::DeviceError);
  fake.fail("cudaGraphExecUpdate", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(capture({1, 2}, other), ebb::DeviceError);
  rig.backend->begin_capture(stream);
  rig.backend->abandon_capture(stream);
  rig.backend->abandon_capture(stream);
  CHECK(fake.graphs == 0);
}

TEST_CASE("cuda calls: streams go by their number, and borrowed ones are not destroyed") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  CHECK_THROWS_AS(rig.make_stream(first, 1), std::invalid_argument);
  CHECK_THROWS_AS(rig.backend->make_stream({first, 64}), std::invalid_argument);
  CHECK(fake.streams.size() == 1);
  ebb::test::FakeStream own{0, nullptr};
  const ebb::Stream borrowed{first, ebb::next_stream_id(2)};
  rig.backend->borrow_stream(borrowed, &own);
  CHECK(rig.backend->handle_of(borrowed) == &own);
  CHECK(rig.backend->handle_of({first, 0}) == nullptr);
  rig.backend->destroy_stream(borrowed);
  CHECK(fake.count("cudaStreamDestroy") == 2);  // of those that were refused
  rig.backend->borrow_stream({first, ebb::next_stream_id(2)}, &own);
  rig.backend->destroy_stream(stream);
  CHECK_THROWS_WITH_AS(rig.backend->handle_of(stream), doctest::Contains("has no stream"),
                       std::invalid_argument);
  rig.make_stream(first, 1);
  rig.backend->destroy_stream(stream);
  CHECK(fake.streams.size() == 1);
}

TEST_CASE("cuda calls: errors name the call, the code and the device, and say when it is lost") {
  Rig rig;
  const ebb::Event event = rig.backend->make_event(second);
  const auto error_with = [&](int code) {
    fake.fail("cudaEventQuery", code);
    try {
      static_cast<void>(rig.backend->is_done(event));
    } catch (const ebb::DeviceError& error) {
      CHECK(error.call() == "cudaEventQuery");
      CHECK(error.code() == code);
      CHECK(error.device() == "cuda:1");
      return error.is_lost();
    }
    FAIL("no error");
    return false;
  };
  for (const int code :
       {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
    CAPTURE(code);
    CHECK(error_with(code));
  }
  for (const int code : {1, 2, 46, 101, 400, 701, 712, 901, 907, 999}) {
    CAPTURE(code);
    CHECK_FALSE(error_with(code));
  }
  fake.fail("cudaEventQuery", cudaErrorNotReady);
  CHECK_FALSE(rig.backend->is_done(event));
  CHECK_THROWS_AS(rig.backend->source({ebb::DeviceKind::cuda, 5}), ebb::DeviceError);
  CHECK_THROWS_AS(rig.backend->source({ebb::DeviceKind::sim, 0}), std::invalid_argument);
}

TEST_CASE("cuda calls: once the driver has gone nothing of it is called, and host pages go back") {
  Rig rig;
  const ebb::Stream stream = rig.make_stream(first, 1);
  const ebb::Event event = rig.backend->make_event(first);
  ebb::Source& source = rig.backend->source(first);
  ebb::Source& pinned = rig.backend->pinned(first);
  const ebb::Range range = source.reserve(4_MiB);
  const ebb::Range host = pinned.reserve(4_MiB);
  REQUIRE(source.commit(range));
  REQUIRE(pinned.commit(host));
  fake.is_gone = true;
  fake.calls.clear();
  source.release(range);
  pinned.release(host);
  rig.backend->destroy_event(event);
  rig.backend->destroy_stream(stream);
  rig.backend->abandon_capture(stream);
  CHECK_FALSE(pinned.commit(host));
  rig.backend.reset();
  for (const auto& call : fake.calls) {
    CHECK(call.first == "cudaGetDevice");  // asks whether it has
  }
  CHECK(fake.calls.size() == 1);
  // What the driver takes with it.
  for (ebb::test::FakeStream* left : fake.streams) {
    delete left;
  }
  fake = FakeCuda();
}
