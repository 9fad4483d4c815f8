// SPDX-License-Identifier: Apache-2.0
// Pictures sorted into folders, one for each class: in the file system, or in tar archives.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/file_paths.h>
#include <ebb/loaders/image_decoder.h>
#include <ebb/loaders/image_transforms.h>
#include <ebb/loaders/vocabulary.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ebb::inline v0 {

struct ImageOptions {
  ImageDecoders decoders = {};      // of which the first that knows a file's first bytes reads it
  ImageTransforms transforms = {};  // must leave pictures of one size
  std::array<float, 3> mean = {0, 0, 0};  // of each channel; must be finite
  std::array<float, 3> std = {1, 1, 1};   // must be finite and more than 0
  std::int64_t channels = 3;              // 3, or 1 for grey, where the first mean and std count
  // The classes' names in the order of their labels. Empty: the names that are there, sorted by
  // their bytes.
  std::vector<std::string> vocabulary = {};
  // Ends of file names, such as ".png", case and all; others are passed over. Empty: every file is
  // a picture.
  std::vector<std::string> extensions = {};
  std::int64_t max_pixels = 64 << 20;            // of a picture, before and after each transform
  Bytes max_file_bytes{std::size_t{256} << 20};  // of one file, or member of an archive
  Bytes max_bytes{std::size_t{16} << 30};        // of a gzipped archive, unpacked
  Bytes keep_bytes{std::size_t{64} << 20};  // a gzipped archive of up to so many stays unpacked in
                                            // memory; 0: none does
  std::string name = {};                    // for messages; empty: the name of the first path
};

struct ImageSet {
  AnyDataset data;
  std::vector<std::string> vocabulary;  // vocabulary[y] is the name of class y: save_vocabulary
};

// Opens folders, tar archives (ustar, pax, GNU's; plain or gzipped, told by their first bytes), or
// several of them (shards) as one set. Each file is a sample: "x", f32 [channels, H, W] =
// (byte/255 - mean)/std, and "y", i64 scalar, the label of the folder that the file is in directly.
// H and W are what the transforms give, or what they make of the first picture's size: another size
// is LoadError then. Samples of a folder are sorted by path, those of an archive in its order.
//
// Files and folders whose names begin with a dot are passed over, as are folders' entries in an
// archive. In a folder, links are followed. In an archive, a path that is absolute or has ".." in
// it, a link, a device or a pipe is LoadError; a path that comes twice is two samples.
//
// What is kept: paths and sizes; the pictures are read when their samples are. A file read from a
// gzipped archive costs unpacking about 1 MiB, less in sequence (see keep_bytes). Stages: fetch
// reads, decode decodes and does what comes before the first random transform, finish does the
// rest.
//
// The fingerprint has the paths, sizes and labels of all files, samples of each archive's content
// (not of files in folders), the vocabulary, the transforms, mean, std, channels, and the names of
// the decoders.
//
//   auto [data, vocabulary] = ebb::open_images("train", {
//       .decoders = ebb::image_decoders(),
//       .transforms = {ebb::Resize{.shorter = 256}, ebb::RandomResizedCrop{224, 224},
//                      ebb::RandomFlip{}},
//   });
//
// Throws LoadError, with path and byte offset, for what is missing, damaged or beyond a limit, a
// file in no class folder, a class that the vocabulary does not have; std::invalid_argument for
// options that cannot be.
ImageSet open_images(const FilePaths& paths, const ImageOptions& options);

}  // namespace ebb::inline v0
