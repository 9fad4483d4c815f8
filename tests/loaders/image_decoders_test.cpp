// SPDX-License-Identifier: Apache-2.0
// Decoders: what each kind of file becomes, and what is refused. A decoder that this build of ebb
// does not have is passed over. [load.formats]
#include "image_fixture.h"
#include "refused_fixture.h"
#include "stored_pictures.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

using ebb::ImageOptions;
using ebb::test::contains;
using ebb::test::from_hex;
using ebb::test::has_decoder;
using ebb::test::Picture;
using ebb::test::picture;
using ebb::test::png_chunk;
using ebb::test::png_file;
using ebb::test::read_picture;
using namespace std::string_literals;

namespace {

Picture decoded(const std::string& file, std::int64_t channels = 3,
                const ebb::ImageTransforms& transforms = {}) {
  return read_picture(
      file, {.decoders = ebb::image_decoders(), .transforms = transforms, .channels = channels});
}

// Returns why a file is refused.
std::string refusal(const std::string& file, ImageOptions options = {}) {
  options.decoders = ebb::image_decoders();
  const auto error = ebb::test::refused([&] { read_picture(file, options); });
  if (!error.has_value()) {
    return "accepted";
  }
  CHECK(error->info().offset.has_value());
  CHECK(contains(error->info().source, "class/file"));
  return error->what();
}

bool can(const std::string& decoder) {
  if (!has_decoder(decoder)) {
    MESSAGE("skipped: this build of ebb has no decoder for " << decoder);
  }
  return has_decoder(decoder);
}

std::uint8_t grey_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((299 * red + 587 * green + 114 * blue + 500) / 1000);
}

// The largest difference of a channel to those that Pillow gives at four pixels.
int difference(const Picture& it, const std::array<std::array<int, 3>, 4>& expected) {
  constexpr std::array<std::array<int, 2>, 4> places = {{{0, 0}, {3, 5}, {15, 23}, {8, 11}}};
  int most = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::int64_t channel = 0; channel < it.size.channels; ++channel) {
      const int byte = it.at(places[i][0], places[i][1], channel);
      most = std::max(most, std::abs(byte - expected[i][static_cast<std::size_t>(channel)]));
    }
  }
  return most;
}

}  // namespace

TEST_CASE("png: colours and grey come as they are, and become each other") {
  if (!can("png")) {
    return;
  }
  const Picture colours = picture(5, 7);
  CHECK(decoded(png_file(colours)) == colours);
  const Picture grey = picture(5, 7, 1);
  CHECK(decoded(png_file(grey), 1) == grey);
  const Picture spread = decoded(png_file(grey), 3);
  const Picture made_grey = decoded(png_file(colours), 1);
  for (std::int64_t y = 0; y < 5; ++y) {
    for (std::int64_t x = 0; x < 7; ++x) {
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        CHECK(spread.at(y, x, channel) == grey.at(y, x, 0));
      }
      CHECK(made_grey.at(y, x, 0) ==
            grey_of(colours.at(y, x, 0), colours.at(y, x, 1), colours.at(y, x, 2)));
    }
  }
}

TEST_CASE("png: palettes, few bits, 16 bits and transparency become bytes of three channels") {
  if (!can("png")) {
    return;
  }
  const std::string palette = png_chunk("PLTE", "\1\2\3\4\5\6\7\x08\x09"s);
  // Four pixels of two bits: 2 1 0 1.
  CHECK(decoded(png_file(1, 4, "\0\x91"s, {2, 3, palette})).pixels ==
        std::vector<std::uint8_t>{7, 8, 9, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  // Grey of one bit: 1 0 1.
  CHECK(decoded(png_file(1, 3, "\0\xa0"s, {1, 0}), 1).pixels ==
        std::vector<std::uint8_t>{255, 0, 255});
  // Grey of two bits: 3 1 2 0.
  CHECK(decoded(png_file(1, 4, "\0\xd8"s, {2, 0}), 1).pixels ==
        std::vector<std::uint8_t>{255, 85, 170, 0});
  // 16 bits: the upper ones.
  CHECK(decoded(png_file(1, 2, "\0\x12\x34\xab\xcd"s, {16, 0}), 1).pixels ==
        std::vector<std::uint8_t>{0x12, 0xab});
  CHECK(decoded(png_file(1, 1, "\0\x12\x34\x56\x78\x9a\xbc"s, {16, 2})).pixels ==
        std::vector<std::uint8_t>{0x12, 0x56, 0x9a});
  // Transparency is dropped.
  CHECK(decoded(png_file(1, 1, "\0\x10\x20\x30\x40"s, {8, 6})).pixels ==
        std::vector<std::uint8_t>{0x10, 0x20, 0x30});
  CHECK(decoded(png_file(1, 2, "\0\x10\x20\x30\0"s, {8, 4})).pixels ==
        std::vector<std::uint8_t>{0x10, 0x10, 0x10, 0x30, 0x30, 0x30});
  const std::string see_through = palette + png_chunk("tRNS", "\0\x80\xff"s);
  CHECK(decoded(png_file(1, 1, "\0\x00"s, {8, 3, see_through})).pixels ==
        std::vector<std::uint8_t>{1, 2, 3});
}

TEST_CASE("png: what is damaged, truncated or too large is refused by name") {
  if (!can("png")) {
    return;
  }
  const std::string whole = png_file(picture(20, 20));
  for (std::size_t bytes = 8; bytes < whole.size() - 12; bytes += 7) {
    CAPTURE(bytes);
    CHECK(contains(refusal(whole.substr(0, bytes)), "damaged or truncated PNG"));
  }
  std::string flipped = whole;
  flipped[60] = static_cast<char>(flipped[60] ^ 1);
  CHECK(contains(refusal(flipped), "damaged or truncated PNG"));
  // Fewer rows than the header says, in a stream that is whole.
  CHECK(
      contains(refusal(png_file(50, 20, std::string(61 * 20, '\0'))), "damaged or truncated PNG"));
  CHECK(contains(refusal(png_file(60000, 60000, "\0"s)), "max_pixels"));
  CHECK(contains(refusal(png_file(0, 7, "\0"s)), "damaged or truncated PNG"));
  CHECK(contains(refusal(""), "the file is empty"));
  CHECK(contains(refusal("GIF89a"), "no picture that a decoder knows (there are: "));
  ImageOptions small;
  small.max_pixels = 399;
  CHECK(contains(refusal(whole, small), "a picture of 20 x 20 x 3, where max_pixels is 399"));
}

TEST_CASE("jpeg: gives what Pillow gives, grey and progressive ones too") {
  if (!can("jpeg")) {
    return;
  }
  const Picture colours = decoded(from_hex(ebb::test::jpeg_colour));
  CHECK(colours.size == ebb::ImageSize{16, 24, 3});
  CHECK(difference(colours, {{{1, 41, 191}, {83, 92, 171}, {163, 180, 78}, {228, 208, 147}}}) <= 1);
  CHECK(difference(decoded(from_hex(ebb::test::jpeg_progressive)),
                   {{{2, 39, 189}, {88, 92, 166}, {140, 198, 34}, {240, 215, 133}}}) <= 1);
  const Picture grey = decoded(from_hex(ebb::test::jpeg_grey), 1);
  CHECK(difference(grey, {{{46}, {98}, {163}, {207}}}) <= 1);
  CHECK(difference(decoded(from_hex(ebb::test::jpeg_colour), 1), {{{46}, {98}, {163}, {207}}}) <=
        2);
  CHECK(decoded(from_hex(ebb::test::jpeg_grey), 3).at(3, 5, 2) == grey.at(3, 5, 0));
}

TEST_CASE("jpeg: is decoded at a fraction of its size when that is enough for the first Resize") {
  if (!can("jpeg")) {
    return;
  }
  const auto jpeg = [] {
    const ebb::ImageDecoders all = ebb::image_decoders();
    return *std::find_if(all.begin(), all.end(),
                         [](const auto& it) { return it->name() == "jpeg"; });
  }();
  const std::string file = from_hex(ebb::test::jpeg_colour);  // 16 x 24
  const auto reader = jpeg->make_reader();
  const auto given = [&](std::int64_t height, std::int64_t width) {
    const auto bytes = std::as_bytes(std::span(file));
    const ebb::ImageInfo info =
        reader->begin(bytes, {.channels = 3, .height_min = height, .width_min = width});
    CHECK(info.whole == ebb::ImageSize{16, 24, 3});
    std::vector<std::uint8_t> pixels(info.given.bytes());
    reader->read(pixels);
    return info.given;
  };
  CHECK(given(0, 0) == ebb::ImageSize{16, 24, 3});
  CHECK(given(16, 16) == ebb::ImageSize{16, 24, 3});
  CHECK(given(9, 9) == ebb::ImageSize{16, 24, 3});
  CHECK(given(8, 8) == ebb::ImageSize{8, 12, 3});
  CHECK(given(4, 7) == ebb::ImageSize{8, 12, 3});
  CHECK(given(4, 6) == ebb::ImageSize{4, 6, 3});
  CHECK(given(1, 1) == ebb::ImageSize{2, 3, 3});
  CHECK(given(100, 100) == ebb::ImageSize{16, 24, 3});
  // It is about what scaling the whole gives.
  const ebb::Resize half{.height = 8, .width = 12};
  const Picture at_once = decoded(file, 3, {half});
  const Picture after = decoded(file, 3, {ebb::RandomFlip{.probability = 0}, half});
  int sum = 0;
  for (std::size_t i = 0; i < after.pixels.size(); ++i) {
    sum += std::abs(at_once.pixels[i] - after.pixels[i]);
  }
  CHECK(sum < 15 * static_cast<int>(after.pixels.size()));
}

TEST_CASE("jpeg: what is truncated or for printing is refused, and nothing is made up") {
  if (!can("jpeg")) {
    return;
  }
  CHECK(contains(refusal(from_hex(ebb::test::jpeg_cmyk)), "CMYK"));
  for (const auto stored : {ebb::test::jpeg_colour, ebb::test::jpeg_progressive}) {
    const std::string whole = from_hex(stored);
    for (std::size_t bytes = 4; bytes < whole.size() - 2; bytes += 11) {
      CAPTURE(bytes);
      CHECK(contains(refusal(whole.substr(0, bytes)), "damaged or truncated JPEG"));
    }
  }
}

TEST_CASE("webp: lossless ones are exact, lossy ones what Pillow gives, animations are refused") {
  if (!can("webp")) {
    return;
  }
  CHECK(decoded(from_hex(ebb::test::webp_lossless)) == picture(4, 6));
  CHECK(decoded(from_hex(ebb::test::webp_alpha)) == picture(4, 6));  // transparency is dropped
  CHECK(decoded(from_hex(ebb::test::webp_lossless), 1).at(1, 2, 0) == grey_of(33, 53, 187));
  CHECK(difference(decoded(from_hex(ebb::test::webp_lossy)),
                   {{{12, 35, 187}, {85, 91, 164}, {154, 178, 56}, {237, 213, 160}}}) <= 1);
  CHECK(contains(refusal(from_hex(ebb::test::webp_animated)), "animated"));
  for (const auto stored : {ebb::test::webp_lossless, ebb::test::webp_lossy}) {
    const std::string whole = from_hex(stored);
    for (std::size_t bytes = 12; bytes < whole.size() - 1; bytes += 5) {
      CAPTURE(bytes);
      CHECK(contains(refusal(whole.substr(0, bytes)), "damaged or truncated WebP"));
    }
  }
}
