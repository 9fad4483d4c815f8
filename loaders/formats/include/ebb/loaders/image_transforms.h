// SPDX-License-Identifier: Apache-2.0
// What open_images does with a picture before it is normalised into its batch: a list of values.
// What comes before the first random one is done once for each sample and may be cached; the rest
// is done each time. A random one takes its numbers from (seed, epoch, sample, its place in the
// list), and nothing else. Sizes are in pixels. Values: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

namespace ebb::inline v0 {

// Scales a picture: to a shorter side of shorter, the longer one in proportion and rounded down; or
// to height x width, whatever its proportions were. Give one or the other. Bilinear with antialias:
// each pixel is the mean, by a triangle, of all that it covers, first along rows and then along
// columns, each rounded to bytes. Gives the bytes of Pillow's Image.resize with BILINEAR, which is
// what torchvision's Resize does to such pictures. A JPEG may be decoded at a fraction of its size
// first, never below what is asked for here.
struct Resize {
  std::int64_t shorter = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const Resize&) const = default;
};

// Takes the middle; where there is no middle, half a pixel is rounded to even, as torchvision does.
// A picture that is smaller is refused.
struct CentreCrop {
  std::int64_t height = 0;
  std::int64_t width = 0;
  bool operator==(const CentreCrop&) const = default;
};

// Takes a part at random from the picture, around which padding pixels of fill lie on each side. A
// picture that is smaller even so is refused.
struct RandomCrop {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t padding = 0;
  std::uint8_t fill = 0;
  bool operator==(const RandomCrop&) const = default;
};

// Takes a part of a random area (as a share of the picture's) and a random ratio of width to height
// (its logarithm is uniform), and scales it to height x width as Resize does. After ten parts that
// do not fit, the largest one in the middle whose ratio is allowed.
struct RandomResizedCrop {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
  bool operator==(const RandomResizedCrop&) const = default;
};

// Mirrors left and right, or top and bottom.
struct RandomFlip {
  double probability = 0.5;
  bool vertical = false;
  bool operator==(const RandomFlip&) const = default;
};

using ImageTransform = std::variant<Resize, CentreCrop, RandomCrop, RandomResizedCrop, RandomFlip>;
using ImageTransforms = std::vector<ImageTransform>;

}  // namespace ebb::inline v0
