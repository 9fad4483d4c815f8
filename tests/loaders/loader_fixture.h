// SPDX-License-Identifier: Apache-2.0
// A runtime with a log that the test reads, data sets to load, and digests of what came. For the
// tests of loaders.
#pragma once

#include "support/executor_choice.h"
#include "support/process_status.h"

#include <ebb/ebb.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ebb::test {

// Lines of a runtime's log. Must outlive the runtime. Thread-safe.
class LogLines {
 public:
  LogHook hook() {
    return [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(text);
    };
  }
  std::size_t count(std::string_view part) const {
    const std::lock_guard lock(mutex_);
    std::size_t found = 0;
    for (const std::string& line : lines_) {
      found += line.find(part) != std::string::npos ? 1 : 0;
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;  // guards lines_
  std::vector<std::string> lines_;
};

// Sample i: "x" = {i, a random draw, epoch}, "y" = i. before is called first in load.
struct Numbers {
  struct Local {};
  using Before = std::function<void(std::uint64_t index, const SampleContext&)>;

  std::uint64_t count = 100;
  Before before = {};

  std::uint64_t size() const { return count; }
  std::uint64_t fingerprint() const { return count * 31 + 7; }
  std::string name() const { return "numbers"; }
  Schema schema() const { return {{{"x", DType::f32, {3}}, {"y", DType::i64, {}}}}; }
  void load(std::uint64_t index, Local& /*local*/, const SampleContext& context,
            SampleWriter& writer) const {
    if (before) {
      before(index, context);
    }
    const std::span<float> x = writer.field<float>(0);
    x[0] = static_cast<float>(index);
    x[1] = context.random("draw").uniform();
    x[2] = static_cast<float>(context.epoch());
    writer.field<std::int64_t>(1)[0] = static_cast<std::int64_t>(index);
  }
};

inline std::string bytes_of(const Tensor& tensor) {
  const auto* const begin = static_cast<const char*>(tensor.storage().data()) +
                            static_cast<std::size_t>(tensor.offset()) * size_of(tensor.dtype());
  return {begin, tensor.bytes().count()};
}

// A number that depends on all that a batch holds.
inline std::uint64_t digest(const Batch& batch) {
  std::string all = std::to_string(batch.epoch()) + "/" + std::to_string(batch.seq()) + "/";
  for (const std::uint64_t index : batch.indices()) {
    all += std::to_string(index) + ",";
  }
  for (std::size_t i = 0; i < 2; ++i) {
    all += to_string(batch.field(i).shape()) + bytes_of(batch.field(i));
  }
  return fnv1a(all);
}

// The digests of what is left of the current epoch.
inline std::vector<std::uint64_t> drain(Loader& loader) {
  std::vector<std::uint64_t> digests;
  while (const auto batch = loader.next()) {
    digests.push_back(digest(*batch));
    loader.closed(*batch);
  }
  return digests;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace ebb::test
