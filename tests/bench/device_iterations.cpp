// SPDX-License-Identifier: Apache-2.0
#include "device_iterations.h"

#include "device_mlp.h"
#include "driver_calls.h"
#include "planned.h"
#include "trace.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace ebb::bench {
namespace {

constexpr std::int64_t filled_elements = 4096;  // small ones, so that filling takes no time

// Runs iterations, of which the first half is for planning; the second counts.
Figures run_iterations(BenchDevice& device, const std::string& name, int iterations,
                       const std::function<void(int)>& body) {
  ebb::Loop loop(device.runtime(), {.deadline = ebb::Milliseconds(0)});
  const int settled = iterations / 2;
  DriverCalls before;
  std::uint64_t followed_before = 0;
  for (int i = 0; i < iterations; ++i) {
    if (i == settled) {
      before = DriverCalls::so_far(device);
      followed_before = followed(loop);
    }
    {
      ebb::Iteration it(loop);
      body(i);
    }
    if (i < settled) {
      loop.wait_plan();
    }
  }
  const double counted = iterations - settled;
  Figures figures;
  add_calls(before, device, counted, name, figures);
  figures["planned_share/" + name] =
      static_cast<double>(followed(loop) - followed_before) / counted;
  loop.finish();
  return figures;
}

// Makes and drops the tensors of a trace, and queues some work on them.
class TraceTensors {
 public:
  explicit TraceTensors(const Trace& trace) : tensors_(trace.slots) {
    const auto ops = trace.ops();
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == OpKind::iteration) {
        parts_.push_back(ops.subspan(begin, i - begin));
        begin = i + 1;
      }
    }
  }

  int iterations() const { return static_cast<int>(parts_.size()) - 1; }
  void run_before() { run_part(parts_.front()); }
  void run(int iteration) { run_part(parts_[static_cast<std::size_t>(iteration) + 1]); }

 private:
  void run_part(std::span<const Op> ops) {
    for (const Op& op : ops) {
      if (op.kind == OpKind::free) {
        tensors_[op.slot] = ebb::Tensor();
        continue;
      }
      const auto bytes = static_cast<std::int64_t>(op.bytes);
      tensors_[op.slot] = ebb::empty({bytes}, ebb::DType::u8);
      if (bytes <= filled_elements) {
        tensors_[op.slot].fill_(1);
      }
    }
  }

  std::vector<std::span<const Op>> parts_;  // before the first iteration, and each one's
  std::vector<ebb::Tensor> tensors_;
};

}  // namespace

Figures measure_trace_iterations(const std::string& name, const std::string& path,
                                 const Effort& effort) {
  const auto trace = read_trace(path, effort.quick ? 10 : UINT64_MAX, ebb::default_align_cuda);
  BenchDevice device;
  const ebb::StreamScope on(device.runtime(), device.stream());
  TraceTensors tensors(*trace);
  tensors.run_before();
  return run_iterations(device, name, tensors.iterations(), [&](int i) { tensors.run(i); });
}

Figures measure_mlp_iterations(const Effort& effort) {
  BenchDevice device;
  DeviceMlp mlp(device, effort.quick ? 8 : 64);
  return run_iterations(device, "mlp_step", effort.quick ? 16 : 100, [&](int) { mlp.step(); });
}

}  // namespace ebb::bench
