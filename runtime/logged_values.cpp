// SPDX-License-Identifier: Apache-2.0
// Values that a loop's body logs; those of devices in the order in which they were logged.
#include "logged_values.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/error.h>
#include <ebb/gc/domain.h>
#include <ebb/runtime/device_stream.h>

#include <algorithm>

namespace ebb::inline v0::detail {

void LoggedValues::Entry::add(double value) noexcept {
  last = value;
  sum += value;
  ++count;
}

std::size_t LoggedValues::find(std::string_view name) {
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [name](const Entry& e) { return e.name == name; });
  const auto index = static_cast<std::size_t>(entry - entries_.begin());
  if (entry == entries_.end()) {
    entries_.push_back({std::string(name)});
  }
  return index;
}

void LoggedValues::add(std::string_view name, double value) {
  const std::lock_guard lock(mutex_);
  entries_[find(name)].add(value);
}

void LoggedValues::add_later(std::string_view name, const Tensor& value) {
  EBB_REQUIRE(value.elements() == 1, "Iteration::log", "the shape ", to_string(value.shape()),
              " has ", std::to_string(value.elements()), " elements, not one");
  Domain& domain = value.storage().domain();
  const Device device = value.device();
  EBB_REQUIRE(!domain.device(device, "Iteration::log").is_capturing(), "Iteration::log",
              "while a graph is captured, no value comes: log it after the captured step");
  Tensor landing = empty_pinned(domain.long_lived(), device, value.shape(), value.dtype());
  landing.named("logged value").copy_(value);  // does not wait
  const Stream stream = value.stream();
  // The copy has recorded its end.
  const std::uint64_t next = domain.device(device, "Iteration::log").next_point(stream.lane());
  const std::lock_guard lock(mutex_);
  coming_.resize(coming_most);
  take_arrived();
  if (count_ == coming_most) {
    wait_for_oldest();
  }
  const std::size_t entry = find(name);
  coming_[(oldest_ + count_++) % coming_most] = {entry, std::move(landing), {stream, next - 1}};
}

// The next one to arrive is read.
void LoggedValues::take_oldest() {
  const Coming& oldest = coming_[oldest_];
  entries_[oldest.entry].add(oldest.landing.item<double>());
  drop_oldest();
}

void LoggedValues::drop_oldest() noexcept {
  coming_[oldest_].landing = Tensor();
  oldest_ = (oldest_ + 1) % coming_most;
  --count_;
}

// In their order, so that the last one is the last.
void LoggedValues::take_arrived() {
  while (count_ != 0) {
    const Coming& oldest = coming_[oldest_];
    DeviceContext& context =
        oldest.landing.storage().domain().device(oldest.point.stream.device, "Loop::logged");
    if (context.is_lost()) {
      drop_oldest();
    } else if (context.is_done(oldest.point)) {
      take_oldest();
    } else {
      return;
    }
  }
}

void LoggedValues::wait_for_oldest() {
  const Coming& oldest = coming_[oldest_];
  oldest.landing.storage().domain().wait_for(oldest.point, "Iteration::log");
  take_oldest();
}

std::vector<LoggedValue> LoggedValues::values() {
  const std::lock_guard lock(mutex_);
  take_arrived();
  std::vector<LoggedValue> values;
  values.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    const double mean = entry.count == 0 ? 0 : entry.sum / static_cast<double>(entry.count);
    values.push_back({entry.name, entry.last, mean, entry.count});
  }
  return values;
}

void LoggedValues::reset() noexcept {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    entry.sum = 0;
    entry.count = 0;
  }
}

void LoggedValues::finish() {
  const std::lock_guard lock(mutex_);
  take_arrived();
  while (count_ != 0) {
    wait_for_oldest();
  }
}

}  // namespace ebb::inline v0::detail
