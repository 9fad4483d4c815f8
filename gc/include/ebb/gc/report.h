// SPDX-License-Identifier: Apache-2.0
// What was still alive when an iteration closed, by place. Made by close, read by users.
// Values: free to copy and use on any thread.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/place.h>
#include <ebb/gc/clock.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// Where one straggler was made, if its number had straggled before: frames as
// "function (file+0x12)", innermost first.
struct StragglerTrace {
  std::uint64_t sequence = 0;
  std::vector<std::string> frames;
};

// The stragglers that were made at one place. [gc.report]
struct StragglerPlace {
  Place place;
  std::uint64_t count = 0;
  Bytes bytes;
  std::string what;            // the first one's birth note: dtype, shape, device
  std::string name;            // the first one's name, may be empty
  std::string phase;           // the Phase it was made in, may be empty
  std::string holder;          // who holds one of them, if a StorageHolder says; may be empty
  std::uint64_t sequence = 0;  // the first one's number among its iteration's storages
  std::uint64_t thread = 0;    // the thread that made it
  std::uint32_t streak = 1;    // closes in a row at which this place straggled
  bool waited = false;         // the deadline was spent on it (its first time)
  // Stragglers of earlier iterations from this place that are still alive, and how many iterations
  // ago the oldest of them was made.
  std::uint64_t earlier_count = 0;
  Bytes earlier_bytes;
  std::uint64_t age = 0;
  std::vector<StragglerTrace> traces;  // of some of them, once the place has straggled before
};

// Tasks and bound functions, by the place that started them.
struct JobPlace {
  Place place;
  std::uint64_t count = 0;
};

// What became of the stragglers.
enum class CloseAction {
  none,     // there were none
  adopted,  // the runtime owns them
  revoked,  // the same, and the memory of some was given up: see revoked_count
  failed,   // adopted, and StragglerError was thrown
};

struct StragglerReport {
  std::string loop;
  std::uint64_t iteration = 0;
  CloseAction action = CloseAction::none;
  Milliseconds waited{0};
  Milliseconds deadline{0};
  std::uint64_t count = 0;
  Bytes bytes;
  std::uint64_t revoked_count = 0;
  Bytes revoked_bytes;                 // of whole pages that went back
  std::uint64_t jobs = 0;              // tasks and bound functions that had not ended
  std::vector<JobPlace> jobs_started;  // those that have a place
  std::vector<StragglerPlace> places;

  // Returns the report as a few lines for people, without a newline at the end.
  std::string text() const;
  // Returns the report as one JSON object; docs/stragglers.md has its keys.
  std::string json() const;
};

// Returns "1.5 MiB" and the like.
std::string to_string(Bytes bytes);

}  // namespace ebb::inline v0
