// SPDX-License-Identifier: Apache-2.0
// A host built with CMake that limits TBB by a global_control: ebb stays below the limit, and the
// control is as it was. It feeds a loader from a data set of its own. An install test and a model.
#include <ebb/ebb.h>

#include <tbb/global_control.h>

#include <cstdint>
#include <cstdio>
#include <utility>

namespace {

// 100 samples whose value is their index.
struct Numbers {
  struct Local {};
  std::uint64_t size() const { return 100; }
  ebb::Schema schema() const { return {{{"x", ebb::DType::f32, {1}}}}; }
  std::uint64_t fingerprint() const { return 1; }
  void load(std::uint64_t index, Local& /*local*/, const ebb::SampleContext& /*context*/,
            ebb::SampleWriter& writer) const {
    writer.field<float>(0)[0] = static_cast<float>(index);
  }
};

float sum_of_an_epoch() {
  ebb::Runtime rt({.threads = 2});
  ebb::Loop loop(rt, {.name = "cmake_host"});
  ebb::Loader loader(rt, ebb::AnyDataset(Numbers{}), {.batch = 10, .seed = 1, .workers = 2});
  float sum = 0;
  for (auto& it : loop.over(loader)) {
    const auto [x] = it.fields<1>();
    for (std::int64_t i = 0; i < 10; ++i) {
      sum += x.template data<const float>()[i];
    }
  }
  loop.finish();
  return sum;
}

using Control = tbb::global_control;

std::size_t limit_now() {
  return Control::active_value(Control::max_allowed_parallelism);
}

}  // namespace

int main() {
  const std::size_t unlimited = limit_now();
  {
    Control limit(Control::max_allowed_parallelism, 1);
    if (const float sum = sum_of_an_epoch(); sum != 4950) {
      std::printf("the samples sum to %g, not 4950\n", static_cast<double>(sum));
      return 1;
    }
    if (limit_now() != 1) {
      std::puts("ebb changed the host's global_control");
      return 1;
    }
  }
  if (limit_now() != unlimited) {
    std::puts("ebb left a global_control behind");
    return 1;
  }
  std::printf("ebb %s under CMake, below the host's limit\n", ebb::version());
  return 0;
}
