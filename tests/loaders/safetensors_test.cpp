// SPDX-License-Identifier: Apache-2.0
// safetensors files: what is read, and what is refused, by name and offset. [load.formats]
#include "npy_fixture.h"
#include "refused_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/safetensors.h>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using ebb::Bytes;
using ebb::DType;
using ebb::LoadErrorKind;
using ebb::test::bytes_of_number;
using ebb::test::check_refused;
using ebb::test::numbers;
using ebb::test::TempFolder;
using namespace std::string_literals;

namespace {

std::string safetensors(const std::string& header, const std::string& data) {
  return bytes_of_number<std::uint64_t>(header.size()) + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(": {"dtype": ")" + dtype + R"(", "shape": )" + shape +
         R"(, "data_offsets": )" + offsets + "}";
}

// "w", f32 [3, 2]; "y", i64 [3]; "b", bool [3]; then "u", u16 [3], which is not aligned.
std::string four() {
  return safetensors("{" + entry("y", "I64", "[3]", "[24, 48]") + "," +
                         R"("__metadata__": {"format": "pt", "note": "x\ny"},)" +
                         entry("w", "F32", "[3, 2]", "[0, 24]") + "," +
                         entry("b", "BOOL", "[3]", "[48, 51]") + "," +
                         entry("u", "U16", "[3]", "[51, 57]") + "}   ",
                     numbers<float>({1, 2, 3, 4, 5, 6}) + numbers<std::int64_t>({7, 8, 9}) +
                         "\0\1\2"s + numbers<std::uint16_t>({1, 2, 65535}));
}

template <class T>
std::vector<T> values_of(const ebb::Tensor& tensor) {
  const auto values = tensor.span<const T>();
  return {values.begin(), values.end()};
}

void check_bytes(const std::string& bytes, LoadErrorKind kind, std::optional<std::uint64_t> offset,
                 const std::string& text) {
  const TempFolder folder;
  const auto path = folder.write("x.safetensors", bytes);
  check_refused([&] { ebb::read_safetensors(path); }, {kind, path, offset, text});
}

void check_header(const std::string& entries, const std::string& text) {
  check_bytes(safetensors("{" + entries + "}", "abcd"), LoadErrorKind::corrupt, std::nullopt, text);
}

}  // namespace

TEST_CASE("safetensors: entries, metadata and tensors are those of the file") {
  const TempFolder folder;
  const auto path = folder.write("x.safetensors", four());
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  for (const bool copy : {false, true}) {
    const ebb::Safetensors file = ebb::read_safetensors(path, {.copy = copy});
    REQUIRE(file.entries().size() == 4);
    CHECK(file.entries()[0].name == "w");
    CHECK(file.entries()[3].name == "u");
    CHECK(file.entries()[3].type == "U16");
    CHECK(file.entries()[3].dtype == DType::i32);
    CHECK(file.entries()[1].bytes == Bytes{24});
    CHECK(file.metadata().at("format") == "pt");
    CHECK(file.metadata().at("note") == "x\ny");
    CHECK(file.find("z") == nullptr);
    const ebb::Tensor w = file.tensor(rt, "w");
    CHECK(w.shape() == ebb::Shape{3, 2});
    CHECK(values_of<float>(w) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK_THROWS_AS(w.data<float>(), std::invalid_argument);
    CHECK(values_of<std::int64_t>(file.tensor(rt, "y")) == std::vector<std::int64_t>{7, 8, 9});
    CHECK(values_of<bool>(file.tensor(rt, "b")) == std::vector<bool>{false, true, true});
    CHECK(values_of<std::int32_t>(file.tensor(rt, "u")) == std::vector<std::int32_t>{1, 2, 65535});
  }
}

TEST_CASE("safetensors: a tensor is the mapped file where it can be, and outlives the rest") {
  const TempFolder folder;
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  std::string header = "{" + entry("w", "F32", "[1]", "[0, 4]") + "}";
  header += std::string((8 - header.size() % 8) % 8, ' ');
  for (const bool is_aligned : {true, false}) {
    const std::string padded = is_aligned ? header : header + " ";
    const auto path = folder.write(is_aligned ? "x" : "y", safetensors(padded, "aaaa"));
    const ebb::Tensor w = ebb::read_safetensors(path).tensor(rt, "w");
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file << numbers<float>({5}) << std::flush;
    CHECK((w.span<const float>()[0] == 5) == is_aligned);
  }
}

TEST_CASE("safetensors: tensors without dimensions or elements, and other types, are entries") {
  const TempFolder folder;
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  const auto path =
      folder.write("x", safetensors("{" + entry("s", "F32", "[]", "[0, 4]") + "," +
                                        entry("n", "BF16", "[0, 3]", "[4, 4]") + "," +
                                        entry("f8", "F8_E4M3", "[2]", "[4, 6]") + "," +
                                        entry("f4", "F4", "[2, 2]", "[6, 8]") + "," +
                                        entry("new", "F3", "[2, 2]", "[8, 9]") + "}",
                                    numbers<float>({2.5f}) + "abcde"));
  const ebb::Safetensors file = ebb::read_safetensors(path);
  CHECK(file.entries().size() == 5);
  CHECK(file.tensor(rt, "s").item<float>() == 2.5f);
  CHECK(file.tensor(rt, "n").shape() == ebb::Shape{0, 3});
  CHECK(file.tensor(rt, "n").dtype() == DType::bf16);
  CHECK_FALSE(file.find("f8")->dtype.has_value());
  const auto shape = LoadErrorKind::shape;
  check_refused([&] { file.tensor(rt, "f8"); }, {shape, path, std::nullopt, "f8 is F8_E4M3"});
  check_refused([&] { file.tensor(rt, "new"); }, {shape, path, std::nullopt, "convert it"});
  check_refused([&] { file.tensor(rt, "z"); }, {shape, path, 8, "no tensor \"z\" among the 5"});
}

TEST_CASE("safetensors: a file that is not whole is refused at its byte") {
  const auto corrupt = LoadErrorKind::corrupt;
  const std::string good = four();
  check_bytes("", corrupt, 0, "empty");
  check_bytes("abc", corrupt, 3, "too short");
  check_bytes(std::string(8, '\xff') + "{}", corrupt, 0, "no safetensors file, or truncated");
  check_bytes(good.substr(0, 100), corrupt, 0, "truncated");
  check_bytes(good.substr(0, good.size() - 1), corrupt, good.size() - 1, "truncated");
  check_bytes(good + "x", corrupt, good.size(), "1 bytes follow");
  check_bytes(safetensors("[1, 2]", ""), corrupt, 8, "no object");
  check_bytes(safetensors("{\"a\": }", ""), corrupt, 14, "not JSON");
  check_bytes(safetensors("{\"\xff\": 1}", ""), corrupt, std::nullopt, "not JSON");
  check_bytes(safetensors("", ""), corrupt, 8, "not JSON");
}

TEST_CASE("safetensors: entries that cannot be are refused by name") {
  check_header(entry("w", "F32", "[1]", "[0, 4]") + "," + entry("w", "F32", "[1]", "[0, 4]"),
               "two tensors called w");
  check_header(entry("w", "U8", "[3]", "[0, 3]") + "," + entry("v", "U8", "[2]", "[2, 4]"),
               "v overlaps");
  check_header(entry("w", "U8", "[2]", "[0, 2]") + "," + entry("v", "U8", "[1]", "[3, 4]"),
               "v leaves a hole");
  check_header(entry("w", "U8", "[3]", "[1, 4]"), "w leaves a hole");
  check_header(entry("w", "F32", "[2]", "[0, 4]"), "w is F32[2], which does not take the 4 bytes");
  check_header(entry("w", "U8", "[4]", "[4, 0]"), "w would end at byte 0");
  check_header(entry("w", "U8", "[8]", "[0, 8]"), "truncated");
  check_header(entry("w", "U8", "[-4]", "[0, 4]"), "no number of 0 or more");
  check_header(entry("w", "U8", "[4.0]", "[0, 4]"), "no number of 0 or more");
  check_header(entry("w", "U8", "4", "[0, 4]"), "no shape");
  check_header(entry("w", "U8", "[1,1,1,1,1,1,1,1,4]", "[0, 4]"), "no shape of up to 8");
  check_header(entry("w", "U8", "[4]", "[0]"), "no data_offsets");
  check_header(entry("w", "U8", "[4]", "[-1, 4]"), "no data_offsets");
  check_header(entry("w", "U8", "[0, 4611686018427387904, 16]", "[0, 0]"), "overflows");
  check_header(entry("w", "F32", "[4294967296, 4294967296]", "[0, 4]"), "overflows");
  check_header(R"("w": 4)", "no dtype");
  check_header(R"("w": {"dtype": 4})", "no dtype");
  check_header(R"("__metadata__": 4)", "__metadata__ is no object");
  check_header(R"("__metadata__": {"a": 4})", "the value of a is no string");
  check_header(R"("w": [[[[[[[1]]]]]]])", "nested deeper");
  check_header(entry("w\\n", "U8", "[5]", "[0, 4]"), "w? is U8[5]");
}

TEST_CASE("safetensors: what is no file is refused with the system's reason") {
  const TempFolder folder;
  ebb::test::check_no_file(folder.path(), [](const auto& path) { ebb::read_safetensors(path); });
}

TEST_CASE("safetensors: tensors with equal first sizes are a data set") {
  const TempFolder folder;
  const auto path = folder.write("x.safetensors", four());
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  for (const Bytes memory_max : {Bytes{0}, Bytes{1 << 20}}) {
    const auto data = ebb::open_safetensors(path, {"w", "y", "u"}, {.memory_max = memory_max});
    CHECK(data.size() == 3);
    CHECK(data.name() == "x.safetensors");
    ebb::Loader loader(rt, data, {.batch = 3, .workers = 0, .shuffle = false});
    const auto batch = loader.next();
    REQUIRE(batch.has_value());
    CHECK(values_of<float>(batch->field("w")) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(values_of<std::int64_t>(batch->field("y")) == std::vector<std::int64_t>{7, 8, 9});
    CHECK(values_of<std::int32_t>(batch->field("u")) == std::vector<std::int32_t>{1, 2, 65535});
  }
  const auto x = folder.write("y", safetensors("{" + entry("w", "F32", "[1]", "[0, 4]") + "," +
                                                   entry("v", "U8", "[2]", "[4, 6]") + "}",
                                               "abcdef"));
  check_refused(
      [&] {
        ebb::open_safetensors(x, {"w", "v"});
      },
      {LoadErrorKind::shape, x, std::nullopt, "v: the shape is [2], but w has 1"});
  CHECK_THROWS_AS(ebb::open_safetensors(path, {}), std::invalid_argument);
}
