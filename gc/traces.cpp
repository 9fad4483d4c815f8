// SPDX-License-Identifier: Apache-2.0
// Taking backtraces costs some microseconds; turning them into text is left to reports.
#include "traces.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <cxxabi.h>
#include <execinfo.h>

namespace ebb::inline v0::detail {
namespace {

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// "path/trainer(_Z4stepv+0x1f) [0x55d0]" becomes "step() (trainer+0x1f)"; what has no symbol stays
// "trainer(+0x11f)".
std::string readable(std::string_view line) {
  const std::size_t open = line.find('(');
  const std::size_t close = line.find(')', open);
  if (open == std::string_view::npos || close == std::string_view::npos) {
    return std::string(line);
  }
  const std::string_view path = line.substr(0, open);
  const std::string file(path.substr(path.rfind('/') + 1));
  const std::string_view inside = line.substr(open + 1, close - open - 1);
  const std::size_t plus = std::min(inside.rfind('+'), inside.size());
  const std::string symbol(inside.substr(0, plus));
  if (symbol.empty()) {
    return file + "(" + std::string(inside) + ")";
  }
  int status = 0;
  const std::unique_ptr<char, Free> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
  return (name != nullptr ? name.get() : symbol) + " (" + file + std::string(inside.substr(plus)) +
         ")";
}

bool has_name(const std::string& frame) {
  return frame.find(" (") != std::string::npos;
}

// Leaves out the frames of ebb's own at the inner end, some of which may have no name.
void drop_own(std::vector<std::string>& frames) {
  std::size_t own = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].rfind("ebb::", 0) == 0) {
      own = i + 1;
    } else if (has_name(frames[i])) {
      break;
    }
  }
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(own));
}

}  // namespace

std::uint64_t Traces::arm(std::span<const std::uint64_t> numbers) {
  disarm();
  for (const std::uint64_t number : numbers.first(std::min(numbers.size(), most))) {
    traces_.push_back({number, 0, {}});
  }
  return traces_.empty() ? never : traces_.front().number;
}

std::uint64_t Traces::take(std::uint64_t number) noexcept {
  Trace& trace = traces_[next_++];
  trace.number = number;
  trace.depth = ::backtrace(trace.frames.data(), static_cast<int>(trace.frames.size()));
  return next_ < traces_.size() ? traces_[next_].number : never;
}

std::vector<std::string> Traces::describe(std::uint64_t number) const {
  const auto taken = traces_.begin() + static_cast<std::ptrdiff_t>(next_);
  const auto trace =
      std::find_if(traces_.begin(), taken, [number](const Trace& t) { return t.number == number; });
  std::vector<std::string> frames;
  if (trace == taken) {
    return frames;
  }
  const std::unique_ptr<char*, Free> lines(::backtrace_symbols(trace->frames.data(), trace->depth));
  for (int i = 0; lines != nullptr && i < trace->depth; ++i) {
    frames.push_back(readable(lines.get()[i]));
    if (frames.back().rfind("main (", 0) == 0) {
      break;  // what starts the program says nothing
    }
  }
  drop_own(frames);
  return frames;
}

}  // namespace ebb::inline v0::detail
