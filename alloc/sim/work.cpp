// SPDX-License-Identifier: Apache-2.0
// Copies and fills by plain memory accesses, which sanitizers see. Any thread.
#include "sim/work.h"

#include <algorithm>
#include <cstring>

namespace ebb::inline v0 {

namespace {

void move_rows(std::byte* to, const std::byte* from, const CopyRows& rows) noexcept {
  if (rows.width.count() == 0) {
    return;
  }
  for (std::size_t row = 0; row < rows.rows; ++row) {
    std::memcpy(to + row * rows.to_pitch, from + row * rows.from_pitch, rows.width.count());
  }
}

}  // namespace

bool SimWork::is_legal() const noexcept {
  return std::all_of(touches.begin(), touches.end(),
                     [](const SimTouch& touch) { return touch.is_legal(); });
}

void run(const SimCopy& copy) noexcept {
  CopyRows rows = copy.rows;
  const void* from = copy.from;
  if (!copy.staged.empty()) {
    from = copy.staged.data();
    rows.from_pitch = rows.width.count();
  }
  move_rows(static_cast<std::byte*>(copy.to), static_cast<const std::byte*>(from), rows);
}

void run(const SimFill& fill) noexcept {
  auto* const to = static_cast<std::byte*>(fill.to);
  const std::size_t end = fill.pattern.width * fill.count;
  std::size_t done = std::min(end, fill.pattern.width);
  std::memcpy(to, &fill.pattern.bits, done);
  while (done < end) {  // what is there, once more
    const std::size_t more = std::min(done, end - done);
    std::memcpy(to + done, to, more);
    done += more;
  }
}

std::vector<std::byte> stage(const void* from, const CopyRows& rows) {
  CopyRows close = rows;
  close.to_pitch = rows.width.count();
  std::vector<std::byte> staged((rows.width * rows.rows).count());
  move_rows(staged.data(), static_cast<const std::byte*>(from), close);
  return staged;
}

}  // namespace ebb::inline v0
