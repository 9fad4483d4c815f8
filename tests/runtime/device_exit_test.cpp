// SPDX-License-Identifier: Apache-2.0
// The end of programs that use devices: in any order, on any thread, before or after the driver,
// and what is left in statics. notes/allocators.md section 4 item 16. [rt.exit]
#include "support/child.h"
#include "support/executor_choice.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "support/test_settings.h"

#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>
#include <ebb/runtime/device_stream.h>
#include <ebb/runtime/graph.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using namespace ebb;

namespace {

// One of each, and how to end them, each on its own.
struct DeviceWorld {
  DeviceWorld() {
    for (int i = 0; i < 6 && !step->is_captured(); ++i) {
      step->run([this](Iteration&) {
        const Tensor t = full({100}, 2, DType::i32);
        launch_host(*rt, *a, [] {});
        kept.copy_(t);
      });
      loop->wait_plan();
    }
    it = std::make_unique<Iteration>(*other_loop);
    temporary = full(it->owner().on(*b), {100}, 3);
    it->log("temporary", temporary.narrow(0, 0, 1));
    late = it->raw(*b).allocate(100);
    raw.emplace(it->raw(*b));
    launch_host(*rt, *b, [held = temporary] {});
    record(*rt, *a);
  }

  // The guards come before their loops, graphs before their streams: those are the rules.
  std::vector<std::function<void()>> ends() {
    return {[this] { rt.reset(); },
            [this] { kept = Tensor(); },
            [this] { pinned = Tensor(); },
            [this] { temporary = Tensor(); },
            [this] { it.reset(); },
            [this] { end_graph(); },
            [this] { b.reset(); },
            [this] { free_late(); },
            [this] { machine.reset(); },
            [this] { empty_cache(); },
            [this] { default_one = Tensor(); }};
  }
  void end_graph() {
    step.reset();
    a.reset();
    loop.reset();
  }
  void free_late() { raw->deallocate(std::exchange(late, nullptr), 100); }
  void empty_cache() const {
    if (rt != nullptr) {
      try {
        rt->empty_cache(device);
      } catch (const DeviceError&) {  // the driver has gone
      }
    }
  }

  std::unique_ptr<SimMachine> machine = std::make_unique<SimMachine>();
  Device device = machine->device();
  std::unique_ptr<Runtime> rt =
      std::make_unique<Runtime>(RuntimeOptions{.executor = ebb::test::executor_choice(),
                                               .devices = {cpu, device},
                                               .log = [](LogLevel, std::string_view) {},
                                               .backend = machine->backend(),
                                               .device_deadline = Milliseconds(2000)});
  std::unique_ptr<DeviceStream> a = std::make_unique<DeviceStream>(*rt, device);
  std::unique_ptr<DeviceStream> b = std::make_unique<DeviceStream>(*rt, device);
  std::unique_ptr<Loop> loop =
      std::make_unique<Loop>(*rt, LoopOptions{.deadline = Milliseconds(2), .warmup = 0});
  std::unique_ptr<Loop> other_loop =
      std::make_unique<Loop>(*rt, LoopOptions{.deadline = Milliseconds(2)});
  Tensor kept = zeros(rt->owner().on(*a), {100}, DType::i32);
  Tensor pinned = empty_pinned(*rt, device, {100});
  Tensor default_one = zeros(rt->owner().on(Stream{device}), {100});
  std::unique_ptr<GraphStep> step = std::make_unique<GraphStep>(*loop, *a);
  std::unique_ptr<Iteration> it;
  Tensor temporary;
  std::optional<RawMemory> raw;
  char* late = nullptr;
};

enum class Way { leaked, destroyed, driver_first, from_thread };

// Ends the child with a world in a static.
int leave_in_static(Way way, const std::string& output) {
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  auto world = std::make_unique<DeviceWorld>();
  SimMachine& machine = *world->machine;
  if (way == Way::leaked) {
    static DeviceWorld* leaked = nullptr;
    leaked = world.release();
    machine.shut_down();
    return leaked != nullptr ? 0 : 1;
  }
  static std::unique_ptr<DeviceWorld> left;  // destroyed after what follows
  left = std::move(world);
  if (way == Way::driver_first) {
    static SimMachine* its_machine = nullptr;
    its_machine = &machine;
    std::atexit([] { its_machine->shut_down(); });
  }
  if (way == Way::from_thread) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the other thread only waits
    std::jthread([] { std::exit(0); }).join();
  }
  return 0;
}

}  // namespace

// First, since a child of a process with more threads than one may not make any under sanitizers.
TEST_CASE("device exit: what is left in statics ends with the process, in silence") {
  if (ebb::test::is_thread_sanitized()) {
    return;
  }
  const ebb::test::TempFolder folder;
  for (const Way way : {Way::leaked, Way::destroyed, Way::driver_first, Way::from_thread}) {
    CAPTURE(static_cast<int>(way));
    const std::string output = folder.path() / "output";
    const int status = ebb::test::run_in_child([&] { return leave_in_static(way, output); }, 60);
    CHECK(ebb::test::exited_with_0(status));
    CHECK(std::filesystem::file_size(output) == 0);
  }
}

TEST_CASE("device exit: a world of a device destroyed in 200 random orders, here and elsewhere") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::vector<std::weak_ptr<Domain>> lifetimes;
  std::vector<std::weak_ptr<Backend>> drivers;
  for (int order = 0; order < 200; ++order) {
    CAPTURE(order);
    DeviceWorld world;
    const bool loses = order % 4 == 2 && !ebb::test::is_thread_sanitized();
    if (order % 2 == 0 && !loses) {  // what a device did not come to, or a driver, is left behind
      lifetimes.push_back(world.rt->domain());
      drivers.push_back(world.machine->backend());
    }
    std::vector<std::function<void()>> ends = world.ends();
    if (order % 2 == 1 && !ebb::test::is_thread_sanitized()) {
      ends.emplace_back([&] { world.machine ? world.machine->shut_down() : void(); });
    } else if (loses) {
      ends.emplace_back([&] { world.machine ? world.machine->lose(world.device) : void(); });
    }
    std::shuffle(ends.begin(), ends.end(), random);
    for (const auto& end : ends) {
      if (random() % 3 == 0) {
        std::jthread(end).join();
      } else {
        end();
      }
    }
    CHECK((world.machine == nullptr && world.rt == nullptr));
  }
  // A thread gives up what others have ended when it next works for a runtime.
  DeviceWorld().free_late();
  const auto is_gone = [](const auto& it) { return it.expired(); };
  CHECK(std::all_of(lifetimes.begin(), lifetimes.end(), is_gone));
  CHECK(std::all_of(drivers.begin(), drivers.end(), is_gone));
}

TEST_CASE("device exit: a thread that ends with a stream's work and memory leaves both in order") {
  SimMachine machine;
  Runtime rt({.devices = {cpu, machine.device()}, .backend = machine.backend()});
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> wrong{0};
    std::jthread([&] {
      const DeviceStream own(rt, machine.device());
      machine.set_delay(own, std::chrono::microseconds(50));
      const Tensor x = empty(rt.owner().on(own), {1000}, DType::i32);
      auto* const data = x.data<std::int32_t>();
      launch_host(rt, own, [=] { std::fill_n(data, 1000, i); });
      launch_host(rt, own,
                  [=, &wrong] { wrong += std::count(data, data + 1000, i) == 1000 ? 0 : 1; });
    }).join();
    CHECK(machine.drain());
    CHECK(wrong == 0);
  }
  CHECK(machine.counts().streams <= 63);
  CHECK(machine.violations().empty());
}
