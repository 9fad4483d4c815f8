// SPDX-License-Identifier: Apache-2.0
// What devices refuse: each message names the thing and the remedy. [rt.stream] [rt.tensor]
#include "device_fixture.h"

#include <ebb/alloc/devices.h>
#include <ebb/alloc/error.h>
#include <ebb/runtime/batch_fit.h>
#include <ebb/runtime/graph.h>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace ebb;
using namespace ebb::literals;
using ebb::test::DeviceRuntime;

namespace {

// What call throws says, if it is an error of the caller's.
template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("device refusal: a device that is not there, and which there are") {
  const SimMachine machine({.devices = 2});
  const auto refused = [](std::vector<Device> devices, std::shared_ptr<Backend> backend) {
    return message_of(
        [&] { Runtime({.devices = std::move(devices), .backend = std::move(backend)}); });
  };
  CHECK(refused({machine.device()}, nullptr) ==
        "[Runtime] devices: there is no sim:0 here: simulated devices need "
        "RuntimeOptions::backend: see SimMachine");
  CHECK(refused({{DeviceKind::cuda, 0}}, machine.backend()) ==
        "[Runtime] devices: there is no cuda:0 here: the backend has sim:0, sim:1");
  if (devices().size() == 1) {
    CHECK(refused({{DeviceKind::cuda, 0}}, nullptr) ==
          "[Runtime] devices: there is no cuda:0 here: " + no_cuda_reason());
    CHECK_FALSE(contains(no_cuda_reason(), "CUDA runtime version"));
  }
}

TEST_CASE("device refusal: the CPU has no streams, and a device that was not named has none yet") {
  SimMachine machine({.devices = 2});
  Runtime rt({.devices = {cpu, machine.device()}, .backend = machine.backend()});
  Loop loop(rt);
  const Tensor host = zeros(rt, {4});
  const auto all_say = [](const char* part, const std::vector<std::string>& messages) {
    for (const std::string& message : messages) {
      CHECK_MESSAGE(contains(message, part), message);
    }
  };
  all_say(
      "] the CPU has no streams: name a device of RuntimeOptions::devices",
      {message_of([&] { DeviceStream(rt, cpu); }), message_of([&] { GraphStep(loop, Stream{}); }),
       message_of([&] { launch(rt, Stream{}, {host}, [](void*) {}); }),
       message_of([&] { empty_pinned(rt, cpu, {4}); })});
  all_say("] the runtime does not use sim:1: name it in RuntimeOptions::devices",
          {message_of([&] { DeviceStream(rt, machine.device(1)); })});
}

TEST_CASE("device refusal: what only the host does names the copy to it") {
  DeviceRuntime f;
  const StreamScope on(f.rt, f.a);
  Tensor x = zeros({4}, DType::f32);
  const Tensor y = zeros({4}, DType::i32);
  CHECK(message_of([&] { y.copy_(x); }) ==
        "[Tensor::copy_] a device does not convert from f32 to i32: convert it in host memory, "
        "with to(ebb::cpu).to(dtype)");
  for (const std::string& message :
       {message_of([&] { x.to(DType::i32); }), message_of([&] { x.resize_({8}); }),
        message_of([&] { (void)x.span<float>(); })}) {
    CHECK_MESSAGE(contains(message, "use a copy in host memory, to(ebb::cpu)"), message);
  }
  CHECK(contains(message_of([] { empty({2}, DType::string); }),
                 "[empty] strings live in host memory, not on sim:0"));
  CHECK(empty(f.on(Stream{}), {2}, DType::string).device() == cpu);
}

TEST_CASE("device refusal: a launch says which of its tensors, and what would do") {
  DeviceRuntime f;
  const Tensor there = zeros(f.on(f.a), {4}, DType::f32);
  const Tensor host = zeros(f.rt, {2, 3}, DType::i32);
  const auto launched = [&](const Tensor& second) {
    return message_of([&] { launch(f.rt, f.a, {there, second}, [](void*) {}); });
  };
  CHECK(launched(host) ==
        "[launch] tensor 1 of the list, i32[2, 3], is in host memory that is not pinned, and the "
        "stream on sim:0: copy it there with to(), or make it with empty_pinned()");
  CHECK(launched(Tensor()) == "[launch] tensor 1 of the list is undefined");
}

TEST_CASE("device refusal: after the runtime nothing is queued on a device") {
  const SimMachine machine;
  auto rt = std::make_unique<Runtime>(
      RuntimeOptions{.devices = {cpu, machine.device()}, .backend = machine.backend()});
  const DeviceStream stream(*rt, machine.device());
  const Tensor x = full(rt->owner().on(stream), {1}, 3);
  const Tensor y = full(rt->owner().on(stream), {1}, 4);
  rt.reset();
  CHECK(message_of([&] { x.fill_(1); }) == "[Tensor::fill_] the runtime has been destroyed");
  CHECK(message_of([&] { x.copy_(y); }) == "[Tensor::copy_] the runtime has been destroyed");
  CHECK(message_of([&] { (void)x.item<float>(); }) ==
        "[Tensor::item] the runtime has been destroyed");
  CHECK(to_string(x) == "f32[1] sim:0\n([to_string] the runtime has been destroyed)");
  CHECK(machine.violations().empty());
}

TEST_CASE("device refusal: out of memory names the line that asked, and how large the device is") {
  SimMachine machine({.memory = 32_MiB});
  Runtime rt({.devices = {cpu, machine.device()}, .backend = machine.backend()});
  const DeviceStream stream(rt, machine.device());
  try {
    empty(rt.owner().on(stream), {64 << 20}, DType::u8, {"model.cpp", 12});
    FAIL("more was given than there is");
  } catch (const OutOfMemory& error) {
    CHECK(contains(error.what(),
                   "asked 64.0 MiB (67108864 B) at model.cpp:12, limit none, device 32.0 MiB"));
    CHECK(error.info().place == Place{"model.cpp", 12});
    CHECK(error.info().device == 32_MiB);
  }
}

TEST_CASE("device refusal: the largest hole is what the next request gets without more pages") {
  SimMachine machine({.memory = 32_MiB});
  Runtime rt(
      {.devices = {cpu, machine.device()}, .backend = machine.backend(), .device_limit = 16_MiB});
  const DeviceStream stream(rt, machine.device());
  const auto make = [&](Bytes bytes) {
    return empty(rt.owner().on(stream), {static_cast<std::int64_t>(bytes.count())}, DType::u8);
  };
  const Tensor small = make(1_KiB);
  std::vector<Tensor> large;
  Bytes hole;
  try {
    while (large.size() < 8) {
      large.push_back(make(4_MiB));
    }
  } catch (const OutOfMemory& error) {
    hole = error.info().largest_hole;
  }
  CHECK(hole > 1_MiB);
  const auto commits = machine.counts().of(SimCall::commit);
  const Tensor next = make(hole);
  CHECK(machine.counts().of(SimCall::commit) == commits);
}

TEST_CASE("device refusal: the largest batch is for host memory") {
  DeviceRuntime f;
  const auto step = [](Iteration& it, std::size_t batch) {
    empty(it, {static_cast<std::int64_t>(batch)});
  };
  const StreamScope on(f.rt, f.a);
  CHECK(contains(message_of([&] { largest_batch(f.rt, 1_MiB, step); }),
                 "[largest_batch] the budget is for host memory, and what this thread makes is on "
                 "sim:0"));
  const StreamScope on_host(f.rt, Stream{});
  CHECK(largest_batch(f.rt, 1_MiB, step).batch > 1000);
}
