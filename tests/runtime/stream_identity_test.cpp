// SPDX-License-Identifier: Apache-2.0
// Memory is a stream's by its number, not by its handle, nor by who calls: what one stream uses no
// other is handed. notes/allocators.md section 4 item 8. [alloc.cuda] [rt.stream]
#include "device_fixture.h"
#include "support/test_settings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace ebb;
using ebb::test::DeviceRuntime;

namespace {

// Writes a number all over a tensor, and looks whether it is still there when the stream gets to
// that; by then the tensor has been dropped.
void write_and_look(DeviceRuntime& f, Stream stream, std::int64_t elements, std::int32_t number,
                    std::atomic<int>& wrong) {
  const Tensor tensor = empty(f.on(stream), {elements}, DType::i32);
  auto* const data = tensor.data<std::int32_t>();
  launch_host(f.rt, stream, [=] { std::fill_n(data, elements, number); });
  launch_host(f.rt, stream, [=, &wrong] {
    wrong += std::count(data, data + elements, number) == elements ? 0 : 1;
  });
}

}  // namespace

TEST_CASE("stream identity: threads with streams of their own are handed no memory in use") {
  DeviceRuntime f;
  f.machine.set_delay_all(std::chrono::microseconds(20));
  std::atomic<int> wrong{0};
  const auto rounds = static_cast<int>(std::min<std::uint64_t>(ebb::test::stress(2000), 2000) / 4);
  const auto work = [&](std::int32_t number) {
    const DeviceStream own(f.rt, f.device);
    for (int i = 0; i < rounds; ++i) {
      write_and_look(f, own, 100 + i % 7 * 300, number, wrong);
    }
    CHECK(synchronise(f.rt, own, std::chrono::seconds(60)));
  };
  {
    const std::jthread one(work, 1);
    const std::jthread two(work, 2);
  }
  CHECK(wrong == 0);
}

TEST_CASE("stream identity: streams that take turns on one thread are handed no memory in use") {
  DeviceRuntime f;
  f.machine.set_delay(f.a, std::chrono::microseconds(100));
  std::atomic<int> wrong{0};
  for (std::int32_t i = 0; i < 400; ++i) {
    write_and_look(f, i % 2 == 0 ? f.a : f.b, 100 + i % 5 * 300, i, wrong);
  }
  CHECK(f.machine.drain(std::chrono::seconds(60)));
  CHECK(wrong == 0);
}

TEST_CASE("stream identity: a handle that comes back is another stream") {
  DeviceRuntime f;
  void* const handle = f.machine.host_stream(f.device);
  DeviceStream first = borrow_stream(f.rt, f.device, handle);
  const Stream known = first;
  const void* address = nullptr;
  f.machine.hold(first);
  {
    const Tensor tensor = empty(f.on(first), {1000}, DType::i32);
    address = tensor.storage().data();
    tensor.fill_(1);
  }
  first = DeviceStream();
  const DeviceStream second = borrow_stream(f.rt, f.device, handle);
  CHECK(stream_handle(f.rt, second) == handle);
  CHECK(second.stream() != known);
  CHECK_THROWS_AS(empty(f.on(known), {1}), std::invalid_argument);
  // Nobody says that the two are one queue, so that what the first has used is not free yet.
  CHECK(empty(f.on(second), {1000}, DType::i32).storage().data() != address);
  f.machine.resume(second);
  REQUIRE(f.machine.drain());
  CHECK(f.rt.empty_cache(f.device) > Bytes{});
  CHECK(f.machine.memory(f.device).committed == Bytes{});
}

TEST_CASE("stream identity: threads that borrow and give back one handle never share memory") {
  DeviceRuntime f;
  std::atomic<int> wrong{0};
  void* const handle = f.machine.host_stream(f.device);
  const auto work = [&](std::int32_t number) {
    for (int i = 0; i < 50; ++i) {
      const DeviceStream own = borrow_stream(f.rt, f.device, handle);
      for (int n = 0; n < 4; ++n) {
        write_and_look(f, own, 500, number, wrong);
      }
      if (i % 10 == 0) {  // there may be no more than 63 that are not done
        CHECK(synchronise(f.rt, own, std::chrono::seconds(60)));
      }
    }
  };
  {
    const std::jthread one(work, 1);
    const std::jthread two(work, 2);
  }
  CHECK(f.machine.drain(std::chrono::seconds(60)));
  CHECK(wrong == 0);
}
