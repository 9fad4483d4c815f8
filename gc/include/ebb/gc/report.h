// SPDX-License-Identifier: Apache-2.0
// What was still alive when an iteration closed, by place. Made by close, read by users.
// Values: free to copy and use on any thread.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/gc/clock.h>
#include <ebb/gc/place.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// The stragglers that were made at one place. [gc.report]
struct StragglerPlace {
  Place place;
  std::uint64_t count = 0;
  Bytes bytes;
  std::string what;            // the first one's birth note: dtype, shape, device
  std::string name;            // the first one's name, may be empty
  std::string phase;           // the Phase it was made in, may be empty
  std::uint64_t sequence = 0;  // the first one's number among its iteration's storages
  std::uint64_t thread = 0;    // the thread that made it
  std::uint32_t streak = 1;    // closes in a row at which this place straggled
  bool waited = false;         // the deadline was spent on it (its first time)
};

enum class CloseAction { none, adopted, failed };

struct StragglerReport {
  std::string loop;
  std::uint64_t iteration = 0;
  CloseAction action = CloseAction::none;
  Milliseconds waited{0};
  Milliseconds deadline{0};
  std::uint64_t count = 0;
  Bytes bytes;
  std::uint64_t jobs = 0;  // tasks and bound functions that had not ended
  std::vector<StragglerPlace> places;

  // Returns the report as a few lines for people, without a newline at the end.
  std::string text() const;
  // Returns the report as one JSON object; gc/README.md has its keys.
  std::string json() const;
};

// Returns "1.5 MiB" and the like.
std::string to_string(Bytes bytes);

}  // namespace ebb::inline v0
