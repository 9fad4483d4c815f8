// SPDX-License-Identifier: Apache-2.0
// For embedders' own tests: drive a scope step by step, ask what is alive, and fail when something
// is left. Works with any test framework: what is wrong is thrown, with names and places.
#pragma once

#include <ebb/gc/live.h>
#include <ebb/gc/manual_clock.h>
#include <ebb/runtime/loop.h>

#include <optional>
#include <string_view>
#include <vector>

namespace ebb::inline v0::testing {

// Returns all live storages of the runtime's pool by place; loaders' own are not among them.
std::vector<StragglerPlace> live(const Runtime& rt);
// Returns how many of them were made at line of a file whose path ends in file.
std::uint64_t live_at(const Runtime& rt, std::string_view file, std::uint32_t line);
// Runs deferred releases, then throws std::logic_error that lists what is alive, if anything is:
// for the end of a test.
void expect_nothing_alive(const Runtime& rt);

// One scope at a time, opened and closed by hand on the thread that made it. Waits for nothing:
// what is alive when it closes is a fault at once.
//
//   ebb::testing::Scope scope(rt);
//   scope.open();
//   my_step(model, batch);
//   scope.close();  // throws StragglerError, which names the lines that left something behind
class Scope {
 public:
  explicit Scope(Runtime& rt);

  // Throws std::logic_error when one is open.
  Iteration& open(Place at = Place::here());
  // Throws std::logic_error when none is open, as do the next two.
  Iteration& iteration();
  // Returns what is alive of the open scope.
  std::vector<StragglerPlace> alive() const;
  // Throws StragglerError if anything is alive or a job has not ended; the scope is closed anyway.
  CloseResult close();

  // Runs step(iteration) in a scope of its own, count times. Throws what close() throws, and what
  // step does; then that scope is still open.
  template <class Step>
  void run(std::uint64_t count, Step&& step, Place at = Place::here()) {
    for (std::uint64_t i = 0; i < count; ++i) {
      step(open(at));
      close();
    }
  }

 private:
  void require(bool is_open, const char* function) const;

  Loop loop_;
  std::optional<Iteration> iteration_;
};

}  // namespace ebb::inline v0::testing
