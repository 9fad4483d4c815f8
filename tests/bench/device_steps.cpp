// SPDX-License-Identifier: Apache-2.0
#include "device_steps.h"

#include "device_mlp.h"

#include <ebb/runtime/graph.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ebb::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 5;  // of which the median counts

// Microseconds until the thread's current stream has done what work queues.
double once_us(BenchDevice& device, const std::function<void()>& work) {
  const ebb::Stream stream = device.runtime().owner().stream();
  device.synchronise(stream);
  const auto start = Clock::now();
  work();
  device.synchronise(stream);
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median_us(BenchDevice& device, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    times.push_back(once_us(device, work));
  }
  return median(std::move(times));
}

void repeat(int count, const std::function<void()>& work) {
  for (int i = 0; i < count; ++i) {
    work();
  }
}

// Runs step until a graph of it is launched.
void capture(ebb::Loop& loop, ebb::GraphStep& graph, const std::function<void()>& step) {
  constexpr int runs_max = 20;
  for (int i = 0; i < runs_max && !graph.is_captured(); ++i) {
    graph.run([&](ebb::Iteration&) { step(); });
    loop.wait_plan();
  }
  if (!graph.is_captured()) {
    throw std::logic_error("[measure_graphs] the step is not captured");
  }
}

void measure_step(BenchDevice& device, const std::string& name, int steps,
                  const std::function<void()>& step, Figures& figures) {
  ebb::Loop loop(device.runtime());
  const auto eager = [&] {
    ebb::Iteration it(loop);
    step();
  };
  repeat(8, eager);
  loop.wait_plan();
  repeat(8, eager);
  const double eager_us = median_us(device, [&] { repeat(steps, eager); }) / steps;
  ebb::GraphStep graph(loop, device.runtime().owner().stream());
  capture(loop, graph, step);
  const double graph_us =
      median_us(device,
                [&] { repeat(steps, [&] { graph.run([&](ebb::Iteration&) { step(); }); }); }) /
      steps;
  figures["step_us/" + name + "/eager"] = eager_us;
  figures["step_us/" + name + "/graph"] = graph_us;
  figures["graph_speedup/" + name] = eager_us / graph_us;
  loop.finish();
}

// What takes a device next to no time, so that queueing it is what is measured.
void fill_small_tensors() {
  constexpr int fills = 64;
  constexpr std::int64_t elements = 256;
  for (int i = 0; i < fills; ++i) {
    ebb::empty({elements}).fill_(1);
  }
}

// Something to copy and something to compute, of about the same length on a large GPU.
class OverlapRig {
 public:
  OverlapRig(BenchDevice& device, std::int64_t size, std::int64_t copied, int products)
      : device_(device),
        copies_(device.runtime(), device.device()),
        on_(device.runtime(), device.stream()),
        math_(ebb::nn::make_math(device.runtime(), device.device())),
        products_(products),
        a_(filled(size)),
        b_(filled(size)),
        c_(filled(size)),
        host_(ebb::empty_pinned(device.runtime(), device.device(), {copied})),
        batch_(ebb::empty(device.runtime(), {copied})),
        batch_aside_(ebb::empty(device.runtime().owner().on(copies_), {copied})) {
    host_.fill_(1);
    compute();  // what the first one loads and makes does not count
    finish();
  }

  void compute() {
    for (int i = 0; i < products_; ++i) {
      math_->multiply(a_, b_, 0, c_);
    }
  }
  // On the stream of the products, or on one of its own.
  void copy_serially() { batch_.copy_(host_); }
  void copy_aside() { batch_aside_.copy_(host_); }
  void finish() {
    ebb::make_wait(device_.runtime(), device_.stream(), copies_.stream());
    device_.synchronise(device_.stream());
  }

 private:
  ebb::Tensor filled(std::int64_t size) {
    ebb::Tensor matrix = math_->matrix(size, size);
    matrix.fill_(1);
    return matrix;
  }

  BenchDevice& device_;
  const ebb::DeviceStream copies_;
  const ebb::StreamScope on_;
  const std::unique_ptr<ebb::nn::DeviceMath> math_;
  const int products_;
  const ebb::Tensor a_;
  const ebb::Tensor b_;
  const ebb::Tensor c_;
  const ebb::Tensor host_;
  const ebb::Tensor batch_;
  const ebb::Tensor batch_aside_;
};

}  // namespace

Figures measure_graphs(const Effort& effort) {
  BenchDevice device;
  DeviceMlp mlp(device, effort.quick ? 8 : 64);  // whose stream is the current one meanwhile
  Figures figures;
  measure_step(device, "fills", effort.quick ? 2 : 200, fill_small_tensors, figures);
  measure_step(
      device, "mlp_step", effort.quick ? 2 : 50, [&] { mlp.step(); }, figures);
  return figures;
}

Figures measure_overlap(const Effort& effort) {
  BenchDevice device;
  const bool is_small = effort.quick || device.machine() != nullptr;
  OverlapRig rig(device, is_small ? 256 : 2048, is_small ? 1 << 20 : 1 << 24, is_small ? 4 : 8);
  const auto ms = [&](const std::function<void()>& work) {
    return median_us(device,
                     [&] {
                       work();
                       rig.finish();
                     }) /
           1000;
  };
  Figures figures;
  figures["overlap_ms/copies"] = ms([&] { rig.copy_aside(); });
  figures["overlap_ms/products"] = ms([&] { rig.compute(); });
  figures["overlap_ms/serial"] = ms([&] {
    rig.compute();
    rig.copy_serially();
  });
  figures["overlap_ms/streams"] = ms([&] {
    rig.compute();
    rig.copy_aside();
  });
  figures["copy_overlap"] = figures["overlap_ms/serial"] / figures["overlap_ms/streams"];
  return figures;
}

}  // namespace ebb::bench
