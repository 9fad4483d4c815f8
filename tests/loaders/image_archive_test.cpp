// SPDX-License-Identifier: Apache-2.0
// Archives of pictures: plain and gzipped tar, their dialects, and what is refused at which offset.
// [load.formats] [load.error]
#include "gzip_fixture.h"
#include "image_fixture.h"
#include "refused_fixture.h"
#include "tar_fixture.h"

#include <doctest/doctest.h>

#include <map>

using ebb::ImageOptions;
using ebb::LoadErrorKind;
using ebb::test::check_refused;
using ebb::test::contains;
using ebb::test::gzip;
using ebb::test::pax_record;
using ebb::test::picture;
using ebb::test::raw_file;
using ebb::test::read_all;
using ebb::test::tar_end;
using ebb::test::tar_entry;
using ebb::test::TarEntry;
using ebb::test::TempFolder;
using namespace std::string_literals;

namespace {

ImageOptions raw_options() {
  return {.decoders = ebb::test::raw_decoders()};
}

const std::string tiny = raw_file(picture(2, 2));

// The paths of the samples of an archive, without the archive's.
std::vector<std::string> paths_in(const std::string& archive) {
  const TempFolder folder;
  const auto path = folder.write("x.tar", archive);
  const auto set = ebb::open_images(path, raw_options());
  std::vector<std::string> paths;
  for (std::uint64_t i = 0; i < set.data.size(); ++i) {
    paths.push_back(set.data.erased().source(i).substr(path.string().size() + 1));
  }
  CHECK(read_all(set.data).back().picture == picture(2, 2));
  return paths;
}

void check_tar(const std::string& archive, std::uint64_t offset, const std::string& text) {
  const TempFolder folder;
  const auto path = folder.write("x.tar", archive);
  check_refused([&] { ebb::open_images(path, raw_options()); },
                {LoadErrorKind::corrupt, path, offset, text});
  const auto packed = folder.write("x.tar.gz", gzip(archive));
  const auto error = ebb::test::refused([&] { ebb::open_images(packed, raw_options()); });
  REQUIRE(error.has_value());
  CHECK(contains(error->what(), text));
  CHECK(error->info().offset == offset);
}

// Bytes that do not compress.
std::string noise(std::uint64_t seed, std::size_t bytes) {
  ebb::Random random(seed, "noise");
  std::string text(bytes, '\0');
  for (char& c : text) {
    c = static_cast<char>(random.next_u32());
  }
  return text;
}

}  // namespace

TEST_CASE("tar: names of ustar, pax and GNU, and sizes in octal and base 256") {
  const std::string first = tar_entry({.name = "a/1", .bytes = tiny});
  CHECK(paths_in(first + tar_end()) == std::vector<std::string>{"a/1"});
  CHECK(paths_in(first + tar_end() + std::string(10240 - 3 * 512, '\0')).size() == 1);
  CHECK(paths_in(tar_entry({.name = "./b//c/./2", .bytes = tiny}) + tar_end()) ==
        std::vector<std::string>{"b/c/2"});
  const std::string long_name(120, 'n');
  CHECK(paths_in(tar_entry({.name = long_name.substr(0, 99), .bytes = tiny, .prefix = "x/y"}) +
                 tar_end()) == std::vector<std::string>{"x/y/" + long_name.substr(0, 99)});
  const std::string pax = pax_record("mtime", "1.5") + pax_record("path", "p/" + long_name);
  CHECK(paths_in(tar_entry({.name = "pax", .bytes = pax, .type = 'x'}) +
                 tar_entry({.name = "short", .bytes = tiny}) +
                 tar_entry({.name = "a/next", .bytes = tiny}) + tar_end()) ==
        std::vector<std::string>{"p/" + long_name, "a/next"});
  CHECK(
      paths_in(tar_entry({.name = "././@LongLink", .bytes = "g/" + long_name + '\0', .type = 'L'}) +
               tar_entry({.name = "short", .bytes = tiny}) + tar_end()) ==
      std::vector<std::string>{"g/" + long_name});
  std::string binary("\x80\0\0\0\0\0\0\0\0\0\0\0", 12);
  binary[11] = static_cast<char>(tiny.size());
  CHECK(paths_in(tar_entry({.name = "a/1", .bytes = tiny, .size_field = binary}) + tar_end())
            .size() == 1);
  // A size in a pax header, with a field that says something else.
  CHECK(paths_in(tar_entry({.name = "pax",
                            .bytes = pax_record("size", std::to_string(tiny.size())),
                            .type = 'x'}) +
                 tar_entry({.name = "a/1", .bytes = tiny, .size_field = "00000000000"}) +
                 tar_entry({.name = "a/2", .bytes = tiny}) + tar_end()) ==
        std::vector<std::string>{"a/1", "a/2"});
}

TEST_CASE("tar: folders, hidden files and global headers are passed over") {
  CHECK(paths_in(tar_entry({.name = "a/", .type = '5'}) +
                 tar_entry({.name = "old/", .type = '\0'}) +
                 tar_entry({.name = "g", .bytes = pax_record("comment", "c"), .type = 'g'}) +
                 tar_entry({.name = "a/._1", .bytes = "x"}) +
                 tar_entry({.name = "a/.hidden/1", .bytes = "x"}) +
                 tar_entry({.name = "a/1", .bytes = tiny, .type = '\0'}) + tar_end()) ==
        std::vector<std::string>{"a/1"});
}

TEST_CASE("tar: paths out of the archive, links, devices and unknown types are refused") {
  const std::string first = tar_entry({.name = "a/1", .bytes = tiny});
  const std::uint64_t at = first.size();
  const auto with = [&](const TarEntry& entry) { return first + tar_entry(entry) + tar_end(); };
  check_tar(with({.name = "/etc/passwd", .bytes = "x"}), at, "absolute");
  check_tar(with({.name = "a/../../b", .bytes = "x"}), at, "\"..\" in it");
  check_tar(with({.name = "..", .bytes = "x"}), at, "\"..\" in it");
  check_tar(with({.name = "", .bytes = "x"}), at, "without a name");
  check_tar(with({.name = "a/2", .type = '1'}), at + 156, "a link: make the archive with tar");
  check_tar(with({.name = "a/2", .type = '2'}), at + 156, "a link");
  check_tar(with({.name = "a/2", .type = '3'}), at + 156, "a device or a pipe");
  check_tar(with({.name = "a/2", .type = '6'}), at + 156, "a device or a pipe");
  check_tar(with({.name = "a/2", .type = 'S'}), at + 156, "a sparse file");
  check_tar(with({.name = "a/2", .type = 'Z'}), at + 156, "of type 90, which is not known");
  const auto pax = [&](const std::string& records) {
    return first + tar_entry({.name = "p", .bytes = records, .type = 'x'}) +
           tar_entry({.name = "a/2", .bytes = tiny}) + tar_end();
  };
  const std::uint64_t data = at + 512;
  check_tar(pax(pax_record("path", "../x")), at + 1024, "\"..\" in it");
  check_tar(pax(pax_record("path", std::string("a/\0b", 4))), at + 1024, "a zero byte");
  check_tar(pax("9 path=a\n"s + "x"), data + 9, "is damaged");
  check_tar(pax("99 path=a\n"), data, "is damaged");
  check_tar(pax("7 path\n"), data, "no '='");
  check_tar(pax(pax_record("size", "12x")), data, "is no number");
  check_tar(pax(pax_record("GNU.sparse.major", "1")), at, "a sparse file");
  check_tar(
      first + tar_entry({.name = "p", .bytes = pax_record("path", "a/b"), .type = 'x'}) + tar_end(),
      at, "without a member");
  check_tar(
      first + tar_entry({.name = "g", .bytes = pax_record("size", "1"), .type = 'g'}) + tar_end(),
      at, "a global header");
}

TEST_CASE("tar: what is cut, damaged or goes on after its end is refused with the offset") {
  const std::string first = tar_entry({.name = "a/1", .bytes = tiny});
  const std::string second = tar_entry({.name = "a/2", .bytes = tiny});
  const std::string whole = first + second + tar_end();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 100) {
    const TempFolder folder;
    const auto path = folder.write("x.tar", whole.substr(0, bytes));
    const auto error = ebb::test::refused([&] { ebb::open_images(path, raw_options()); });
    CAPTURE(bytes);
    REQUIRE(error.has_value());
    CAPTURE(error->what());
    CHECK((contains(error->what(), "truncated") || bytes == 0));
  }
  check_tar(first + second, first.size() + second.size(), "no end mark");
  check_tar(whole + first, whole.size(), "bytes follow the end");
  check_tar(first + std::string(512, '\0') + second + tar_end(), first.size(), "a block of zeros");
  std::string bad = whole;
  bad[first.size() + 3] ^= 1;
  check_tar(bad, first.size() + 148, "the checksum of the header is wrong");
  check_tar(
      first + tar_entry({.name = "a/2", .bytes = tiny, .size_field = "99999999999"}) + tar_end(),
      first.size() + 124, "is no number");
  std::string huge("\x80\x01\0\0\0\0\0\0\0\0\0\0", 12);
  check_tar(first + tar_entry({.name = "a/2", .bytes = tiny, .size_field = huge}) + tar_end(),
            first.size() + 124, "is no number");
}

TEST_CASE("tar: a size that the file cannot hold is refused before anything is read for it") {
  const std::string first = tar_entry({.name = "a/1", .bytes = tiny});
  const TempFolder folder;
  const auto lying =
      first + tar_entry({.name = "a/2", .bytes = tiny, .size_field = "07777777777"}) + tar_end();
  const auto path = folder.write("x.tar", lying);
  check_refused(
      [&] { ebb::open_images(path, raw_options()); },
      {LoadErrorKind::corrupt, path, first.size() + 124, "more than the archive can hold"});
  ImageOptions small = raw_options();
  small.max_file_bytes = ebb::Bytes{tiny.size() - 1};
  const auto whole = folder.write("y.tar", first + tar_end());
  check_refused([&] { ebb::open_images(whole, small); },
                {LoadErrorKind::corrupt, whole, 124, "more than the limit of"});
}

TEST_CASE("tar.gz: a small file that unpacks to much is stopped at max_bytes") {
  const TempFolder folder;
  const std::string much(std::size_t{3} << 20, '\0');
  const auto path =
      folder.write("x.tgz", gzip(tar_entry({.name = "a/1", .bytes = much}) + tar_end()));
  ImageOptions options = raw_options();
  options.max_bytes = ebb::Bytes{std::size_t{1} << 20};
  check_refused([&] { ebb::open_images(path, options); },
                {LoadErrorKind::corrupt, path, std::nullopt, "more than max_bytes = 1048576"});
  // Zeros after the end, too.
  const auto tail =
      folder.write("y.tgz", gzip(tar_entry({.name = "a/1", .bytes = tiny}) + tar_end() + much));
  check_refused([&] { ebb::open_images(tail, options); },
                {LoadErrorKind::corrupt, tail, std::nullopt, "more than max_bytes = 1048576"});
}

TEST_CASE("tar.gz: each member is found from any other, kept in memory or not") {
  const TempFolder folder;
  std::string archive;
  std::vector<std::string> parts;
  for (int i = 0; i < 24; ++i) {
    const std::string name = std::to_string(i % 2) + "/" + std::to_string(i);
    ebb::test::Picture it{{64, 1000 + 16 * i, 3}, {}};
    const std::string pixels = noise(static_cast<std::uint64_t>(i), it.size.bytes());
    it.pixels.assign(pixels.begin(), pixels.end());
    // Some of it compresses, so that blocks have all lengths.
    std::fill_n(it.pixels.begin(), i * 1000, std::uint8_t{7});
    parts.push_back(tar_entry({.name = name, .bytes = raw_file(it)}));
    archive += parts.back();
  }
  archive += tar_end();
  std::string several;  // gzip files, one after the other
  for (std::size_t at = 0; at < archive.size(); at += 700001) {
    several += gzip(archive.substr(at, 700001));
  }
  ImageOptions options = raw_options();
  options.transforms = {ebb::CentreCrop{64, 1000}};
  const auto plain = read_all(ebb::open_images(folder.write("x.tar", archive), options).data);
  REQUIRE(plain.size() == 24);
  for (const std::string& packed : {gzip(archive), several}) {
    const auto path = folder.write("x.tar.gz", packed);
    for (const std::size_t keep : {std::size_t{0}, std::size_t{1} << 20, std::size_t{64} << 20}) {
      options.keep_bytes = ebb::Bytes{keep};
      const auto set = ebb::open_images(path, options);
      for (const unsigned workers : {0u, 3u}) {
        CHECK(read_all(set.data, {.epoch = 1, .workers = workers}) == plain);
      }
    }
  }
  // Damage after it was opened.
  options.keep_bytes = ebb::Bytes{0};
  const auto path = folder.write("x.tar.gz", gzip(archive));
  const auto set = ebb::open_images(path, options);
  std::filesystem::resize_file(path, 1000000);
  const auto error = ebb::test::refused([&] { read_all(set.data); });
  REQUIRE(error.has_value());
  CHECK(error->info().index.has_value());
  CHECK(contains(error->what(), "cut short after it was opened"));
}

TEST_CASE("tar.gz: damage anywhere is found when it is opened, by the checksum at the latest") {
  const TempFolder folder;
  std::string archive;
  for (int i = 0; i < 5; ++i) {
    archive += tar_entry({.name = "a/" + std::to_string(i), .bytes = "RAW 1 30 1 " + noise(7, 30)});
  }
  const std::string packed = gzip(archive + tar_end());
  for (std::size_t bytes = 3; bytes < packed.size(); bytes += 5) {
    const auto cut = folder.write("cut", packed.substr(0, bytes));
    CAPTURE(bytes);
    CHECK(ebb::test::refused([&] { ebb::open_images(cut, raw_options()); }).has_value());
    std::string flipped = packed;
    flipped[bytes] = static_cast<char>(flipped[bytes] ^ 0x10);
    const auto path = folder.write("flipped", flipped);
    const auto error = ebb::test::refused([&] { ebb::open_images(path, raw_options()); });
    CHECK((error.has_value() || bytes < 10));  // time and system in the header may be any
  }
}

TEST_CASE("tar: several shards are one set, with the classes of all") {
  const TempFolder folder;
  const auto a = folder.write("a.tar", tar_entry({.name = "dog/1", .bytes = tiny}) + tar_end());
  const auto b =
      folder.write("b.tgz", gzip(tar_entry({.name = "cat/1", .bytes = tiny}) +
                                 tar_entry({.name = "dog/2", .bytes = tiny}) + tar_end()));
  const auto set = ebb::open_images({a, b}, raw_options());
  CHECK(set.vocabulary == std::vector<std::string>{"cat", "dog"});
  const auto samples = read_all(set.data);
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].label == 1);
  CHECK(samples[1].label == 0);
  CHECK(samples[2].label == 1);
  CHECK(set.data.erased().source(1) == b.string() + "/cat/1");
  CHECK(set.data.fingerprint() != ebb::open_images({b, a}, raw_options()).data.fingerprint());
  ebb::test::check_no_file(folder.path() / "no", [](const auto& path) {
    if (std::filesystem::is_directory(path)) {
      throw ebb::LoadError("", {.kind = LoadErrorKind::io, .source = path.string()});
    }
    ebb::open_images(path, raw_options());
  });
}

TEST_CASE("tar.gz: the handwritten digits of MNIST as PNG files, shuffled") {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  const char* const folder = std::getenv("EBB_TEST_DATA");
  const auto path = std::filesystem::path(folder != nullptr ? folder : "") / "mnist" /
                    "mnist_png_testing_shuffled.tar.gz";
  if (!std::filesystem::exists(path) || !ebb::test::has_decoder("png")) {
    MESSAGE("skipped: needs " << path.string() << " below EBB_TEST_DATA, and the decoder of PNG");
    return;
  }
  ImageOptions options{.decoders = ebb::image_decoders(), .channels = 1};
  const auto set = ebb::open_images(path, options);
  CHECK(set.data.size() == 10000);
  CHECK(set.vocabulary ==
        std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  const auto samples = read_all(set.data, {.workers = 2});
  std::map<std::int64_t, int> counts;
  double sum = 0;
  for (const auto& sample : samples) {
    ++counts[sample.label];
    for (const std::uint8_t byte : sample.picture.pixels) {
      sum += byte;
    }
  }
  // As in the IDX files of the test set.
  CHECK(counts[0] == 980);
  CHECK(counts[1] == 1135);
  CHECK(counts[5] == 892);
  CHECK(counts[9] == 1009);
  CHECK(sum / (10000.0 * 784 * 255) == doctest::Approx(0.13251).epsilon(0.0001));
  CHECK(samples[0].label == 4);  // mnist_png_testing_shuffled/4/08709.png
  options.keep_bytes = ebb::Bytes{0};
  const auto far = ebb::open_images(path, options);
  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, far.data, {.batch = 16, .workers = 0});
  for (int i = 0; i < 4; ++i) {
    const auto batch = loader.next();
    REQUIRE(batch.has_value());
    for (std::size_t row = 0; row < 16; ++row) {
      const auto& sample = samples[batch->indices()[row]];
      CHECK(batch->field(1).span<const std::int64_t>()[row] == sample.label);
      CHECK(std::lround(255 * batch->field(0).span<const float>()[row * 784 + 14 * 28 + 14]) ==
            sample.picture.at(14, 14, 0));
    }
  }
}
