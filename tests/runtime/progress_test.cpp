// SPDX-License-Identifier: Apache-2.0
// The progress bar in a file and on a pseudo-terminal, by a clock of its own.
// One thread.
#include <ebb/gc/manual_clock.h>
#include <ebb/runtime/progress.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace std::chrono_literals;
using ebb::Progress;

namespace {

std::string text_of(std::FILE* file) {
  std::fflush(file);
  std::rewind(file);
  std::string text;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    text.append(buffer, n);
  }
  return text;
}

struct TempFile {
  std::FILE* file = std::tmpfile();
  TempFile() { REQUIRE(file != nullptr); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() { std::fclose(file); }
};

// A terminal of the test's own, raw so that what is read is what was written.
struct Terminal {
  int reader = -1;
  std::FILE* out = nullptr;

  explicit Terminal(unsigned short columns) {
    int writer = -1;
    termios raw{};
    cfmakeraw(&raw);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    REQUIRE(openpty(&reader, &writer, nullptr, &raw, &size) == 0);
    REQUIRE(fcntl(reader, F_SETFL, O_NONBLOCK) == 0);
    out = fdopen(writer, "w");
    REQUIRE(out != nullptr);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    std::fclose(out);
    close(reader);
  }

  std::string read() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(reader, buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
};

// Returns what a terminal shows after text: lines, with \r going back to their beginning.
std::vector<std::string> screen_of(const std::string& text) {
  std::vector<std::string> lines{""};
  std::size_t column = 0;
  for (char c : text) {
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      std::string& line = lines.back();
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = c;
    }
  }
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace

TEST_CASE("progress: a file gets a line now and then, one at the end, and no control characters") {
  TempFile to;
  ebb::ManualClock clock;
  {
    Progress progress({.label = "train", .total = 100, .out = to.file, .clock = &clock});
    CHECK_FALSE(progress.on_terminal());
    for (int i = 0; i < 100; ++i) {
      clock.advance(250ms);
      progress.step("loss 0.5");
    }
  }
  CHECK(text_of(to.file) ==
        "train  40% 40/100 step/s 4.00 eta 0:15  loss 0.5\n"
        "train  80% 80/100 step/s 4.00 eta 0:05  loss 0.5\n"
        "train 100% 100/100 step/s 4.00 in 0:25  loss 0.5\n");
}

TEST_CASE("progress: finish ends it once, and an early end shows where it stopped") {
  TempFile to;
  ebb::ManualClock clock;
  {
    Progress progress({.label = "epoch 1", .total = 938, .out = to.file, .clock = &clock});
    progress.finish();
    clock.advance(1s);
    progress.step("a");
    progress.step();
    progress.finish();
    progress.finish();
    clock.advance(1s);
    progress.step("b");
  }
  CHECK(text_of(to.file) ==
        "epoch 1   0% 2/938 step/s 2.00 in 0:01  a\n"
        "epoch 1   0% 3/938 step/s 1.50 in 0:02  b\n");
}

TEST_CASE("progress: no total, no time, or too many steps still give plain numbers") {
  TempFile to;
  ebb::ManualClock clock;
  SUBCASE("no total") {
    {
      Progress progress({.label = "x", .out = to.file, .clock = &clock});
      progress.step();
      clock.advance(2h);
      progress.step();
    }
    CHECK(text_of(to.file) == "x 2 step/s 0.00 in 2:00:00\nx 2 step/s 0.00 in 2:00:00\n");
  }
  SUBCASE("no time has passed") {
    {
      Progress progress(
          {.label = "x", .total = 3, .out = to.file, .line_every = {}, .clock = &clock});
      progress.step();
    }
    CHECK(text_of(to.file) ==
          "x  33% 1/3 step/s - eta 0:00\n"
          "x  33% 1/3 step/s - in 0:00\n");
  }
  SUBCASE("more steps than the total") {
    {
      Progress progress({.label = "x", .total = 1, .out = to.file, .clock = &clock});
      clock.advance(1s);
      progress.step();
      progress.step();
    }
    CHECK(text_of(to.file) == "x 100% 2/1 step/s 2.00 in 0:01\n");
  }
  SUBCASE("an end that never comes") {
    constexpr auto endless = std::numeric_limits<std::uint64_t>::max();
    {
      Progress progress(
          {.label = "x", .total = endless, .out = to.file, .line_every = 1s, .clock = &clock});
      clock.advance(1s);
      progress.step();
    }
    CHECK(text_of(to.file).find("0% 1/18446744073709551615 step/s 1.00 eta -\n") !=
          std::string::npos);
  }
}

TEST_CASE("progress: control characters of labels and notes become spaces") {
  TempFile to;
  ebb::ManualClock clock;
  {
    Progress progress({.label = "a\tb", .total = 2, .out = to.file, .clock = &clock});
    clock.advance(1s);
    progress.step("line\nbreak \x1b[31m\x7f");
  }
  CHECK(text_of(to.file) == "a b  50% 1/2 step/s 1.00 in 0:01  line break  [31m \n");
}

TEST_CASE("progress: forever never draws before the end") {
  TempFile to;
  ebb::ManualClock clock;
  {
    Progress progress(
        {.label = "x", .total = 2, .out = to.file, .line_every = ebb::forever, .clock = &clock});
    clock.advance(1000h);
    progress.step();
    CHECK(text_of(to.file).empty());
  }
  CHECK_FALSE(text_of(to.file).empty());
}

TEST_CASE("progress: a terminal gets one line that is drawn over, at most once per redraw time") {
  Terminal terminal(80);
  ebb::ManualClock clock;
  Progress progress({.label = "train", .total = 10, .out = terminal.out, .clock = &clock});
  CHECK(progress.on_terminal());
  clock.advance(1s);
  progress.step("loss 2.125");
  CHECK(terminal.read() ==
        "\rtrain  10% [==>                 ] 1/10 step/s 1.00 eta 0:09  loss 2.125");
  clock.advance(99ms);
  progress.step("loss 2");
  CHECK(terminal.read().empty());
  clock.advance(1ms);
  progress.step("loss 2");
  const std::string drawn = terminal.read();
  CHECK(drawn.find("\rtrain  30% [======>             ] 3/10 step/s 2.73") == 0);
  CHECK(std::count(drawn.begin(), drawn.end(), '\n') == 0);
  progress.finish();
  CHECK(terminal.read().back() == '\n');
}

TEST_CASE("progress: a shorter line leaves nothing of a longer one on the terminal") {
  Terminal terminal(80);
  ebb::ManualClock clock;
  std::string all;
  {
    Progress progress({.label = "x", .total = 4, .out = terminal.out, .clock = &clock});
    clock.advance(1s);
    progress.step("a note that is rather long");
    clock.advance(1s);
    progress.step("short");
  }
  all = terminal.read();
  CHECK(screen_of(all) == std::vector<std::string>{
                              "x  50% [==========>         ] 2/4 step/s 1.00 in 0:02  short", ""});
}

TEST_CASE("progress: a line is cut to the terminal's width, between characters") {
  for (int columns : {1, 20, 67, 68, 69, 70}) {
    Terminal terminal(static_cast<unsigned short>(columns));
    ebb::ManualClock clock;
    Progress progress({.label = "x", .total = 4, .out = terminal.out, .clock = &clock});
    clock.advance(1s);
    progress.step("\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc");
    const std::string drawn = terminal.read();
    const auto width =
        std::count_if(drawn.begin(), drawn.end(), [](char c) { return (c & 0xc0) != 0x80; }) -
        1;  // not \r
    CHECK(width == std::min(columns - 1, 68));
    CHECK(drawn.find_last_of("\xc3") != drawn.size() - 1);
  }
}

TEST_CASE("progress: null is no file") {
  CHECK_THROWS_AS(Progress({.out = nullptr}), std::invalid_argument);
}
