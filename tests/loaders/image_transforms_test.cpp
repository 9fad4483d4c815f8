// SPDX-License-Identifier: Apache-2.0
// Transforms of pictures: each pixel where it belongs, and random ones by their keys. [load.pure]
#include "image_fixture.h"
#include "refused_fixture.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

using ebb::CentreCrop;
using ebb::ImageOptions;
using ebb::ImageTransforms;
using ebb::RandomCrop;
using ebb::RandomFlip;
using ebb::RandomResizedCrop;
using ebb::Resize;
using ebb::test::contains;
using ebb::test::Picture;
using ebb::test::picture;
using ebb::test::raw_file;
using ebb::test::read_picture;

namespace {

Picture transformed(const Picture& from, const ImageTransforms& transforms,
                    const ebb::test::Reading& how = {}) {
  ImageOptions options{.decoders = ebb::test::raw_decoders(),
                       .transforms = transforms,
                       .channels = from.size.channels};
  return read_picture(raw_file(from), options, how);
}

// What becomes of as many copies of a picture, each a sample of its own.
std::vector<Picture> transformed_copies(const Picture& from, const ImageTransforms& transforms,
                                        int copies) {
  const ebb::test::TempFolder folder;
  for (int i = 0; i < copies; ++i) {
    ebb::test::write_classes(folder, {{"class/" + std::to_string(i), raw_file(from)}});
  }
  const ImageOptions options{.decoders = ebb::test::raw_decoders(), .transforms = transforms};
  std::vector<Picture> pictures;
  for (auto& sample : ebb::test::read_all(ebb::open_images(folder.path(), options).data)) {
    pictures.push_back(std::move(sample.picture));
  }
  return pictures;
}

// The part of a picture, whose pixels outside of it are 9.
Picture part(const Picture& from, std::int64_t top, std::int64_t left, std::int64_t height,
             std::int64_t width) {
  Picture to{{height, width, from.size.channels}, {}};
  for (std::int64_t y = top; y < top + height; ++y) {
    for (std::int64_t x = left; x < left + width; ++x) {
      for (std::int64_t channel = 0; channel < from.size.channels; ++channel) {
        const bool inside = y >= 0 && x >= 0 && y < from.size.height && x < from.size.width;
        to.pixels.push_back(inside ? from.at(y, x, channel) : 9);
      }
    }
  }
  return to;
}

Picture mirror(const Picture& from, bool vertical) {
  Picture to = from;
  for (std::int64_t y = 0; y < from.size.height; ++y) {
    for (std::int64_t x = 0; x < from.size.width; ++x) {
      for (std::int64_t channel = 0; channel < from.size.channels; ++channel) {
        const std::int64_t row = vertical ? from.size.height - 1 - y : y;
        const std::int64_t column = vertical ? x : from.size.width - 1 - x;
        to.pixels[static_cast<std::size_t>((y * from.size.width + x) * from.size.channels +
                                           channel)] = from.at(row, column, channel);
      }
    }
  }
  return to;
}

std::uint64_t hash_of(const Picture& it) {
  return ebb::fnv1a({reinterpret_cast<const char*>(it.pixels.data()), it.pixels.size()});
}

std::string refusal(const ImageTransforms& transforms) {
  try {
    transformed(picture(4, 4), transforms);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("images: Resize gives the bytes of Pillow's bilinear resize") {
  struct Case {
    std::int64_t from_height, from_width, height, width;
    std::uint64_t hash;  // FNV-1a of the bytes that Pillow 9.4 gives
  };
  const Case cases[] = {
      {5, 7, 2, 3, 0x45b17b1d539430b1u},         {5, 7, 9, 10, 0x96d9154eb30056a5u},
      {5, 7, 3, 7, 0x3458a9336e7e02fau},         {5, 7, 5, 4, 0x021ad4610a6f5b51u},
      {5, 7, 1, 1, 0x24538e1805d0df43u},         {5, 7, 2, 14, 0x06dcdb6be8dd69d1u},
      {375, 500, 256, 341, 0x6c043262b96d9168u}, {375, 500, 64, 64, 0x7a835efa5cb41303u},
      {375, 500, 100, 600, 0x1c80f86d6f323628u},
  };
  for (const Case& it : cases) {
    CAPTURE(it.height);
    CAPTURE(it.width);
    const Picture from = picture(it.from_height, it.from_width);
    const Picture to = transformed(from, {Resize{.height = it.height, .width = it.width}});
    CHECK(to.size == ebb::ImageSize{it.height, it.width, 3});
    CHECK(hash_of(to) == it.hash);
  }
  // Some of them, to look at.
  const Picture small = transformed(picture(5, 7), {Resize{.height = 2, .width = 3}});
  CHECK(small.pixels == std::vector<std::uint8_t>{18, 50, 193, 46, 59, 182, 74, 76, 171, 32, 68,
                                                  187, 60, 77, 176, 88, 94, 165});
}

TEST_CASE("images: Resize to a shorter side keeps proportions, and grey pictures are one channel") {
  const Picture slim = picture(375, 500);
  CHECK(transformed(slim, {Resize{.shorter = 256}}) ==
        transformed(slim, {Resize{.height = 256, .width = 341}}));
  CHECK(transformed(picture(9, 3), {Resize{.shorter = 2}}).size == ebb::ImageSize{6, 2, 3});
  const Picture grey = transformed(picture(10, 14, 1), {Resize{.height = 3, .width = 5}});
  const Picture colours = transformed(picture(10, 14, 3), {Resize{.height = 3, .width = 5}});
  for (std::int64_t y = 0; y < 3; ++y) {
    for (std::int64_t x = 0; x < 5; ++x) {
      CHECK(grey.at(y, x, 0) == colours.at(y, x, 0));
    }
  }
  CHECK(transformed(picture(6, 4), {Resize{.height = 6, .width = 4}}) == picture(6, 4));
}

TEST_CASE("images: CentreCrop takes the middle, half a pixel rounded to even") {
  const Picture from = picture(9, 8);
  CHECK(transformed(from, {CentreCrop{4, 2}}) == part(from, 2, 3, 4, 2));  // 2.5 becomes 2
  CHECK(transformed(from, {CentreCrop{2, 3}}) == part(from, 4, 2, 2, 3));  // 3.5 becomes 4
  CHECK(transformed(from, {CentreCrop{9, 8}}) == from);
}

TEST_CASE("images: RandomCrop finds each place, also in the padding, and a place is its key's") {
  const Picture from = picture(5, 4);
  const RandomCrop crop{.height = 4, .width = 3, .padding = 2, .fill = 9};
  std::set<std::pair<std::int64_t, std::int64_t>> places;
  for (const Picture& to : transformed_copies(from, {crop}, 300)) {
    bool found = false;
    for (std::int64_t top = -2; top <= 3 && !found; ++top) {
      for (std::int64_t left = -2; left <= 3 && !found; ++left) {
        found = to == part(from, top, left, 4, 3);
        if (found) {
          places.insert({top, left});
        }
      }
    }
    REQUIRE(found);
  }
  CHECK(places.size() == 36);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CHECK(transformed(from, {crop}, {.seed = seed, .workers = 2}) ==
          transformed(from, {crop}, {.seed = seed}));
  }
}

TEST_CASE("images: RandomFlip mirrors about as often as it says, one way or the other") {
  const Picture from = picture(3, 4);
  for (const bool vertical : {false, true}) {
    CHECK(transformed(from, {RandomFlip{.probability = 0, .vertical = vertical}}) == from);
    CHECK(transformed(from, {RandomFlip{.probability = 1, .vertical = vertical}}) ==
          mirror(from, vertical));
  }
  int mirrored = 0;
  for (const Picture& to : transformed_copies(from, {RandomFlip{.probability = 0.25}}, 200)) {
    mirrored += to == from ? 0 : 1;
  }
  CHECK(mirrored > 25);
  CHECK(mirrored < 80);
}

TEST_CASE("images: RandomResizedCrop keeps to its areas and ratios, and scales as Resize does") {
  // Pixels that tell where they are; scaling to the part's own size would not change them.
  Picture from{{64, 64, 3}, {}};
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) {
      from.pixels.insert(from.pixels.end(),
                         {static_cast<std::uint8_t>(4 * x), static_cast<std::uint8_t>(4 * y), 7});
    }
  }
  const RandomResizedCrop crop{.height = 16, .width = 16, .scale = {0.25, 0.25}, .ratio = {1, 1}};
  std::set<std::pair<int, int>> places;
  for (const Picture& to : transformed_copies(from, {crop}, 50)) {
    // The part has 32 x 32 pixels, and each pixel of the result is the mean of four by four.
    const int left = to.at(8, 8, 0) - to.at(8, 7, 0);
    CHECK(std::abs(left - 8) <= 1);
    const int step = to.at(9, 8, 1) - to.at(8, 8, 1);
    CHECK(std::abs(step - 8) <= 1);
    places.insert({to.at(8, 8, 0), to.at(8, 8, 1)});
  }
  CHECK(places.size() > 40);
  // All of it: what Resize gives.
  const RandomResizedCrop whole{.height = 20, .width = 30, .scale = {1, 1}, .ratio = {1, 1}};
  CHECK(transformed(from, {whole}) == transformed(from, {Resize{.height = 20, .width = 30}}));
  // A ratio that never fits: the middle.
  const RandomResizedCrop slim{.height = 4, .width = 64, .scale = {1, 1}, .ratio = {16, 16}};
  CHECK(transformed(from, {slim}) == part(from, 30, 0, 4, 64));
}

TEST_CASE(
    "images: random transforms of one list differ by their place, and go by sample and epoch") {
  const Picture from = picture(40, 40);
  const RandomCrop first{.height = 30, .width = 30};
  const RandomCrop second{.height = 20, .width = 20};
  std::set<std::uint64_t> results;
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    results.insert(hash_of(transformed(from, {first, second}, {.epoch = epoch})));
  }
  CHECK(results.size() > 7);
  // Two crops of equal size: were their numbers the same, both would take the same place.
  const RandomCrop large{.height = 39, .width = 39};
  const auto one = transformed_copies(from, {large}, 30);
  const auto two = transformed_copies(from, {RandomFlip{.probability = 0}, large}, 30);
  int differ = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    differ += one[i] == two[i] ? 0 : 1;
  }
  CHECK(differ > 10);
  // Values that resumed runs rely on.
  CHECK(hash_of(transformed(from, {first, RandomFlip{}, RandomResizedCrop{8, 8}}, {.epoch = 3})) ==
        16999929391662423835u);
}

TEST_CASE("images: what is done before and after the first random transform is the same") {
  const Picture from = picture(50, 60);
  const Resize to{.shorter = 20};
  const CentreCrop crop{16, 16};
  const RandomFlip never{.probability = 0};
  const Picture before = transformed(from, {to, crop});
  CHECK(transformed(from, {never, to, crop}) == before);
  CHECK(transformed(from, {to, never, crop}) == before);
  // Of mirrored pixels, which lie backwards.
  const RandomFlip always{.probability = 1};
  CHECK(transformed(from, {always, to, crop}) == transformed(mirror(from, false), {to, crop}));
  const Resize lower{.height = 20, .width = 60};  // columns only
  CHECK(transformed(from, {always, lower}) == transformed(mirror(from, false), {lower}));
}

TEST_CASE("images: a transform that cannot be is refused by its place and name") {
  CHECK(contains(refusal({RandomFlip{}, Resize{}}), "transform 1 (resize): give either"));
  CHECK(contains(refusal({Resize{.shorter = 1, .height = 1}}), "give either shorter or"));
  CHECK(contains(refusal({Resize{.height = 1}}), "height and width must be"));
  CHECK(contains(refusal({Resize{.shorter = -1}}), "1 or more"));
  CHECK(contains(refusal({Resize{.shorter = 100000}}), "max_pixels"));
  CHECK(contains(refusal({CentreCrop{0, 4}}), "(centre_crop)"));
  CHECK(contains(refusal({RandomCrop{4, 4, -1}}), "padding"));
  CHECK(contains(refusal({RandomResizedCrop{4, 4, {0, 1}}}), "scale"));
  CHECK(contains(refusal({RandomResizedCrop{4, 4, {0.5, 2}}}), "scale"));
  CHECK(contains(refusal({RandomResizedCrop{.height = 4, .width = 4, .ratio = {2, 1}}}), "ratio"));
  CHECK(contains(refusal({RandomFlip{std::nan("")}}), "probability"));
}

TEST_CASE("images: a picture that a crop does not fit in is refused, by sample") {
  for (const ImageTransforms& transforms :
       {ImageTransforms{CentreCrop{5, 3}}, ImageTransforms{RandomCrop{.height = 5, .width = 3}}}) {
    const auto error = ebb::test::refused([&] { transformed(picture(4, 4), transforms); });
    REQUIRE(error.has_value());
    CHECK(contains(error->what(), "does not fit in a picture of 4 x 4 x 3"));
    CHECK(error->info().index == 0);
    CHECK(error->info().stage == "transform");
    CHECK(contains(error->info().source, "class/file"));
  }
}

TEST_CASE("images: no resize makes a slim picture ask for more than max_pixels") {
  const std::string slim = raw_file(picture(1000, 1));
  for (const Resize& to : {Resize{.height = 8, .width = 8}, Resize{.shorter = 20}}) {
    ImageOptions options{.decoders = ebb::test::raw_decoders(), .transforms = {to}};
    options.transforms.push_back(CentreCrop{8, 8});
    options.max_pixels = 1000;  // the first one has 1000 x 8 pixels between its passes
    const auto error = ebb::test::refused([&] { read_picture(slim, options); });
    REQUIRE(error.has_value());
    CHECK(contains(error->what(), "beyond max_pixels = 1000 when it is resized"));
  }
}
