// SPDX-License-Identifier: Apache-2.0
// Scopes and questions for embedders' tests.
#include <ebb/runtime/testing.h>

#include <stdexcept>
#include <string>

namespace ebb::inline v0::testing {

std::vector<StragglerPlace> live(const Runtime& rt) {
  return live_storages(*rt.domain());
}

std::uint64_t live_at(const Runtime& rt, std::string_view file, std::uint32_t line) {
  std::uint64_t count = 0;
  for (const StragglerPlace& p : live(rt)) {
    count += p.place.line == line && std::string_view(p.place.file).ends_with(file) ? p.count : 0;
  }
  return count;
}

void expect_nothing_alive(const Runtime& rt) {
  if (const std::vector<StragglerPlace> places = live(rt); !places.empty()) {
    throw std::logic_error("[expect_nothing_alive] " + to_string(places));
  }
}

Scope::Scope(Runtime& rt)
    : loop_(rt, {.name = "test scope",
                 .deadline = Milliseconds{0},
                 .policy = Policy::fail,
                 .warmup = 0,
                 .traces = false}) {}

void Scope::require(bool is_open, const char* function) const {
  if (iteration_.has_value() != is_open) {
    throw std::logic_error("[" + std::string(function) + "] " +
                           (is_open ? "no scope is open" : "a scope is open already: close() it"));
  }
}

Iteration& Scope::open(Place at) {
  require(false, "Scope::open");
  return iteration_.emplace(loop_, at);
}

Iteration& Scope::iteration() {
  require(true, "Scope::iteration");
  return *iteration_;
}

std::vector<StragglerPlace> Scope::alive() const {
  require(true, "Scope::alive");
  return live_storages(iteration_->owner());
}

CloseResult Scope::close() {
  require(true, "Scope::close");
  try {
    CloseResult result = iteration_->close();
    iteration_.reset();
    return result;
  } catch (...) {
    if (!iteration_->is_open()) {
      iteration_.reset();
    }
    throw;
  }
}

}  // namespace ebb::inline v0::testing
