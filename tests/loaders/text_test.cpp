// SPDX-License-Identifier: Apache-2.0
// Text by lines and by windows; vocabularies. [load.formats]
#include "gzip_fixture.h"
#include "refused_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/text.h>
#include <ebb/loaders/vocabulary.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <system_error>

using ebb::LineOptions;
using ebb::LoadErrorKind;
using ebb::TextOptions;
using ebb::test::check_refused;
using ebb::test::gzip;
using ebb::test::TempFolder;
using namespace std::string_literals;

namespace {

struct Rig {
  ebb::test::LogLines log;
  ebb::Runtime rt{{.executor = ebb::test::executor_choice(), .log = log.hook()}};
};

// All lines, in order, as the samples have them; what follows a line must be zeros.
std::vector<std::string> lines_of(const ebb::AnyDataset& data) {
  Rig rig;
  ebb::Loader loader(rig.rt, data, {.batch = 3, .workers = 0, .shuffle = false});
  std::vector<std::string> lines;
  while (const auto batch = loader.next()) {
    const auto [text, lengths] = batch->fields<2>();
    const auto columns = static_cast<std::size_t>(text.size(1));
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      const auto bytes = text.span<const std::uint8_t>().subspan(row * columns, columns);
      const auto end = bytes.begin() + lengths.span<const std::int64_t>()[row];
      CHECK(std::all_of(end, bytes.end(), [](std::uint8_t byte) { return byte == 0; }));
      lines.emplace_back(bytes.begin(), end);
    }
  }
  return lines;
}

std::vector<std::string> lines(const std::string& text, const LineOptions& options = {}) {
  const TempFolder folder;
  const auto plain = lines_of(ebb::open_lines(folder.write("t.txt", text), options));
  CHECK(lines_of(ebb::open_lines(folder.write("t.gz", gzip(text)), options)) == plain);
  return plain;
}

void check_lines(const std::string& text, std::uint64_t offset, const std::string& message,
                 const LineOptions& options = {}) {
  const TempFolder folder;
  const auto path = folder.write("t.txt", text);
  check_refused([&] { ebb::open_lines(path, options); },
                {LoadErrorKind::corrupt, path, offset, message});
}

using Strings = std::vector<std::string>;

// The windows of an epoch, each as x and the last token of y.
std::vector<std::vector<std::int64_t>> windows_of(const ebb::AnyDataset& data,
                                                  std::uint64_t epoch = 0, unsigned workers = 0) {
  Rig rig;
  ebb::Loader loader(rig.rt, data, {.batch = 2, .seed = 7, .workers = workers, .shuffle = false});
  loader.begin_epoch(epoch);
  std::vector<std::vector<std::int64_t>> windows;
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    const auto window = static_cast<std::size_t>(x.size(1));
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      const auto inputs = x.span<const std::int64_t>().subspan(row * window, window);
      const auto targets = y.span<const std::int64_t>().subspan(row * window, window);
      CHECK(std::equal(inputs.begin() + 1, inputs.end(), targets.begin()));
      windows.emplace_back(inputs.begin(), inputs.end());
      windows.back().push_back(targets.back());
    }
  }
  return windows;
}

}  // namespace

TEST_CASE("lines: a line is a sample, whatever ends it") {
  CHECK(lines("one\ntwo\r\nthree") == Strings{"one", "two", "three"});
  CHECK(lines("\xef\xbb\xbfone\n\n\r\ntwo\n\n") == Strings{"one", "two"});
  CHECK(lines("a\n\n\r\nb", {.keep_empty = true}) == Strings{"a", "", "", "b"});
  CHECK(lines("a\rb\nc\r\r\n") == Strings{"a\rb", "c\r"});
  CHECK(lines("\0x\n"s) == Strings{"\0x"s});
}

TEST_CASE("lines: the schema says how long a sample may be, and length how long it is") {
  const TempFolder folder;
  const auto data = ebb::open_lines(folder.write("t.txt", "one\nthree\n"), {.max_length = 10});
  CHECK(data.name() == "t.txt");
  const ebb::Field& text = data.schema().fields[0];
  CHECK(text.varies);
  CHECK(text.sample_shape == ebb::Shape{10});
  CHECK(text.pad == 0);
}

TEST_CASE("lines: those that are too long are refused, or cut between characters") {
  check_lines("one\nthree\n", 4, "line 2: 5 bytes, more than max_length, 4", {.max_length = 4});
  CHECK(lines("four\r\n", {.max_length = 4}) == Strings{"four"});
  const LineOptions cut{.max_length = 4, .cut_long = true};
  CHECK(lines("three\r\nfour\r\n", cut) == Strings{"thre", "four"});
  CHECK(lines("abc\xc3\xa9\n", cut) == Strings{"abc"});
  CHECK(lines("ab\xe2\x82\xac\n", cut) == Strings{"ab"});
  CHECK(lines("\xf0\x9f\x98\x80x\n", cut) == Strings{"\xf0\x9f\x98\x80"});
  CHECK(lines("a\xf0\x9f\x98\x80\n", cut) == Strings{"a"});
  CHECK(
      lines("\x80\x80\x80\x80\x80\n", {.max_length = 4, .cut_long = true, .keep_invalid = true}) ==
      Strings{"\x80\x80\x80\x80"});
  // A character that does not fit leaves nothing.
  CHECK(lines("\xc3\xa9\nb\n", {.max_length = 1, .cut_long = true}) == Strings{"b"});
}

TEST_CASE("lines: what is no UTF-8 is refused at its byte, or taken as it is") {
  CHECK(lines("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xef\xbf\xbf \xf0\x90\x80\x80 "
              "\xf4\x8f\xbf\xbf")
            .size() == 1);
  const std::string head = "12345678901234567\n";
  for (const std::string& bad : {"\x80"s, "\xc0\x80"s, "\xc1\xbf"s, "\xf5\x80\x80\x80"s, "\xff"s}) {
    check_lines(head + bad + "\n", head.size(), "line 2: no UTF-8", {});
  }
  for (const std::string& bad : {"\xe0\x9f\xbf"s, "\xed\xa0\x80"s, "\xf0\x8f\xbf\xbf"s,
                                 "\xf4\x90\x80\x80"s, "\xc3("s, "\xe2(\xa1"s}) {
    check_lines(head + bad + "\n", head.size() + 1, "line 2: no UTF-8", {});
  }
  check_lines(head + "a\xe2\x82\n", head.size() + 3, "line 2: no UTF-8: a character is cut short");
  check_lines(head + "a\xe2\x82", head.size() + 3, "line 2: no UTF-8: a character is cut short");
  CHECK(lines("\xff\xc0\n", {.keep_invalid = true}) == Strings{"\xff\xc0"});
}

TEST_CASE("lines: they are the same wherever a part of the file ends") {
  std::string text;
  Strings wanted;
  for (std::size_t i = 0; text.size() < (std::size_t{5} << 19); ++i) {
    std::string line = std::to_string(i);
    for (std::size_t more = 0; more < i % 40; ++more) {
      line += "\xe2\x82\xac";
    }
    text += line + (i % 2 == 0 ? "\n" : "\r\n");
    wanted.push_back(std::move(line));
  }
  CHECK(lines(text) == wanted);
  check_lines(text + "\xff", text.size(), "line " + std::to_string(wanted.size() + 1));
}

TEST_CASE("lines: files without lines, and what is no file, are refused") {
  const TempFolder folder;
  for (const std::string& text : {""s, "\n\r\n"s, "\xef\xbb\xbf"s}) {
    const auto path = folder.write("t.txt", text);
    check_refused([&] { ebb::open_lines(path); },
                  {LoadErrorKind::shape, path, 0, "there is no line"});
  }
  ebb::test::check_no_file(folder.path(), [](const auto& path) { ebb::open_lines(path); });
  const auto path = folder.write("t.txt", "one\n");
  for (const std::int64_t length : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 32}) {
    CHECK_THROWS_AS(ebb::open_lines(path, {.max_length = length}), std::invalid_argument);
  }
}

TEST_CASE("text: fixed windows lie side by side, and y is x shifted by one") {
  const TempFolder folder;
  const auto path = folder.write("t.txt", "abcdefgh");
  using Windows = std::vector<std::vector<std::int64_t>>;
  CHECK(windows_of(ebb::open_text(path, {.window = 3})) ==
        Windows{{'a', 'b', 'c', 'd'}, {'d', 'e', 'f', 'g'}});
  CHECK(windows_of(ebb::open_text(path, {.window = 3, .stride = 2})).size() == 3);
  CHECK(windows_of(ebb::open_text(path, {.window = 7})).size() == 1);
  CHECK(windows_of(ebb::open_text(folder.write("t.gz", gzip("abcdefgh")), {.window = 3})).back() ==
        std::vector<std::int64_t>{'d', 'e', 'f', 'g'});
  check_refused([&] { ebb::open_text(path, {.window = 8}); },
                {LoadErrorKind::shape, path, 0, "do not fit into 8 bytes"});
}

TEST_CASE("text: several files are one stream") {
  const TempFolder folder;
  const auto a = folder.write("a", "ab");
  const auto none = folder.write("none", "");
  const auto b = folder.write("b", "c");
  const auto c = folder.write("c", "defg");
  CHECK(windows_of(ebb::open_text({a, none, b, c}, {.window = 3})) ==
        windows_of(ebb::open_text(folder.write("all", "abcdefg"), {.window = 3})));
}

TEST_CASE("text: random windows are the same for every number of workers, and others each epoch") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 250; ++i) {
    text += static_cast<char>(i);
  }
  const auto data =
      ebb::open_text(folder.write("t", text), {.window = 2, .random = true, .samples = 2000}).data;
  CHECK(data.size() == 2000);
  const auto first = windows_of(data, 0, 0);
  CHECK(windows_of(data, 0, 3) == first);
  CHECK(windows_of(data, 1) != first);
  std::set<std::int64_t> begins;
  for (const auto& window : first) {
    CHECK(window[2] == window[0] + 2);
    begins.insert(window[0]);
  }
  CHECK(*begins.begin() <= 2);
  CHECK(*begins.rbegin() >= 245);
  CHECK(*begins.rbegin() <= 247);
}

TEST_CASE("text: compact tokens are places in the list of bytes that are used") {
  const TempFolder folder;
  const auto path = folder.write("t.txt", "banana\xff");
  const ebb::TextSet set = ebb::open_text(path, {.window = 6, .compact = true});
  CHECK(set.vocabulary == std::vector<std::uint8_t>{'a', 'b', 'n', 0xff});
  CHECK(windows_of(set).front() == std::vector<std::int64_t>{1, 0, 2, 0, 2, 0, 3});
  const ebb::TextSet other = ebb::open_text(
      folder.write("u.txt", "nab"), {.window = 2, .compact = true, .vocabulary = set.vocabulary});
  CHECK(windows_of(other).front() == std::vector<std::int64_t>{2, 0, 1});
  const auto bad = folder.write("v.txt", "na\nb");
  check_refused(
      [&] { ebb::open_text(bad, {.window = 2, .compact = true, .vocabulary = set.vocabulary}); },
      {LoadErrorKind::corrupt, bad, 2, "line 1: byte 10 is not in the vocabulary"});
}

TEST_CASE("text: parts of a text share no byte, and have one vocabulary") {
  const TempFolder folder;
  const auto path = folder.write("t.txt", "0123456789");
  const ebb::TextSet train = ebb::open_text(path, {.window = 1, .compact = true, .to = 0.7});
  const ebb::TextSet test = ebb::open_text(path, {.window = 1, .compact = true, .from = 0.7});
  CHECK(train.vocabulary == test.vocabulary);
  CHECK(windows_of(train).back() == std::vector<std::int64_t>{5, 6});
  CHECK(windows_of(test).front() == std::vector<std::int64_t>{7, 8});
  CHECK(train.data.size() + test.data.size() == 8);
}

TEST_CASE("text: options that cannot be are the caller's mistake, and all are in the fingerprint") {
  const TempFolder folder;
  const auto path = folder.write("t.txt", "0123456789");
  for (const TextOptions& options :
       {TextOptions{.window = 0}, TextOptions{.window = 2, .stride = -1},
        TextOptions{.window = 2, .samples = 3},
        TextOptions{.window = 2, .stride = 1, .random = true},
        TextOptions{.window = 2, .vocabulary = {'a'}},
        TextOptions{.window = 2, .compact = true, .vocabulary = {'a', 'a'}},
        TextOptions{.window = 2, .from = 0.5, .to = 0.5}, TextOptions{.window = 2, .from = -1},
        TextOptions{.window = 2, .to = 1.5}}) {
    CHECK_THROWS_AS(ebb::open_text(path, options), std::invalid_argument);
  }
  std::set<std::uint64_t> seen;
  for (const TextOptions& options :
       {TextOptions{.window = 2}, TextOptions{.window = 3}, TextOptions{.window = 2, .stride = 1},
        TextOptions{.window = 2, .random = true},
        TextOptions{.window = 2, .random = true, .samples = 9},
        TextOptions{.window = 2, .compact = true}, TextOptions{.window = 2, .from = 0.5},
        TextOptions{.window = 2, .to = 0.5}}) {
    CHECK(seen.insert(ebb::open_text(path, options).data.fingerprint()).second);
  }
  const auto other = folder.write("u.txt", "0123456780");
  CHECK(seen.insert(ebb::open_text(other, {.window = 2}).data.fingerprint()).second);
}

TEST_CASE("text: a file that is cut after it was opened is an error, not a signal or zeros") {
  const TempFolder folder;
  const auto path = folder.write("t.txt", "one\ntwo\n");
  const auto by_line = ebb::open_lines(path);
  const auto by_window = ebb::open_text(path, {.window = 7});
  std::filesystem::resize_file(path, 5);
  check_refused([&] { lines_of(by_line); }, {LoadErrorKind::corrupt, path, 5, "was cut short"});
  check_refused([&] { windows_of(by_window); }, {LoadErrorKind::corrupt, path, 5, "was cut short"});
}

TEST_CASE("vocabulary: what was saved is loaded, and what cannot be a list of names is refused") {
  const TempFolder folder;
  const auto path = folder.path() / "classes.txt";
  const Strings names{"cat", "dog with spaces ", "\xe2\x82\xac"};
  ebb::save_vocabulary(path, {"old"});
  ebb::save_vocabulary(path, names);
  CHECK(ebb::load_vocabulary(path) == names);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK(ebb::load_vocabulary(folder.write("crlf", "a\r\nb")) == Strings{"a", "b"});
  for (const Strings& bad : {Strings{""}, Strings{"a", "a"}, Strings{"a\nb"}, Strings{"a\r"}}) {
    CHECK_THROWS_AS(ebb::save_vocabulary(path, bad), std::invalid_argument);
  }
  CHECK(ebb::load_vocabulary(path) == names);
  CHECK_THROWS_AS(ebb::save_vocabulary(folder.path() / "no" / "folder", names), std::system_error);
  const auto check = [&](const std::string& text, std::uint64_t offset,
                         const std::string& message) {
    const auto bad = folder.write("bad", text);
    check_refused([&] { ebb::load_vocabulary(bad); },
                  {LoadErrorKind::corrupt, bad, offset, message});
  };
  check("", 0, "the file is empty");
  check("a\n\nb\n", 2, "line 2 is empty");
  check("a\nb\na\n", 4, "line 3 has \"a\" for the second time");
  ebb::test::check_no_file(folder.path(), [](const auto& file) { ebb::load_vocabulary(file); });
}
