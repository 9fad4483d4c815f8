// SPDX-License-Identifier: Apache-2.0
// CSV files: what is read, and what is refused, by line, column and offset. [load.formats]
#include "gzip_fixture.h"
#include "refused_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/csv.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

using ebb::CsvField;
using ebb::CsvHeader;
using ebb::CsvOptions;
using ebb::DType;
using ebb::LoadErrorKind;
using ebb::test::check_refused;
using ebb::test::contains;
using ebb::test::gzip;
using ebb::test::TempFolder;
using namespace std::string_literals;

namespace {

// "x" of two columns, and "y" of classes.
CsvOptions two_and_class() {
  return {.fields = {{.name = "x", .columns = {"a", "b"}},
                     {.name = "y", .columns = {"kind"}, .dtype = DType::i64, .classes = true}}};
}
// One field of one type.
CsvOptions one(DType dtype, const std::string& column = "a") {
  return {.fields = {{.name = "v", .columns = {column}, .dtype = dtype}}};
}

// The elements of a field, of all samples in order, as numbers of T.
template <class T>
std::vector<T> column_of(const ebb::AnyDataset& data, std::size_t field) {
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, data, {.batch = 3, .workers = 0, .shuffle = false});
  std::vector<T> all;
  while (const auto batch = loader.next()) {
    const ebb::Tensor values = batch->field(field);
    all.insert(all.end(), values.span<const T>().begin(), values.span<const T>().end());
  }
  return all;
}

template <class T>
std::vector<T> values(const std::string& text, const CsvOptions& options) {
  const TempFolder folder;
  return column_of<T>(ebb::open_csv(folder.write("t.csv", text), options), 0);
}

// Demands that a file of this text is refused when it is opened.
void check_text(const std::string& text, LoadErrorKind kind, std::uint64_t offset,
                const std::string& message, const CsvOptions& options) {
  const TempFolder folder;
  const auto path = folder.write("t.csv", text);
  check_refused([&] { ebb::open_csv(path, options); }, {kind, path, offset, message});
}
// Demands that it can be opened, and that a sample of it is refused.
void check_sample(const std::string& text, std::uint64_t index, std::uint64_t offset,
                  const std::string& message, const CsvOptions& options) {
  const TempFolder folder;
  const auto path = folder.write("t.csv", text);
  const ebb::AnyDataset data = ebb::open_csv(path, options);
  check_refused([&] { column_of<float>(data, 0); },
                {LoadErrorKind::corrupt, path, offset, message});
  const auto error = ebb::test::refused([&] { column_of<float>(data, 0); });
  CHECK(error->info().index == index);
  CHECK(error->info().dataset == "t.csv");
  CHECK(error->info().stage == "decode");
}

}  // namespace

TEST_CASE("csv: columns become fields, in the order that was asked for, and classes numbers") {
  const TempFolder folder;
  const std::string text =
      "kind,unused,b,a\r\n"
      "cat,?,2,1\r\n"
      "dog,?,4,3\r\n"
      "cat,?,6,-5.5\r\n";
  for (const auto& path : {folder.write("plain", text), folder.write("packed", gzip(text)),
                           folder.write("mark", "\xef\xbb\xbf" + text),
                           folder.write("open end", text.substr(0, text.size() - 2)),
                           folder.write("blank lines", "\n\r\n" + text + "\r\n\n\n")}) {
    CAPTURE(path.string());
    const ebb::CsvSet set = ebb::open_csv(path, two_and_class());
    CHECK(set.data.size() == 3);
    CHECK(set.data.name() == path.filename().string());
    CHECK(set.data.schema().fields[0].sample_shape == ebb::Shape{2});
    CHECK(set.data.schema().fields[1].sample_shape == ebb::Shape{});
    CHECK(set.vocabularies.at("y") == std::vector<std::string>{"cat", "dog"});
    CHECK(column_of<float>(set, 0) == std::vector<float>{1, 2, 3, 4, -5.5f, 6});
    CHECK(column_of<std::int64_t>(set, 1) == std::vector<std::int64_t>{0, 1, 0});
  }
}

TEST_CASE("csv: quoted cells have delimiters, lines' ends and quotes in them") {
  const TempFolder folder;
  const auto path = folder.write("t.csv",
                                 "a,b,kind\n"
                                 "\"1\",2,\"a,b\"\n"
                                 "3,4,\"two\nlines\"\r\n"
                                 "5,6,\"a \"\"word\"\"\"\n"
                                 "7,8,\"\"\"\"\n"
                                 "9,10,5\" disk\n"
                                 "\"11\",12,\"\r\n\"");
  const ebb::CsvSet set = ebb::open_csv(path, two_and_class());
  CHECK(set.vocabularies.at("y") ==
        std::vector<std::string>{"\r\n", "\"", "5\" disk", "a \"word\"", "a,b", "two\nlines"});
  CHECK(column_of<float>(set, 0) == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(column_of<std::int64_t>(set, 1) == std::vector<std::int64_t>{4, 5, 3, 1, 2, 0});
}

TEST_CASE("csv: records and cells are the same wherever a part of the file ends") {
  // Records of many lengths, some with lines within quotes, over several parts of 1 MiB.
  std::string text = "n,text\r\n";
  std::size_t count = 0;
  while (text.size() < (std::size_t{5} << 19)) {
    const std::string filling(count % 97, 'x');
    text += std::to_string(count) + (count % 3 == 0 ? ",\"" + filling + "\n\"\"," + "\"" : ",") +
            (count % 5 == 0 ? "\r\n" : "\n");
    ++count;
  }
  const TempFolder folder;
  for (const auto& path : {folder.write("plain", text), folder.write("packed", gzip(text))}) {
    const auto numbers = column_of<float>(ebb::open_csv(path, one(DType::f32, "n")), 0);
    REQUIRE(numbers.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(numbers[i] == static_cast<float>(i));
    }
  }
}

TEST_CASE("csv: what a quote means does not depend on where a part of the file ends") {
  const std::string block = "1,\"a,\"\"b\n\"\r\n2,5\" x\r\n\n3,\"\r\n\"\r\n4,\"\"\n5,c\r\n";
  const CsvOptions options{.fields = {{.name = "y",
                                       .columns = {"1"},
                                       .dtype = DType::i64,
                                       .vocabulary = {"a,\"b\n", "5\" x", "\r\n", "c"}}},
                           .missing = -1};
  const TempFolder folder;
  for (std::size_t before = 0; before <= block.size(); ++before) {
    CAPTURE(before);
    // Lines without anything, up to where a part of 1 MiB ends.
    const auto path = folder.write("t.csv", std::string((1 << 20) - before, '\n') + block);
    const auto classes = column_of<std::int64_t>(ebb::open_csv(path, options), 0);
    CHECK(classes == std::vector<std::int64_t>{0, 1, 2, -1, 3});
  }
}

TEST_CASE("csv: numbers are read as the dtype has them") {
  const std::string floats = "a\n 1.5\t\n+2\n-0.0\n1e3\n.5\n1e-46\ninf\n";
  CHECK(values<float>(floats, one(DType::f32)) ==
        std::vector<float>{1.5f, 2, -0.0f, 1000, 0.5f, 0, std::numeric_limits<float>::infinity()});
  CHECK(values<double>("a\n0.1\n1e300\n", one(DType::f64)) == std::vector<double>{0.1, 1e300});
  CHECK(static_cast<float>(values<ebb::Half>("a\n2.5\n", one(DType::f16))[0]) == 2.5f);
  CHECK(static_cast<float>(values<ebb::BFloat16>("a\n-3\n", one(DType::bf16))[0]) == -3);
  CHECK(values<std::int64_t>("a\n-9223372036854775808\n9007199254740993\n2.0\n", one(DType::i64)) ==
        std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 9007199254740993, 2});
  CHECK(values<std::int32_t>("a\n2147483647\n", one(DType::i32))[0] == 2147483647);
  CHECK(values<std::int16_t>("a\n-32768\n", one(DType::i16))[0] == -32768);
  CHECK(values<std::int8_t>("a\n-128\n", one(DType::i8))[0] == -128);
  CHECK(values<std::uint8_t>("a\n255\n255.0\n", one(DType::u8)) ==
        std::vector<std::uint8_t>{255, 255});
  const auto flags = values<bool>("a\n0\n1\nTrue\nFALSE\n", one(DType::boolean));
  CHECK(flags == std::vector<bool>{false, true, true, false});
}

TEST_CASE("csv: cells that are no numbers, or too large, are refused where they are") {
  const std::string head = "b,a\n1,1\n";
  const auto check = [&](const std::string& cell, DType dtype, const std::string& message) {
    CAPTURE(cell);
    check_sample(head + "2," + cell + "\n", 1, head.size() + 2,
                 "line 3: column \"a\": \"" + cell + "\" " + message, one(dtype));
  };
  check("abc", DType::f32, "is no f32");
  check("1.5.2", DType::f32, "is no f32");
  check("1 5", DType::f64, "is no f64");
  check("++1", DType::f32, "is no f32");
  check("+-1", DType::f32, "is no f32");
  check(" ", DType::f32, "is no f32");
  check("0x10", DType::i64, "is no i64");
  check("1e39", DType::f32, "does not fit into f32");
  check("1e400", DType::f64, "does not fit into f64");
  check("70000", DType::f16, "does not fit into f16");
  check("9223372036854775808", DType::i64, "does not fit into i64");
  check("256", DType::u8, "does not fit into u8");
  check("-1", DType::u8, "does not fit into u8");
  check("1e3", DType::u8, "does not fit into u8");
  check("2.5", DType::i32, "is no i32");
  check("nan", DType::i32, "is no i32");
  check("2", DType::boolean, "does not fit into bool");
  check("yes", DType::boolean, "is no bool");
  // What is told is in one line, and not long.
  check_sample("a\n\"b\n\"\n", 0, 2, "\"b \" is no f32", one(DType::f32));
  check_sample("a\n" + std::string(100, 'z'), 0, 2, "\"" + std::string(40, 'z') + "\"... is no f32",
               one(DType::f32));
}

TEST_CASE("csv: a record with another number of cells is refused at its line") {
  const auto check = [](const std::string& record, const std::string& message) {
    const std::string head = "a,b\n\"1\",\"2\n\"\n\n";
    CsvOptions options = one(DType::f32);
    check_sample(head + record + "\n3,4\n", 1, head.size(), "line 5: " + message, options);
  };
  check("5", "1 cell where the header has 2");
  check("5,6,7", "3 cells where the header has 2");
  check("5,6,", "3 cells where the header has 2");
  check_sample("1,2\n3\n", 1, 4, "line 2: 1 cell where the first record has 2",
               one(DType::f32, "0"));
  check_sample("a,b\n1,\"2\"3\n", 0, 9, "line 2: text follows a closing quote", one(DType::f32));
}

TEST_CASE("csv: what is missing is an error, or what the caller says") {
  const std::string text = "a,b\n1,2\n,4\nNA,6\n";
  check_sample(text, 1, 8, "line 3: column \"a\": \"\" is missing", one(DType::f32));
  CsvOptions options = one(DType::f32);
  options.missing = std::numeric_limits<double>::quiet_NaN();
  check_sample(text, 2, 11, "line 4: column \"a\": \"NA\" is no f32", options);
  options.missing_cells = {"", "NA"};
  const auto read = values<float>(text, options);
  CHECK(read[0] == 1);
  CHECK(std::isnan(read[1]));
  CHECK(std::isnan(read[2]));
  options.fields[0].dtype = DType::i64;
  check_sample(text, 1, 8, "is missing, and i64 has not the number", options);
  options.missing = -1;
  CHECK(values<std::int64_t>(text, options) == std::vector<std::int64_t>{1, -1, -1});
}

TEST_CASE("csv: a class that is not in the vocabulary is an error, not class 0") {
  const std::string text = "a,kind\n1,dog\n2,cat\n3,cow\n";
  CsvOptions options{.fields = {{.name = "y",
                                 .columns = {"kind"},
                                 .dtype = DType::i64,
                                 .vocabulary = {"dog", "cow", "cat"}}}};
  CHECK(values<std::int64_t>(text, options) == std::vector<std::int64_t>{0, 2, 1});
  options.fields[0].vocabulary.pop_back();
  check_sample(text, 1, 15, "line 3: column \"kind\": \"cat\" is no class of the vocabulary",
               options);
  // A missing class has no number of its own, unless the caller names one.
  options.fields[0].vocabulary = {"dog"};
  check_sample("kind,a\ndog,1\n,2\n", 1, 13, "is missing", options);
  options.missing = -100;
  CHECK(values<std::int64_t>("kind,a\ndog,1\n,2\n", options) == std::vector<std::int64_t>{0, -100});
}

TEST_CASE("csv: without a header columns have numbers") {
  CsvOptions options{.fields = {{.name = "x", .columns = {"2", "0"}}}};
  CHECK(values<float>("1,2,3\n4,5,6\n", options) == std::vector<float>{3, 1, 6, 4});
  check_text("1,2\n", LoadErrorKind::shape, 0,
             "line 1: there is no column \"2\": there are 2, counted from 0", options);
  options.fields[0].shape = ebb::Shape{2, 1, 1};
  const TempFolder folder;
  CHECK(ebb::open_csv(folder.write("t", "1,2,3\n"), options).data.schema().fields[0].sample_shape ==
        ebb::Shape{2, 1, 1});
  // Numbers may also be names.
  options.header = CsvHeader::yes;
  CHECK(values<float>("2,1,0\n4,5,6\n", options) == std::vector<float>{4, 6});
  options.header = CsvHeader::no;
  check_sample("a,b,c\n1,2,3\n", 0, 0, "if the file begins with a header, say so", options);
}

TEST_CASE("csv: other delimiters and quotes, and none") {
  CsvOptions options = two_and_class();
  options.delimiter = ';';
  options.quote = '\'';
  const TempFolder folder;
  const auto path = folder.write("t", "a;b;kind\n1;2;'x;\"y\"'\n");
  CHECK(ebb::open_csv(path, options).vocabularies.at("y").front() == "x;\"y\"");
  options.delimiter = '\t';
  options.quote = '\0';
  const auto tabs = folder.write("tabs", "a\tb\tkind\n1\t2\t\"\n3\t4\t'\n");
  CHECK(ebb::open_csv(tabs, options).vocabularies.at("y") == std::vector<std::string>{"\"", "'"});
}

TEST_CASE("csv: several files are one data set, each with its own order of columns") {
  const TempFolder folder;
  const auto first = folder.write("1.csv", "a,b,kind\n1,2,cat\n");
  const auto empty = folder.write("2.csv", "a,b,kind\n");
  const auto last = folder.write("3.csv", "kind,extra,b,a\nant,0,4,3\ncat,0,6,x\n");
  const ebb::CsvSet set = ebb::open_csv({first, empty, last}, two_and_class());
  CHECK(set.data.size() == 3);
  CHECK(set.vocabularies.at("y") == std::vector<std::string>{"ant", "cat"});
  check_refused([&] { column_of<float>(set, 0); },
                {LoadErrorKind::corrupt, last, 33, "line 3: column \"a\""});
}

TEST_CASE("csv: files that are none are refused with the place") {
  const CsvOptions options = two_and_class();
  check_text("", LoadErrorKind::corrupt, 0, "there is no record in it", options);
  check_text("\n\r\n", LoadErrorKind::corrupt, 0, "there is no record in it", options);
  check_text("a,b,kind\n", LoadErrorKind::shape, 0, "no record follows the header", options);
  check_text("a,kind\n1,2\n", LoadErrorKind::shape, 0,
             "line 1: there is no column \"b\": the header has \"a\", \"kind\"", options);
  check_text("\na,b,a,kind\n1,2,3,4\n", LoadErrorKind::shape, 1,
             "line 2: the header has \"a\" twice", options);
  check_text("a,b,kind\n1,2,\"x\n3,4,y\n", LoadErrorKind::corrupt, 13,
             "line 2: a quote that nothing closes", options);
  check_text("a,b,kind\n1,2,\"x \"\"y\n3,4,y\n", LoadErrorKind::corrupt, 13,
             "line 2: a quote that nothing closes", options);
  check_text("a,b,kind\n1,2\n", LoadErrorKind::corrupt, 9, "line 2: 2 cells where", options);
  check_text("\xff\xfe"s + "a\0,\0"s, LoadErrorKind::corrupt, 0, "UTF-16", options);
  const std::string packed = gzip("a,b,kind\n1,2,x\n");
  check_text(packed.substr(0, packed.size() - 1), LoadErrorKind::corrupt, packed.size() - 1,
             "ends early", options);
  const TempFolder folder;
  ebb::test::check_no_file(folder.path(), [&](const auto& path) { ebb::open_csv(path, options); });
}

TEST_CASE("csv: what a gzipped file unpacks to is bounded") {
  CsvOptions options = one(DType::f32);
  const std::string text = "a\n" + std::string(3000000, '1') + "\n";
  options.max_bytes = ebb::Bytes{text.size()};
  const TempFolder folder;
  const auto path = folder.write("t.csv.gz", gzip(text));
  CHECK(ebb::open_csv(path, options).data.size() == 1);
  options.max_bytes = ebb::Bytes{text.size() - 1};
  check_refused([&] { ebb::open_csv(path, options); },
                {LoadErrorKind::memory, path, text.size() - 1, "more than max_bytes"});
}

TEST_CASE("csv: a file that is cut after it was opened is an error, not a signal or zeros") {
  const TempFolder folder;
  const auto path = folder.write("t.csv", "a\n1\n2\n3\n");
  const ebb::AnyDataset data = ebb::open_csv(path, one(DType::f32));
  std::filesystem::resize_file(path, 5);
  check_refused([&] { column_of<float>(data, 0); },
                {LoadErrorKind::corrupt, path, 6, "was cut short"});
}

TEST_CASE("csv: options that cannot be are the caller's mistake") {
  const TempFolder folder;
  const auto path = folder.write("t.csv", "a,b\n1,2\n");
  const CsvField good{.name = "x", .columns = {"a", "b"}};
  const auto field = [&](const auto& change) {
    CsvField changed = good;
    change(changed);
    return CsvOptions{.fields = {changed}};
  };
  CHECK_NOTHROW(ebb::open_csv(path, {.fields = {good}}));
  for (const CsvOptions& options :
       {CsvOptions{}, CsvOptions{.fields = {good}, .delimiter = '\n'},
        CsvOptions{.fields = {good}, .delimiter = '"'},
        CsvOptions{.fields = {good}, .delimiter = '\0', .quote = '\0'},
        CsvOptions{.fields = {good}, .quote = '\r'},
        CsvOptions{.fields = {good}, .header = CsvHeader::no},
        field([](CsvField& f) { f.columns.clear(); }),
        field([](CsvField& f) { f.dtype = DType::string; }),
        field([](CsvField& f) { f.shape = ebb::Shape{3}; }),
        field([](CsvField& f) { f.classes = true; }), field([](CsvField& f) {
          f.dtype = DType::i8, f.vocabulary = {"a", "b", "a"};
        }),
        field([](CsvField& f) {
          f.dtype = DType::i8, f.vocabulary = {"a", ""};
        }),
        field([](CsvField& f) {
          f.dtype = DType::i8;
          for (int i = 0; i < 129; ++i) {
            f.vocabulary.push_back(std::to_string(i));
          }
        })}) {
    CHECK_THROWS_AS(ebb::open_csv(path, options), std::invalid_argument);
  }
  CHECK_THROWS_AS(ebb::open_csv(std::vector<std::filesystem::path>{}, {.fields = {good}}),
                  std::invalid_argument);
}

TEST_CASE("csv: the fingerprint tells contents and options apart") {
  const TempFolder folder;
  const std::string text = "a,b,kind\n1,2,x\n3,4,y\n";
  const auto path = folder.write("t.csv", text);
  const std::uint64_t plain = ebb::open_csv(path, two_and_class()).data.fingerprint();
  CHECK(ebb::open_csv(folder.write("copy", text), two_and_class()).data.fingerprint() == plain);
  CHECK(ebb::open_csv(folder.write("packed", gzip(text)), two_and_class()).data.fingerprint() ==
        plain);
  std::vector<CsvOptions> others(7, two_and_class());
  others[0].fields[0].columns = {"b", "a"};
  others[1].fields[0].dtype = DType::f64;
  others[2].fields[0].shape = ebb::Shape{2, 1};
  others[3].fields[1].vocabulary = {"y", "x"};
  others[4].missing = 0;
  others[5].fields[1].name = "z";
  others[6].missing_cells = {"?"};
  std::set<std::uint64_t> seen{plain};
  for (const CsvOptions& options : others) {
    CHECK(seen.insert(ebb::open_csv(path, options).data.fingerprint()).second);
  }
  const auto other = folder.write("other", "a,b,kind\n1,2,x\n3,5,y\n");
  CHECK(seen.insert(ebb::open_csv(other, two_and_class()).data.fingerprint()).second);
}
