// SPDX-License-Identifier: Apache-2.0
// Damaged archives and pictures: each is refused by a LoadError that names it, or taken.
#include "fuzz_fixture.h"
#include "gzip_fixture.h"
#include "image_fixture.h"
#include "stored_pictures.h"
#include "tar_fixture.h"

using ebb::test::from_hex;
using ebb::test::fuzz;
using ebb::test::picture;
using ebb::test::png_file;
using ebb::test::tar_entry;

namespace {

// Reads sets of pictures, one after the other.
class Readings {
 public:
  // Reads every sample of a set.
  void read(const ebb::AnyDataset& data) {
    ebb::Loader loader(rt_, data, {.batch = 2, .workers = 0});
    while (loader.next()) {
    }
  }

 private:
  ebb::test::LogLines log_;
  ebb::Runtime rt_{{.executor = ebb::test::executor_choice(), .log = log_.hook()}};
};

// Opens one damaged picture after the other, as the only file of a set.
void fuzz_pictures(const char* name, const std::vector<std::string>& valid) {
  if (!ebb::test::has_decoder(name)) {
    MESSAGE("skipped: this build of ebb has no decoder for " << name);
    return;
  }
  const ebb::test::TempFolder folder;
  ebb::ImageOptions options{.decoders = ebb::image_decoders(),
                            .transforms = {ebb::Resize{.shorter = 3}, ebb::CentreCrop{3, 3}}};
  options.max_pixels = 1 << 20;
  bool grey = false;
  Readings readings;
  fuzz(name, valid, [&](const std::string& bytes) {
    ebb::test::write_classes(folder, {{"class/file", bytes}});
    options.channels = grey ? 1 : 3;
    grey = !grey;
    readings.read(ebb::open_images(folder.path(), options).data);
  });
}

}  // namespace

TEST_CASE("tar: whatever is done to an archive, it is refused by name or it is read") {
  const std::string raw = ebb::test::raw_file(picture(2, 2));
  const std::string archive =
      tar_entry({.name = "a/", .type = '5'}) + tar_entry({.name = "a/1", .bytes = raw}) +
      tar_entry({.name = "p", .bytes = ebb::test::pax_record("path", "b/2"), .type = 'x'}) +
      tar_entry({.name = "2", .bytes = raw}) +
      tar_entry({.name = "l", .bytes = "c/3", .type = 'L'}) +
      tar_entry({.name = "3", .bytes = raw}) + ebb::test::tar_end();
  const ebb::test::TempFolder folder;
  ebb::ImageOptions options{.decoders = ebb::test::raw_decoders()};
  Readings readings;
  const auto open = [&](const std::string& bytes) {
    options.keep_bytes = ebb::Bytes{bytes.size() % 2 == 0 ? 0u : 1u << 20};
    options.max_bytes = ebb::Bytes{1u << 20};
    readings.read(ebb::open_images(folder.write("x", bytes), options).data);
  };
  fuzz("tar", {archive}, open);
  fuzz("tar.gz",
       {ebb::test::gzip(archive),
        ebb::test::gzip(archive.substr(0, 700)) + ebb::test::gzip(archive.substr(700))},
       open);
  // Damage that the checksums of its headers and of gzip do not tell.
  fuzz("sealed tar", {archive}, [&](const std::string& damaged) {
    std::string bytes = damaged;
    for (std::size_t at = 0; at + 512 <= bytes.size(); at += 512) {
      std::string block = bytes.substr(at, 512);
      if (block.find_first_not_of('\0') != std::string::npos && block[156] != 'R') {
        ebb::test::seal(block);
        bytes.replace(at, 512, block);
      }
    }
    open(bytes);
    open(ebb::test::gzip(bytes));
  });
}

TEST_CASE("png: whatever is done to a file, it is refused by name or it is read") {
  using namespace std::string_literals;
  const std::string palette = ebb::test::png_chunk("PLTE", "\1\2\3\4\5\6\7\x08\x09"s);
  fuzz_pictures("png", {png_file(picture(8, 8)), png_file(picture(8, 8, 1)),
                        png_file(1, 4, "\0\x91"s, {2, 3, palette}),
                        png_file(2, 2, "\0\1\2\3\4\5\6\7\10\1\1\2\3\4\5\6\7\10"s, {16, 4})});
}

TEST_CASE("jpeg: whatever is done to a file, it is refused by name or it is read") {
  fuzz_pictures("jpeg", {from_hex(ebb::test::jpeg_colour), from_hex(ebb::test::jpeg_grey),
                         from_hex(ebb::test::jpeg_progressive)});
}

TEST_CASE("webp: whatever is done to a file, it is refused by name or it is read") {
  fuzz_pictures("webp", {from_hex(ebb::test::webp_lossless), from_hex(ebb::test::webp_lossy),
                         from_hex(ebb::test::webp_alpha)});
}
