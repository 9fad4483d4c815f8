// SPDX-License-Identifier: Apache-2.0
// Sets of pictures: which files are samples of which class, limits, and what tells sets apart.
// [load.formats] [load.error]
#include "image_fixture.h"
#include "refused_fixture.h"
#include "tar_fixture.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

using ebb::ImageOptions;
using ebb::LoadErrorKind;
using ebb::test::check_refused;
using ebb::test::contains;
using ebb::test::picture;
using ebb::test::raw_file;
using ebb::test::read_all;
using ebb::test::TempFolder;
using ebb::test::write_classes;

namespace {

ImageOptions raw_options() {
  return {.decoders = ebb::test::raw_decoders()};
}

std::vector<std::int64_t> labels_of(const ebb::AnyDataset& data) {
  std::vector<std::int64_t> labels;
  for (const auto& sample : read_all(data)) {
    labels.push_back(sample.label);
  }
  return labels;
}

std::string misuse(const ebb::FilePaths& paths, const ImageOptions& options) {
  try {
    ebb::open_images(paths, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("images: pixels become (byte/255 - mean)/std by channel, labels the folders' order") {
  const TempFolder folder;
  write_classes(folder, {{"dog/b.raw", raw_file(picture(2, 3))},
                         {"cat/z.raw", raw_file(picture(2, 3))},
                         {"ant/a/b/cat/x.raw", raw_file(picture(2, 3))},
                         {"dog/a.raw", raw_file(picture(2, 3))}});
  ImageOptions options = raw_options();
  options.mean = {0.25f, 0.5f, 0.75f};
  options.std = {0.5f, 2.0f, 4.0f};
  const auto [data, vocabulary] = ebb::open_images(folder.path(), options);
  CHECK(vocabulary == std::vector<std::string>{"cat", "dog"});
  CHECK(data.size() == 4);
  CHECK(data.name() == folder.path().filename());
  REQUIRE(data.schema().fields.size() == 2);
  CHECK(data.schema().fields[0].sample_shape == ebb::Shape{3, 2, 3});
  CHECK(data.schema().fields[1].sample_shape == ebb::Shape{});

  ebb::test::LogLines log;
  ebb::Runtime rt({.executor = ebb::test::executor_choice(), .log = log.hook()});
  ebb::Loader loader(rt, data, {.batch = 4, .workers = 0, .shuffle = false});
  const auto batch = loader.next();
  REQUIRE(batch.has_value());
  const auto [x, y] = batch->fields<2>();
  const auto labels = y.span<const std::int64_t>();
  CHECK(std::vector<std::int64_t>(labels.begin(), labels.end()) ==
        std::vector<std::int64_t>{0, 0, 1, 1});
  const auto from = picture(2, 3);
  for (std::size_t i = 0; i < 18; ++i) {
    const std::size_t channel = i / 6;
    const float byte = from.pixels[i % 6 * 3 + channel];
    CHECK(x.span<const float>()[18 + i] ==
          (byte / 255.0f - options.mean[channel]) / options.std[channel]);
  }
}

TEST_CASE("images: hidden files and other extensions are passed over, links are followed") {
  const TempFolder folder;
  write_classes(folder, {{"a/1.raw", raw_file(picture(2, 2))},
                         {"a/.hidden.raw", "no picture"},
                         {".git/2.raw", "no picture"},
                         {"readme.txt", "in no class"}});
  std::filesystem::create_directory_symlink(folder.path() / "a", folder.path() / "b");
  ImageOptions options = raw_options();
  options.extensions = {".jpg", ".raw"};
  const auto set = ebb::open_images(folder.path(), options);
  CHECK(set.data.size() == 2);
  CHECK(set.vocabulary == std::vector<std::string>{"a", "b"});
  check_refused(
      [&] { ebb::open_images(folder.path(), raw_options()); },
      {LoadErrorKind::shape, folder.path(), 0, "\"readme.txt\" is in no folder of a class"});
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "a" / "loop");
  const auto error = ebb::test::refused([&] { ebb::open_images(folder.path(), options); });
  REQUIRE(error.has_value());
  CHECK(contains(error->what(), "more than 16 folders"));
}

TEST_CASE("images: with a vocabulary labels are its, and an unknown class is an error") {
  const TempFolder folder;
  write_classes(folder, {{"b/1", raw_file(picture(2, 2))}, {"c/1", raw_file(picture(2, 2))}});
  ImageOptions options = raw_options();
  options.vocabulary = {"c", "x", "b"};
  const auto set = ebb::open_images(folder.path(), options);
  CHECK(labels_of(set.data) == std::vector<std::int64_t>{2, 0});
  CHECK(set.vocabulary == options.vocabulary);
  options.vocabulary = {"b"};
  check_refused([&] { ebb::open_images(folder.path(), options); },
                {LoadErrorKind::shape, folder.path(), 0, "\"c/1\" is of class \"c\", which"});
}

TEST_CASE("images: what is no set of pictures is refused") {
  const TempFolder folder;
  check_refused([&] { ebb::open_images(folder.path(), raw_options()); },
                {LoadErrorKind::corrupt, folder.path(), 0, "there is no picture in it"});
  const auto none = folder.path() / "none";
  check_refused([&] { ebb::open_images(none, raw_options()); },
                {LoadErrorKind::io, none, 0, "No such file"});
  write_classes(folder, {{"a/1", raw_file(picture(2, 2))}});
  ImageOptions small = raw_options();
  small.max_file_bytes = ebb::Bytes{20};
  check_refused([&] { ebb::open_images(folder.path(), small); },
                {LoadErrorKind::corrupt, folder.path() / "a/1", 0, "more than max_file_bytes"});
  std::filesystem::create_symlink(folder.path() / "nowhere", folder.path() / "a" / "2");
  const auto error = ebb::test::refused([&] { ebb::open_images(folder.path(), raw_options()); });
  REQUIRE(error.has_value());
  CHECK(contains(error->what(), "a link that leads nowhere"));
}

TEST_CASE("images: options that cannot be are the caller's mistake") {
  const TempFolder folder;
  write_classes(folder, {{"a/1", raw_file(picture(2, 2))}});
  CHECK(contains(misuse(folder.path(), {}), "there are no decoders"));
  CHECK(contains(misuse({folder.path()}, {.decoders = {nullptr}}), "a decoder is null"));
  CHECK(contains(misuse(std::vector<std::filesystem::path>{}, raw_options()), "is named"));
  const auto with = [&](auto change) {
    ImageOptions options = raw_options();
    change(options);
    return misuse(folder.path(), options);
  };
  CHECK(contains(with([](ImageOptions& o) { o.channels = 2; }), "channels must be 1 or 3"));
  CHECK(contains(with([](ImageOptions& o) { o.std[1] = 0; }), "std must be"));
  CHECK(contains(with([](ImageOptions& o) { o.mean[2] = std::nanf(""); }), "mean must be"));
  CHECK(contains(with([](ImageOptions& o) { o.max_pixels = 0; }), "max_pixels"));
  CHECK(contains(with([](ImageOptions& o) { o.vocabulary = {"a", "a"}; }), "\"a\" twice"));
  CHECK(with([](ImageOptions&) {}) == "accepted");
}

TEST_CASE("images: pictures of other sizes than the first are refused by sample") {
  const TempFolder folder;
  write_classes(folder, {{"a/1", raw_file(picture(2, 3))}, {"a/2", raw_file(picture(3, 2))}});
  const auto set = ebb::open_images(folder.path(), raw_options());
  const auto error = ebb::test::refused([&] { read_all(set.data); });
  REQUIRE(error.has_value());
  CHECK(error->kind() == LoadErrorKind::shape);
  CHECK(error->info().index == 1);
  CHECK(error->info().source == (folder.path() / "a/2").string());
  CHECK(contains(error->what(), "a picture of 3 x 2 x 3 where the first one has 2 x 3 x 3"));
  ImageOptions cropped = raw_options();
  cropped.transforms = {ebb::CentreCrop{2, 2}};
  CHECK(read_all(ebb::open_images(folder.path(), cropped).data).size() == 2);
}

TEST_CASE("images: a file that changed, went or cannot be decoded is that sample's error") {
  const TempFolder folder;
  write_classes(folder, {{"a/1", raw_file(picture(2, 2))}, {"a/2", raw_file(picture(2, 2))}});
  const auto set = ebb::open_images(folder.path(), raw_options());
  const auto check = [&](LoadErrorKind kind, const std::string& stage, const std::string& text) {
    const auto error = ebb::test::refused([&] { read_all(set.data); });
    REQUIRE(error.has_value());
    CAPTURE(error->what());
    CHECK(to_string(error->kind()) == to_string(kind));
    CHECK(error->info().index == 1);
    CHECK(error->info().stage == stage);
    CHECK(error->info().source == (folder.path() / "a/2").string());
    CHECK(contains(error->what(), text));
    CHECK(contains(error->what(), "[Loader::next] data set " + set.data.name()));
  };
  folder.write("a/2", raw_file(picture(2, 2)) + "more");
  check(LoadErrorKind::io, "open", "when the set was opened");
  std::string other = raw_file(picture(2, 2));
  other[0] = 'X';
  folder.write("a/2", other);
  check(LoadErrorKind::corrupt, "decode", "no picture that a decoder knows (there are: raw)");
  other = raw_file(picture(2, 2));
  other[4] = '1';
  folder.write("a/2", other);
  check(LoadErrorKind::corrupt, "decode", "truncated");
  std::filesystem::remove(folder.path() / "a/2");
  check(LoadErrorKind::io, "open", "No such file");
}

TEST_CASE("images: each option that changes a batch changes the fingerprint") {
  const TempFolder folder;
  write_classes(folder, {{"a/1", raw_file(picture(4, 4))}, {"b/1", raw_file(picture(4, 4))}});
  std::set<std::uint64_t> seen;
  const auto add = [&](const ImageOptions& options) {
    return seen.insert(ebb::open_images(folder.path(), options).data.fingerprint()).second;
  };
  CHECK(add(raw_options()));
  CHECK_FALSE(add(raw_options()));
  const auto with = [&](auto change) {
    ImageOptions options = raw_options();
    options.transforms = {ebb::CentreCrop{2, 2}};
    change(options);
    return add(options);
  };
  CHECK(with([](ImageOptions&) {}));
  CHECK(with([](ImageOptions& o) { o.mean[0] = 0.5f; }));
  CHECK(with([](ImageOptions& o) { o.std[2] = 0.5f; }));
  CHECK(with([](ImageOptions& o) { o.vocabulary = {"b", "a"}; }));
  CHECK(with([](ImageOptions& o) { o.vocabulary = {"a", "b", "c"}; }));
  CHECK(with([](ImageOptions& o) { o.transforms = {ebb::CentreCrop{2, 1}}; }));
  CHECK(with([](ImageOptions& o) { o.transforms = {ebb::Resize{.height = 2, .width = 2}}; }));
  CHECK(with([](ImageOptions& o) { o.transforms.push_back(ebb::RandomFlip{}); }));
  CHECK(with([](ImageOptions& o) { o.transforms.push_back(ebb::RandomFlip{0.25}); }));
  CHECK(with([](ImageOptions& o) { o.transforms = {ebb::RandomFlip{}, ebb::CentreCrop{2, 2}}; }));
  ImageOptions limits = raw_options();
  limits.max_pixels = 100;
  limits.name = "other";
  CHECK_FALSE(add(limits));
  write_classes(folder, {{"b/2", raw_file(picture(4, 4))}});
  CHECK(add(raw_options()));
}

TEST_CASE("images: workers, and folders or archives, make no difference") {
  const TempFolder folder;
  std::string archive;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "set/" + std::to_string(i % 3) + "/" + std::to_string(100 + i);
    const std::string bytes = raw_file(picture(6 + i % 4, 9));
    write_classes(folder, {{name, bytes}});
    archive += ebb::test::tar_entry({.name = name, .bytes = bytes});
  }
  ImageOptions options = raw_options();
  options.transforms = {ebb::Resize{.shorter = 5}, ebb::RandomCrop{.height = 4, .width = 4},
                        ebb::RandomFlip{}};
  const auto set = ebb::open_images(folder.path() / "set", options);
  const auto reference = read_all(set.data, {.epoch = 1});
  CHECK(read_all(set.data, {.epoch = 1, .workers = 3}) == reference);
  CHECK(read_all(set.data, {.epoch = 2}) != reference);
  const auto tar = folder.write("set.tar", archive + ebb::test::tar_end());
  const auto packed = ebb::open_images(tar, options);
  CHECK(packed.vocabulary == set.vocabulary);
  // The archive has another order, so other random numbers: without any it is the same samples.
  options.transforms.resize(1);
  options.transforms.push_back(ebb::CentreCrop{4, 4});
  const auto sorted = [](std::vector<ebb::test::Sample> samples) {
    std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) {
      return std::pair(a.label, a.picture.pixels) < std::pair(b.label, b.picture.pixels);
    });
    return samples;
  };
  CHECK(sorted(read_all(ebb::open_images(folder.path() / "set", options).data)) ==
        sorted(read_all(ebb::open_images(tar, options).data, {.workers = 2})));
}
