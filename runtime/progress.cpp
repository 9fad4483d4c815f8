// SPDX-License-Identifier: Apache-2.0
// The progress bar: when to draw, and the text of a line. Used by trainers; drawing makes no heap
// call once the line has its length. One thread at a time.
#include <ebb/alloc/check.h>
#include <ebb/runtime/progress.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t bar_width = 20;
constexpr std::size_t default_columns = 80;

std::size_t columns_of(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return default_columns;
}

// Control characters of labels and notes would break the line.
void append_plain(std::string& line, std::string_view text) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// The width of UTF-8 text, one column a character.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

void cut_to_width(std::string& line, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!continues_character(line[i]) && ++width > columns) {
      line.resize(i);
      return;
    }
  }
}

void append_bar(std::string& line, double fraction) {
  const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(bar_width));
  line += '[';
  line.append(filled, '=');
  if (filled < bar_width) {
    line += '>';
    line.append(bar_width - filled - 1, ' ');
  }
  line += "] ";
}

template <class... Numbers>
void append_format(std::string& line, const char* format, Numbers... numbers) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, format, numbers...);
  line.append(text, std::min(static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1));
}

void append_duration(std::string& line, double seconds) {
  constexpr double longest = 1e9;  // 31 years; also keeps the conversion defined
  if (!(seconds >= 0 && seconds < longest)) {
    line += '-';
    return;
  }
  const long whole = std::lround(seconds);
  const long minutes = whole / 60;
  if (minutes < 60) {
    append_format(line, "%ld:%02ld", minutes, whole % 60);
  } else {
    append_format(line, "%ld:%02ld:%02ld", minutes / 60, minutes % 60, whole % 60);
  }
}

// At least three digits of a rate, and no more than people read.
void append_rate(std::string& line, double rate) {
  line += "step/s ";
  if (!std::isfinite(rate)) {
    line += '-';
  } else {
    append_format(line, "%.*f", rate >= 100 ? 0 : rate >= 10 ? 1 : 2, rate);
  }
}

}  // namespace

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : &steady_clock()),
      terminal_(false),
      started_(clock_->now()),
      next_draw_(started_) {
  EBB_REQUIRE(options_.out != nullptr, "Progress", "the option out is null");
  terminal_ = isatty(fileno(options_.out)) == 1;
  if (!terminal_) {
    next_draw_ = deadline_after(*clock_, options_.line_every);
  }
}

Progress::~Progress() {
  try {
    finish();
  } catch (...) {  // no memory for a line: there is no line
  }
}

void Progress::step(std::string_view note) {
  ++done_;
  open_ = true;
  if (!note.empty()) {
    note_.assign(note);
  }
  const TimePoint now = clock_->now();
  if (now >= next_draw_) {
    draw(now, false);
    next_draw_ = deadline_after(*clock_, terminal_ ? options_.redraw : options_.line_every);
  }
}

void Progress::finish() {
  if (open_) {
    draw(clock_->now(), true);
    open_ = false;
  }
}

void Progress::draw(TimePoint now, bool last) {
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  const auto done = static_cast<double>(done_);
  const auto total = static_cast<double>(options_.total);
  line_.clear();
  append_plain(line_, options_.label);
  line_ += ' ';
  if (options_.total > 0) {
    const double fraction = std::min(done / total, 1.0);
    append_format(line_, "%3d%% ", static_cast<int>(fraction * 100));
    if (terminal_) {
      append_bar(line_, fraction);
    }
    append_format(line_, "%llu/%llu ", static_cast<unsigned long long>(done_),
                  static_cast<unsigned long long>(options_.total));
  } else {
    append_format(line_, "%llu ", static_cast<unsigned long long>(done_));
  }
  append_rate(line_, elapsed > 0 ? done / elapsed : std::nan(""));
  if (last || options_.total == 0) {
    line_ += " in ";
    append_duration(line_, elapsed);
  } else {
    line_ += " eta ";
    append_duration(line_, elapsed / done * std::max(total - done, 0.0));
  }
  if (!note_.empty()) {
    line_ += "  ";
    append_plain(line_, note_);
  }
  write(last);
}

// One write per line, so that it does not mix with what others write to the same file.
void Progress::write(bool last) {
  if (terminal_) {
    cut_to_width(line_, columns_of(options_.out) - 1);  // the last column would wrap
    const std::size_t width = width_of(line_);
    line_.append(drawn_width_ > width ? drawn_width_ - width : 0, ' ');
    line_.insert(line_.begin(), '\r');
    drawn_width_ = last ? 0 : width;
  }
  if (last || !terminal_) {
    line_ += '\n';
  }
  std::fwrite(line_.data(), 1, line_.size(), options_.out);
  std::fflush(options_.out);
}

}  // namespace ebb::inline v0
