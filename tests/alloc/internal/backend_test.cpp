// SPDX-License-Identifier: Apache-2.0
// The list of devices, and what the backend says on a machine without one. Includes the private
// backend header. [alloc.cuda]
#include "backend.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

TEST_CASE("devices: the CPU comes first, with its memory") {
  const auto list = ebb::devices();
  REQUIRE_FALSE(list.empty());
  CHECK(list[0].device == ebb::cpu);
  CHECK_FALSE(list[0].name.empty());
  CHECK(list[0].memory > ebb::Bytes{1 << 20});
}

TEST_CASE("devices: either a CUDA device is listed or there is a reason why not") {
  const std::string reason = ebb::no_cuda_reason();
  CHECK(reason.empty() == (ebb::devices().size() > 1));
  CHECK(reason.find('\n') == std::string::npos);
  const std::string name = ebb::backend_name();
  CHECK((name == "cuda" || name == "no_cuda"));
}

TEST_CASE("backend: without a device every call on one throws and says why") {
  const auto backend = ebb::make_backend();
  if (!backend->devices().empty()) {
    return;
  }
  const ebb::Device device{ebb::DeviceKind::cuda, 0};
  const ebb::Stream stream{device, ebb::next_stream_id(1)};
  const ebb::Stream fallback{device, 0};
  std::byte bytes[8]{};
  CHECK_THROWS_WITH_AS(backend->source(device), doctest::Contains("cuda:0"), ebb::DeviceError);
  CHECK_THROWS_WITH_AS(backend->pinned(device), doctest::Contains("cuda:0"), ebb::DeviceError);
  CHECK_THROWS_AS(backend->make_stream(stream), ebb::DeviceError);
  CHECK_THROWS_AS(backend->borrow_stream(stream, nullptr), ebb::DeviceError);
  CHECK_THROWS_AS(backend->handle_of(fallback), ebb::DeviceError);
  CHECK_THROWS_AS(backend->make_event(device), ebb::DeviceError);
  CHECK_THROWS_AS(backend->record(ebb::Event{1}, fallback), ebb::DeviceError);
  CHECK_THROWS_AS(backend->wait(fallback, ebb::Event{1}), ebb::DeviceError);
  CHECK_THROWS_AS(backend->is_done(ebb::Event{1}), std::invalid_argument);
  CHECK_THROWS_AS(backend->copy(bytes, bytes, ebb::Bytes{8}, fallback), ebb::DeviceError);
  CHECK_THROWS_AS(backend->copy_rows(bytes, bytes, {ebb::Bytes{2}, 2, 4, 4}, fallback),
                  ebb::DeviceError);
  CHECK_THROWS_AS(backend->fill(bytes, {0, 1}, 8, fallback), ebb::DeviceError);
  CHECK_THROWS_AS(backend->call([](void*) {}, nullptr, fallback), ebb::DeviceError);
  CHECK_THROWS_AS(backend->begin_capture(stream), ebb::DeviceError);
  CHECK_THROWS_AS(backend->end_capture(stream, {}), ebb::DeviceError);
  CHECK_THROWS_AS(backend->launch(ebb::GraphExec{1}, fallback), ebb::DeviceError);
}

TEST_CASE("backend: what is noexcept does nothing where it knows nothing") {
  const auto backend = ebb::make_backend();
  const ebb::Stream stream{{ebb::DeviceKind::cuda, 0}, ebb::next_stream_id(1)};
  backend->destroy_event(ebb::Event{1});
  backend->destroy_graph(ebb::GraphExec{1});
  backend->destroy_stream(stream);
  backend->destroy_stream({{ebb::DeviceKind::cuda, 1000}, 1});
  backend->abandon_capture(stream);
}

TEST_CASE("backend: stream and event numbers are never given twice, and streams' tell their lane") {
  std::set<std::uint32_t> streams;
  std::set<std::uint64_t> events;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const ebb::Stream stream{ebb::cpu, ebb::next_stream_id(i % ebb::Stream::lanes)};
    CHECK(streams.insert(stream.id).second);
    CHECK(stream.lane() == i % ebb::Stream::lanes);
    CHECK(events.insert(ebb::next_event_id()).second);
  }
  CHECK(streams.count(0) == 0);
  CHECK(events.count(0) == 0);
}
