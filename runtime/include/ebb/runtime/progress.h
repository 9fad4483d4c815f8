// SPDX-License-Identifier: Apache-2.0
// A progress bar on a terminal, plain lines elsewhere. One thread at a time.
#pragma once

#include <ebb/gc/clock.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ebb::inline v0 {

struct ProgressOptions {
  std::string label = "train";
  std::uint64_t total = 0;         // steps; 0: not known
  std::FILE* out = stderr;         // borrowed
  Milliseconds redraw{100};        // a bar is drawn at most this often
  Milliseconds line_every{10000};  // off a terminal: at most one line in this time
  const Clock* clock = nullptr;    // null: the machine's
};

// Draws "train  42% [=====>     ] 394/938 step/s 812 eta 0:03  loss 0.51": on a terminal in
// place and cut to its width, elsewhere as separate lines without bar and control characters.
// Errors of the file are ignored.
class Progress {
 public:
  // Throws std::invalid_argument when options.out is null.
  explicit Progress(ProgressOptions options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress();  // as finish()

  // Counts one step. note is copied and shown at the end of the line; empty: the last one stays.
  void step(std::string_view note = {});
  // Draws the last state, with the time it took, and ends the line; nothing without a step since
  // the last finish(). Further steps draw again.
  void finish();
  bool on_terminal() const noexcept { return terminal_; }

 private:
  void draw(TimePoint now, bool last);
  void write(bool last);

  ProgressOptions options_;
  const Clock* clock_;
  bool terminal_;
  bool open_ = false;  // a step was counted since the last finish()
  std::uint64_t done_ = 0;
  TimePoint started_;
  TimePoint next_draw_;
  std::string note_;
  std::string line_;             // kept for its memory
  std::size_t drawn_width_ = 0;  // of the line on the terminal, to be overwritten
};

}  // namespace ebb::inline v0
