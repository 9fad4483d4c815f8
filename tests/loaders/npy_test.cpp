// SPDX-License-Identifier: Apache-2.0
// npy files: what is read, and what is refused, by name and offset. [load.formats] [load.error]
#include "npy_fixture.h"
#include "numpy_fixture.h"
#include "refused_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/npy.h>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using ebb::DType;
using ebb::LoadErrorKind;
using ebb::test::check_refused;
using ebb::test::npy;
using ebb::test::npy_of;
using ebb::test::numbers;
using ebb::test::TempFolder;
using namespace std::string_literals;

namespace {

template <class T>
std::vector<T> values_of(const ebb::NpyArray& array) {
  CHECK(array.dtype() == ebb::dtype_of<T>);
  std::vector<T> values(array.bytes().size() / sizeof(T));
  std::memcpy(static_cast<void*>(values.data()), array.bytes().data(), array.bytes().size());
  return values;
}

// Demands that an npy file of these bytes is refused at offset.
void check_bytes(const std::string& bytes, LoadErrorKind kind, std::optional<std::uint64_t> offset,
                 const std::string& text) {
  const TempFolder folder;
  const auto path = folder.write("x.npy", bytes);
  check_refused([&] { ebb::read_npy(path); }, {kind, path, offset, text});
  check_refused([&] { ebb::open_npy({{"x", path}}); }, {kind, path, offset, text});
}

std::string dictionary(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}";
}

}  // namespace

TEST_CASE("npy: arrays of every dtype are read as they were saved") {
  const TempFolder folder;
  const auto read = [&](const std::string& bytes) {
    return ebb::read_npy(folder.write("x.npy", bytes));
  };
  using std::vector;
  CHECK(values_of<float>(read(npy("<f4", "(2,)", numbers<float>({1.5f, -2})))) ==
        vector<float>{1.5f, -2});
  CHECK(values_of<double>(read(npy("<f8", "(2, 1)", numbers<double>({1.5, -2})))) ==
        vector<double>{1.5, -2});
  CHECK(values_of<std::int8_t>(read(npy("|i1", "(2,)", "\1\377"))) == vector<std::int8_t>{1, -1});
  CHECK(values_of<std::uint8_t>(read(npy("|u1", "(2,)", "\1\377"))) ==
        vector<std::uint8_t>{1, 255});
  CHECK(values_of<std::int16_t>(read(npy("<i2", "(2,)", numbers<std::int16_t>({5, -6})))) ==
        vector<std::int16_t>{5, -6});
  CHECK(values_of<std::int32_t>(read(npy("<i4", "(2,)", numbers<std::int32_t>({5, -6})))) ==
        vector<std::int32_t>{5, -6});
  CHECK(values_of<std::int64_t>(read(npy("<i8", "(2,)", numbers<std::int64_t>({5, -6})))) ==
        vector<std::int64_t>{5, -6});
  CHECK(read(npy("<f2", "(2,)", numbers<std::uint16_t>({0x3c00, 0xc000}))).dtype() == DType::f16);
}

TEST_CASE("npy: what tensors do not have is widened, and other byte orders are turned") {
  const TempFolder folder;
  const auto read = [&](const std::string& bytes) {
    return ebb::read_npy(folder.write("x.npy", bytes));
  };
  using std::vector;
  CHECK(values_of<std::int32_t>(read(npy("<u2", "(2,)", numbers<std::uint16_t>({1, 65535})))) ==
        vector<std::int32_t>{1, 65535});
  CHECK(values_of<std::int32_t>(read(npy(">u2", "(2,)", "\0\1\1\0"s))) ==
        vector<std::int32_t>{1, 256});
  CHECK(values_of<std::int64_t>(read(npy("<u4", "(2,)", numbers<std::uint32_t>({1, ~0u})))) ==
        vector<std::int64_t>{1, 4294967295});
  CHECK(values_of<std::int64_t>(read(npy("<u8", "(1,)", numbers<std::uint64_t>({7})))) ==
        vector<std::int64_t>{7});
  CHECK(values_of<std::int16_t>(read(npy(">i2", "(2,)", "\0\5\377\372"s))) ==
        vector<std::int16_t>{5, -6});
  CHECK(values_of<float>(read(npy(">f4", "(1,)", "\x3f\xc0\0\0"s))) == vector<float>{1.5f});
  CHECK(values_of<double>(read(npy(">f8", "(1,)", "\x3f\xf8\0\0\0\0\0\0"s))) ==
        vector<double>{1.5});
  const auto bools = read(npy("|b1", "(3,)", "\0\1\7"s));
  CHECK(bools.dtype() == DType::boolean);
  CHECK(std::to_integer<int>(bools.bytes()[2]) == 1);
  check_refused(
      [&] {
        read(npy("<u8", "(2,)", numbers<std::uint64_t>({7, ~0ull})));
      },
      {LoadErrorKind::shape, folder.path() / "x.npy", 136, "element 1"});
}

TEST_CASE("npy: Fortran order becomes C order") {
  const TempFolder folder;
  // The array a[i][j][k] = 100 i + 10 j + k of 2 x 3 x 2, the first dimension fastest.
  std::string data;
  std::vector<std::int32_t> expected;
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) {
        data += numbers<std::int32_t>({100 * i + 10 * j + k});
      }
    }
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 2; ++k) {
        expected.push_back(100 * i + 10 * j + k);
      }
    }
  }
  const auto path = folder.write("x.npy", npy("<i4", "(2, 3, 2)", data, true));
  const ebb::NpyArray array = ebb::read_npy(path);
  CHECK(array.shape() == ebb::Shape{2, 3, 2});
  CHECK(values_of<std::int32_t>(array) == expected);
}

TEST_CASE("npy: shapes of no dimension and of no element are read") {
  const TempFolder folder;
  const auto scalar =
      ebb::read_npy(folder.write("x.npy", npy("<i4", "()", numbers<std::int32_t>({3}))));
  CHECK(scalar.shape() == ebb::Shape{});
  CHECK(values_of<std::int32_t>(scalar) == std::vector<std::int32_t>{3});
  const auto none = ebb::read_npy(folder.write("y.npy", npy("<i4", "(0, 3)", "")));
  CHECK(none.shape() == ebb::Shape{0, 3});
  CHECK(none.bytes().empty());
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  CHECK(none.tensor(rt).elements() == 0);
}

TEST_CASE("npy: a tensor of a file is read-only, is mapped if it can be, and outlives all else") {
  const TempFolder folder;
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  const auto path = folder.write("x.npy", npy("<f4", "(2, 2)", numbers<float>({1, 2, 3, 4})));
  const auto turned =
      folder.write("y.npy", npy("<f4", "(2, 2)", numbers<float>({1, 3, 2, 4}), true));
  for (const ebb::Tensor& tensor :
       {ebb::read_npy(rt, path), ebb::read_npy(rt, path, {.copy = true}),
        ebb::read_npy(rt, turned)}) {
    CHECK(tensor.shape() == ebb::Shape{2, 2});
    const auto values = tensor.span<const float>();
    CHECK(std::vector<float>(values.begin(), values.end()) == std::vector<float>{1, 2, 3, 4});
    CHECK_THROWS_AS(tensor.data<float>(), std::invalid_argument);
  }
  const ebb::Tensor mapped = ebb::read_npy(rt, path);
  const ebb::Tensor copied = ebb::read_npy(rt, path, {.copy = true});
  // What is written to the file is seen through the mapping, and only there.
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-4, std::ios::end);
  file << numbers<float>({5}) << std::flush;
  CHECK(mapped.span<const float>()[3] == 5);
  CHECK(copied.span<const float>()[3] == 4);
}

TEST_CASE("npy: headers of every version, key order and spelling are read") {
  const TempFolder folder;
  const std::string data = numbers<std::int16_t>({1, 2});
  for (const std::string& bytes :
       {npy_of(dictionary("'<i2'", "False", "(2,)"), data, 1),
        npy_of(dictionary("'<i2'", "False", "(2,)"), data, 2),
        npy_of(dictionary("'<i2'", "False", "(2,)"), data, 3),
        npy_of("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<i2\"}", data),
        npy_of("{ 'fortran_order' : True, 'descr' : '=i2', 'shape' : ( 2 , ) , }  ", data)}) {
    CHECK(values_of<std::int16_t>(ebb::read_npy(folder.write("x", bytes))) ==
          std::vector<std::int16_t>{1, 2});
  }
}

TEST_CASE("npy: a malformed header is refused at its byte") {
  const auto corrupt = LoadErrorKind::corrupt;
  const std::string good = npy("<i4", "(1,)", "abcd");
  check_bytes("", corrupt, 0, "empty");
  check_bytes("hello, this is a text", corrupt, 0, "not an npy file");
  check_bytes("PK\3\4 is an archive", corrupt, 0, "open_npz");
  check_bytes("\x1f\x8b\b is gzip .......", corrupt, 0, "gzipped");
  check_bytes(good.substr(0, 4), corrupt, 4, "truncated in the header");
  check_bytes(good.substr(0, 11), corrupt, 11, "truncated in the header");
  check_bytes(good.substr(0, 6) + "\7" + good.substr(7), corrupt, 6, "version 7");
  check_bytes(good.substr(0, 8) + "\xff\xff" + good.substr(10), corrupt, 8, "65535 bytes");
  check_bytes(npy_of("[1, 2]", ""), corrupt, 10, "{ is missing");
  check_bytes(npy_of("{'descr': '<i4'}", "abcd"), corrupt, std::nullopt, "lacks");
  check_bytes(npy_of(dictionary("'<i4'", "Maybe", "(1,)"), "abcd"), corrupt, 44, "False");
  check_bytes(npy_of(dictionary("'<i4'", "False", "(-1,)"), "abcd"), corrupt, 61, "no number of 0");
  check_bytes(npy_of(dictionary("'<i4'", "False", "(99999999999999999999,)"), "abcd"), corrupt, 61,
              "no number of 0");
  check_bytes(npy_of(dictionary("'<i4'", "False", "(1"), ""), corrupt, std::nullopt, "missing");
  check_bytes(npy_of("{'descr': '<i4, ", ""), corrupt, 21, "does not end");
  check_bytes(npy_of(dictionary("'<i4'", "False", "(1,), 'x': 1"), "abcd"), corrupt, std::nullopt,
              "unknown key, x");
  check_bytes(npy_of("{'descr': '<i4', 'descr': '<i4'}", "abcd"), corrupt, std::nullopt, "twice");
  check_bytes(npy_of(dictionary("'<i4'", "False", "(1,)") + " 7", "abcd"), corrupt, std::nullopt,
              "follows the dictionary");
}

TEST_CASE("npy: elements that no tensor has are refused with what to save instead") {
  const auto shape = LoadErrorKind::shape;
  check_bytes(npy("|O", "(1,)", "pickle.."), shape, std::nullopt, "Python objects");
  check_bytes(npy("<c8", "(1,)", "12345678"), shape, std::nullopt, ".real and .imag");
  check_bytes(npy("<U4", "(1,)", std::string(16, 'x')), shape, std::nullopt, "strings");
  check_bytes(npy("|S4", "(1,)", "abcd"), shape, std::nullopt, "strings");
  check_bytes(npy("<M8[ns]", "(1,)", "12345678"), shape, std::nullopt, "int64");
  check_bytes(npy("|V2", "(1,)", "12"), shape, std::nullopt, "bfloat16");
  check_bytes(npy("<f16", "(1,)", std::string(16, 'x')), shape, std::nullopt, "float32");
  check_bytes(npy("", "(1,)", "x"), shape, std::nullopt, "float32");
  check_bytes(npy_of(dictionary("[('a', '<f4')]", "False", "(1,)"), "abcd"), shape, std::nullopt,
              "each field apart");
  check_bytes(npy("|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "x"), shape, std::nullopt, "9 dimensions");
}

TEST_CASE("npy: missing or additional data, and sizes that cannot be, are refused") {
  const auto corrupt = LoadErrorKind::corrupt;
  const std::string good = npy("<i4", "(2,)", "abcdefgh");
  check_bytes(good.substr(0, good.size() - 1), corrupt, good.size() - 1, "truncated");
  check_bytes(good + "x", corrupt, good.size(), "numpy.savez");
  const long before = ebb::test::self_status("VmPeak:");
  check_bytes(npy("<i4", "(1000000000, 1000)", "abcd"), corrupt, 132, "truncated");
  check_bytes(npy("<f8", "(4294967296, 4294967296)", "abcd"), corrupt, 128, "overflows");
  check_bytes(npy("<f8", "(0, 4294967296, 4294967296)", ""), corrupt, 128, "overflows");
  CHECK(ebb::test::self_status("VmPeak:") - before < 64 * 1024);
}

TEST_CASE("npy: what is no file is refused with the system's reason") {
  const TempFolder folder;
  ebb::test::check_no_file(folder.path(), [](const auto& path) { ebb::read_npy(path); });
  std::filesystem::remove(folder.path() / "pipe");
  ebb::test::check_no_file(folder.path(), [](const auto& path) { ebb::open_npy({{"x", path}}); });
}

TEST_CASE("npy: what NumPy writes is read") {
  const TempFolder folder;
  if (!ebb::test::run_numpy(folder.path(), R"(
np.save('f4.npy', np.arange(24, dtype='<f4').reshape(2, 3, 4))
np.save('fortran.npy', np.asfortranarray(np.arange(24, dtype='>i8').reshape(2, 3, 4)))
np.save('bool.npy', np.array([[True], [False]]))
np.save('scalar.npy', np.float64(0.5))
np.save('u2.npy', np.array([0, 65535], dtype='uint16'))
np.save('object.npy', np.array([{}, None], dtype=object), allow_pickle=True)
)")) {
    MESSAGE("skipped: python3-numpy is not installed");
    return;
  }
  const auto f4 = ebb::read_npy(folder.path() / "f4.npy");
  CHECK(f4.shape() == ebb::Shape{2, 3, 4});
  CHECK(values_of<float>(f4)[23] == 23);
  const auto fortran = values_of<std::int64_t>(ebb::read_npy(folder.path() / "fortran.npy"));
  for (std::size_t i = 0; i < 24; ++i) {
    CHECK(fortran[i] == static_cast<std::int64_t>(i));
  }
  CHECK(ebb::read_npy(folder.path() / "bool.npy").shape() == ebb::Shape{2, 1});
  CHECK(values_of<double>(ebb::read_npy(folder.path() / "scalar.npy")) == std::vector<double>{0.5});
  CHECK(values_of<std::int32_t>(ebb::read_npy(folder.path() / "u2.npy"))[1] == 65535);
  check_refused([&] { ebb::read_npy(folder.path() / "object.npy"); },
                {LoadErrorKind::shape, folder.path() / "object.npy", std::nullopt, "objects"});
}
