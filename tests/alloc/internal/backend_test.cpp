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
  CHECK_THROWS_WITH_AS(backend->source(device), doctest::Contains("cuda:0"), ebb::DeviceError);
  CHECK_THROWS_AS(backend->make_stream(device), ebb::DeviceError);
  CHECK_THROWS_AS(backend->record({device, 0}), ebb::DeviceError);
  CHECK_THROWS_AS(backend->is_done(ebb::Event{1}), std::invalid_argument);
  backend->release(ebb::Event{1});
  backend->destroy_stream({device, 1});
}

TEST_CASE("backend: stream and event numbers are never given twice") {
  std::set<std::uint64_t> streams;
  std::set<std::uint64_t> events;
  for (int i = 0; i < 100; ++i) {
    CHECK(streams.insert(ebb::next_stream_id()).second);
    CHECK(events.insert(ebb::next_event_id()).second);
  }
  CHECK(streams.count(0) == 0);
  CHECK(events.count(0) == 0);
}
