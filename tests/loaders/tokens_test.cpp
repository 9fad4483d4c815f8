// SPDX-License-Identifier: Apache-2.0
// Files of tokens: which windows there are, of which formats, and what is refused. [load.formats]
#include "refused_fixture.h"
#include "support/temporary_folder.h"
#include "token_fixture.h"

#include <ebb/loaders/tokens.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

using ebb::Bytes;
using ebb::LoadErrorKind;
using ebb::TokenFormat;
using ebb::TokenOptions;
using ebb::test::check_refused;
using ebb::test::llm_c;
using ebb::test::llm_c_u16;
using ebb::test::llm_c_u32;
using ebb::test::TempFolder;
using ebb::test::tokens;

namespace {

// The first token of x of each sample of an epoch, after checking that all others count up from it.
std::vector<std::int64_t> begins_of(const ebb::AnyDataset& data, std::uint64_t seed = 1,
                                    int epoch = 0, std::int64_t batch_size = 3) {
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, data, {.batch = batch_size, .seed = seed, .workers = 0, .shuffle = false});
  loader.begin_epoch(static_cast<std::uint64_t>(epoch));
  std::vector<std::int64_t> begins;
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    CHECK(x.shape() == y.shape());
    const auto xs = x.span<const std::int64_t>();
    const auto ys = y.span<const std::int64_t>();
    const auto window = static_cast<std::size_t>(x.size(1));
    for (std::size_t row = 0; row < xs.size(); row += window) {
      begins.push_back(xs[row]);
      for (std::size_t i = 0; i < window; ++i) {
        REQUIRE(xs[row + i] == xs[row] + static_cast<std::int64_t>(i));
        REQUIRE(ys[row + i] == xs[row] + static_cast<std::int64_t>(i) + 1);
      }
    }
  }
  return begins;
}

constexpr Bytes in_file{0};
constexpr Bytes in_memory{1 << 20};

void check_bytes(const std::string& bytes, const TokenOptions& options, LoadErrorKind kind,
                 std::optional<std::uint64_t> offset, const std::string& text) {
  const TempFolder folder;
  const auto path = folder.write("x.bin", bytes);
  check_refused([&] { ebb::open_tokens(path, options); }, {kind, path, offset, text});
}

}  // namespace

TEST_CASE("tokens: every format gives the same windows") {
  const TempFolder folder;
  const auto u16 = folder.write("u16", tokens<std::uint16_t>(0, 23));
  const auto u32 = folder.write("u32", tokens<std::uint32_t>(0, 23));
  const std::string npy = ebb::test::npy("<u2", "(23,)", tokens<std::uint16_t>(0, 23));
  const std::vector<std::int64_t> expected{0, 5, 10, 15};
  for (const Bytes memory_max : {in_file, in_memory}) {
    TokenOptions options{.window = 5, .memory_max = memory_max};
    for (const auto& path :
         {u16, folder.write("llm_c_u16", llm_c_u16(0, 23)),
          folder.write("llm_c_u32", llm_c_u32(0, 23)), folder.write("npy", npy)}) {
      const auto data = ebb::open_tokens(path, options);
      CHECK(data.size() == 4);
      CHECK(data.name() == path.filename());
      CHECK(begins_of(data) == expected);
    }
    options.format = TokenFormat::raw_u32;
    CHECK(begins_of(ebb::open_tokens(u32, options)) == expected);
  }
}

TEST_CASE("tokens: sample i begins at i * stride, as long as a window and one more fit") {
  const TempFolder folder;
  const auto path = folder.write("x", tokens<std::uint16_t>(0, 11));
  const auto begins = [&](std::int64_t window, std::int64_t stride) {
    return begins_of(ebb::open_tokens(path, {.window = window, .stride = stride}));
  };
  using std::vector;
  CHECK(begins(5, 0) == vector<std::int64_t>{0, 5});
  CHECK(begins(5, 1) == vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(begins(10, 3) == vector<std::int64_t>{0});
  CHECK(begins(3, 7) == vector<std::int64_t>{0, 7});
  CHECK(begins(3, 8) == vector<std::int64_t>{0});
  CHECK(begins(1, 4) == vector<std::int64_t>{0, 4, 8});
  check_refused([&] { ebb::open_tokens(path, {.window = 11}); },
                {LoadErrorKind::shape, path, 0, "11 tokens in all, and a window takes 11"});
}

TEST_CASE("tokens: several files are one sequence, which windows span") {
  const TempFolder folder;
  const std::vector<std::filesystem::path> files{
      folder.write("a", llm_c_u16(0, 7)), folder.write("b", llm_c_u32(7, 1)),
      folder.write("none", llm_c_u16(0, 0)), folder.write("c", llm_c_u16(8, 13))};
  for (const Bytes memory_max : {in_file, in_memory}) {
    for (const std::int64_t window : {1, 2, 3, 4, 7, 8, 19, 20}) {
      const auto data =
          ebb::open_tokens(files, {.window = window, .stride = 1, .memory_max = memory_max});
      CHECK(data.size() == static_cast<std::uint64_t>(21 - window));
      const auto begins = begins_of(data);
      for (std::size_t i = 0; i < begins.size(); ++i) {
        CHECK(begins[i] == static_cast<std::int64_t>(i));
      }
      CHECK(data.erased().source(0) == files[0].string());
    }
    const auto data = ebb::open_tokens(files, {.window = 2, .stride = 1, .memory_max = memory_max});
    CHECK(data.erased().source(6) == files[0].string());
    CHECK(data.erased().source(7) == files[1].string());
    CHECK(data.erased().source(8) == files[3].string());
  }
}

TEST_CASE("tokens: random windows are drawn by seed, epoch and sample, from all places alike") {
  const TempFolder folder;
  const auto a = folder.write("a", tokens<std::uint16_t>(0, 20));
  const auto b = folder.write("b", tokens<std::uint16_t>(20, 15));
  const TokenOptions options{.window = 5, .random = true, .samples = 3000};
  const auto data = ebb::open_tokens({a, b}, options);
  CHECK(data.size() == 3000);
  const auto first = begins_of(data);
  CHECK(first == begins_of(data, 1, 0, 7));
  CHECK(first != begins_of(data, 2));
  CHECK(first != begins_of(data, 1, 1));
  std::map<std::int64_t, int> counts;
  for (const std::int64_t begin : first) {
    ++counts[begin];
  }
  REQUIRE(counts.size() == 30);  // 0 to 29: 29 has the last token of all as its last of y
  CHECK(counts.begin()->first == 0);
  CHECK(counts.rbegin()->first == 29);
  double chi_square = 0;
  for (const auto& [begin, count] : counts) {
    chi_square += (count - 100.0) * (count - 100.0) / 100.0;
  }
  CHECK(chi_square < 58.3);  // 29 degrees of freedom, one in a thousand; the seed is fixed
  CHECK(ebb::open_tokens({a, b}, {.window = 5, .random = true}).size() == 6);
}

TEST_CASE("tokens: places beyond 4 GiB are read right") {
  const TempFolder folder;
  const auto path = folder.path() / "large";
  constexpr std::uint64_t token = 2'500'000'000;  // at 5 GB, more than 32 bits of tokens too
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  REQUIRE(file >= 0);
  const std::string last = tokens<std::uint16_t>(100, 5);
  const bool is_written = ::pwrite(file, last.data(), last.size(), token * 2) == 10;
  ::close(file);
  if (!is_written) {
    MESSAGE("skipped: no sparse file of 5 GB can be made here");
    return;
  }
  const auto data = ebb::open_tokens(path, {.window = 4});
  CHECK(data.size() == token / 4 + 1);
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, data, {.batch = 1, .workers = 0, .shuffle = false});
  ebb::LoaderState last_batch = loader.state();
  last_batch.seq = token / 4;
  loader.restore(last_batch);
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  const auto [x, y] = batch->fields<2>();
  CHECK(x.span<const std::int64_t>()[0] == 100);
  CHECK(y.span<const std::int64_t>()[3] == 104);
  CHECK_FALSE(loader.next().has_value());
}

TEST_CASE("tokens: the fingerprint is of contents and of what windows there are") {
  const TempFolder folder;
  const auto path = folder.write("a", tokens<std::uint16_t>(0, 23));
  const auto copy = folder.write("b", tokens<std::uint16_t>(0, 23));
  const auto other = folder.write("c", tokens<std::uint16_t>(1, 23));
  const auto of = [](const ebb::FilePaths& files, const TokenOptions& options) {
    return ebb::open_tokens(files, options).fingerprint();
  };
  const std::uint64_t first = of(path, {.window = 5});
  CHECK(first == of(copy, {.window = 5, .stride = 5, .memory_max = in_file, .name = "other"}));
  std::set<std::uint64_t> all{first,
                              of(other, {.window = 5}),
                              of({path, copy}, {.window = 5}),
                              of(path, {.window = 4}),
                              of(path, {.window = 5, .stride = 1}),
                              of(path, {.window = 5, .random = true}),
                              of(path, {.window = 5, .random = true, .samples = 9})};
  CHECK(all.size() == 7);
}

TEST_CASE("tokens: files that are not whole or another format are refused at their byte") {
  const auto corrupt = LoadErrorKind::corrupt;
  const auto shape = LoadErrorKind::shape;
  const TokenOptions two{.window = 2};
  const std::string good = llm_c_u16(0, 9);
  check_bytes("", two, corrupt, 0, "empty");
  check_bytes("abcde", two, corrupt, 5, "no whole number of tokens of 16 bits");
  check_bytes("abcdef", {.window = 1, .format = TokenFormat::raw_u32}, corrupt, 6, "32 bits");
  check_bytes(good.substr(0, 1000), two, corrupt, 1000, "truncated in the header");
  check_bytes(good.substr(0, good.size() - 1), two, corrupt, good.size() - 1, "truncated");
  check_bytes(good.substr(0, good.size() - 2), two, corrupt, 8, "promises 9 tokens, there are 8");
  check_bytes(good + "ab", two, corrupt, 8, "promises 9 tokens, there are 10");
  check_bytes(llm_c(20240520, 2, 0, ""), two, shape, 4, "version 2: version 1 is known");
  check_bytes(llm_c(20240801, 1, 0, ""), two, shape, 4, "version 1: version 7 is known");
  check_bytes(llm_c(20240522, 1, 0, ""), two, shape, 0, "evaluation");
  check_bytes(tokens<std::uint16_t>(0, 600), {.format = TokenFormat::llm_c}, corrupt, 0,
              "not one of llm.c's");
  check_bytes(tokens<std::uint16_t>(0, 600), {.format = TokenFormat::npy}, corrupt, 0,
              "not an npy file");
  check_bytes(ebb::test::npy("<i8", "(1,)", "12345678"), two, shape, 0, "astype('uint16')");
  check_bytes(ebb::test::npy("<u2", "(2, 2)", "12345678"), two, shape, 0, "no sequence");
  check_bytes(llm_c_u16(0, 0), two, shape, 1024, "0 tokens in all");
  const TempFolder folder;
  const auto packed = folder.write("x.bin.gz", "abcd");
  check_refused([&] { ebb::open_tokens(packed); }, {shape, packed, 0, "unpack it"});
  ebb::test::check_no_file(folder.path(), [](const auto& path) { ebb::open_tokens(path); });
}

TEST_CASE("tokens: a token outside the vocabulary, or a cut file, is the error of its window") {
  const TempFolder folder;
  const auto a = folder.write("a", tokens<std::uint16_t>(0, 4));
  const auto b = folder.write("b", tokens<std::uint16_t>(4, 8));
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  const auto error_of = [&](const ebb::AnyDataset& data) {
    ebb::Loader loader(rt, data, {.batch = 1, .workers = 0, .shuffle = false});
    return ebb::test::refused([&] {
      while (loader.next().has_value()) {
      }
    });
  };
  for (const Bytes memory_max : {in_file, in_memory}) {
    TokenOptions options{.window = 3, .vocabulary = 9, .memory_max = memory_max};
    const auto bad = error_of(ebb::open_tokens({a, b}, options));
    REQUIRE(bad.has_value());
    CAPTURE(std::string(bad->what()));
    CHECK(bad->kind() == LoadErrorKind::corrupt);
    CHECK(bad->info().index == 2);
    CHECK(ebb::test::contains(bad->what(), b.string() + " at byte 10: token 9 is not in"));
    options.vocabulary = 12;
    CHECK_FALSE(error_of(ebb::open_tokens({a, b}, options)).has_value());
  }
  const auto data = ebb::open_tokens({a, b}, {.window = 3, .memory_max = in_file});
  std::filesystem::resize_file(b, 5);
  const auto cut = error_of(data);
  REQUIRE(cut.has_value());
  CHECK(cut->kind() == LoadErrorKind::corrupt);
  CHECK(cut->info().index == 1);
  CHECK(ebb::test::contains(cut->what(), b.string() + " at byte 5"));
  CHECK(ebb::test::contains(cut->what(), "cut short"));
}

TEST_CASE("tokens: options that cannot be are the caller's mistake") {
  const TempFolder folder;
  const auto path = folder.write("x", tokens<std::uint16_t>(0, 20));
  for (const TokenOptions& options :
       {TokenOptions{.window = 0}, TokenOptions{.window = -1},
        TokenOptions{.window = std::int64_t{1} << 40}, TokenOptions{.window = 2, .stride = -1},
        TokenOptions{.window = 2, .stride = 2, .random = true},
        TokenOptions{.window = 2, .samples = 5}}) {
    CHECK_THROWS_AS(ebb::open_tokens(path, options), std::invalid_argument);
  }
  CHECK_THROWS_AS(ebb::open_tokens(std::vector<std::filesystem::path>{}), std::invalid_argument);
}
