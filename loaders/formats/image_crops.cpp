// SPDX-License-Identifier: Apache-2.0
// Where crops lie. The order in which random numbers are taken is a format: resumed runs rely on
// it.
#include "image_crops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ebb::inline v0::detail {

namespace {

// Half of a difference of sides, half a pixel rounded to even.
std::int64_t half_to_even(std::int64_t difference) noexcept {
  const std::int64_t low = difference / 2;
  return difference % 2 == 0 ? low : low + low % 2;
}

void check_fits(const ImageSize& have, std::int64_t height, std::int64_t width,
                const StageContext& context) {
  if (have.height < height || have.width < width) {
    context.fail(LoadErrorKind::shape, "transform", 0,
                 "a crop of " + std::to_string(height) + " x " + std::to_string(width) +
                     " does not fit in a picture of " + to_string(have) + ": resize it first");
  }
}

std::int64_t below(Random& random, std::int64_t bound) noexcept {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
}

// Copies the part of view that a box shows, with fill where the box lies outside of it.
ImageView filled_part(const ImageView& view, const Box& box, std::uint8_t fill,
                      const StageContext& context) {
  const ImageSize size{box.height, box.width, view.size.channels};
  const std::span<std::byte> bytes = context.scratch(Bytes{size.bytes()});
  std::memset(bytes.data(), fill, bytes.size());
  auto* const out = reinterpret_cast<std::uint8_t*>(bytes.data());
  const std::int64_t left = std::max(box.left, std::int64_t{0});
  const std::int64_t width = std::min(box.left + box.width, view.size.width) - left;
  for (std::int64_t row = 0; row < box.height && width > 0; ++row) {
    const std::int64_t from = box.top + row;
    if (from >= 0 && from < view.size.height) {
      const auto count = static_cast<std::size_t>(width * size.channels);
      copy_pixels(part_of(view, {from, left, 1, width}),
                  {out + (row * size.width + left - box.left) * size.channels, count});
    }
  }
  return dense_view(out, size);
}

}  // namespace

ImageView part_of(const ImageView& view, const Box& box) noexcept {
  return {view.at(box.top, box.left),
          {box.height, box.width, view.size.channels},
          view.row_stride,
          view.pixel_stride};
}

ImageView mirrored(const ImageView& view, bool vertical) noexcept {
  ImageView result = view;
  if (vertical) {
    result.pixels = view.at(view.size.height - 1, 0);
    result.row_stride = -view.row_stride;
  } else {
    result.pixels = view.at(0, view.size.width - 1);
    result.pixel_stride = -view.pixel_stride;
  }
  return result;
}

ImageView centre_crop(const ImageView& view, const CentreCrop& crop, const StageContext& context) {
  check_fits(view.size, crop.height, crop.width, context);
  return part_of(view, {half_to_even(view.size.height - crop.height),
                        half_to_even(view.size.width - crop.width), crop.height, crop.width});
}

ImageView random_crop(const ImageView& view, const RandomCrop& crop, Random random,
                      const StageContext& context) {
  ImageSize padded = view.size;
  padded.height += 2 * crop.padding;
  padded.width += 2 * crop.padding;
  check_fits(padded, crop.height, crop.width, context);
  Box box{0, 0, crop.height, crop.width};
  box.top = below(random, padded.height - crop.height + 1) - crop.padding;
  box.left = below(random, padded.width - crop.width + 1) - crop.padding;
  const bool is_inside = box.top >= 0 && box.left >= 0 &&
                         box.top + box.height <= view.size.height &&
                         box.left + box.width <= view.size.width;
  return is_inside ? part_of(view, box) : filled_part(view, box, crop.fill, context);
}

Box random_box(const ImageSize& size, const RandomResizedCrop& crop, Random random) noexcept {
  const auto height = static_cast<double>(size.height);
  const auto width = static_cast<double>(size.width);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random.uniform());
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = height * width * between(crop.scale[0], crop.scale[1]);
    const double ratio = std::exp(between(std::log(crop.ratio[0]), std::log(crop.ratio[1])));
    const double box_width = std::round(std::sqrt(area * ratio));
    const double box_height = std::round(std::sqrt(area / ratio));
    if (box_width >= 1 && box_width <= width && box_height >= 1 && box_height <= height) {
      Box box{0, 0, static_cast<std::int64_t>(box_height), static_cast<std::int64_t>(box_width)};
      box.top = below(random, size.height - box.height + 1);
      box.left = below(random, size.width - box.width + 1);
      return box;
    }
  }
  const double ratio = std::clamp(width / height, crop.ratio[0], crop.ratio[1]);
  Box box{0, 0, size.height, size.width};
  if (ratio > width / height) {  // too slim: all of its width
    box.height = static_cast<std::int64_t>(std::max(std::round(width / ratio), 1.0));
  } else if (ratio < width / height) {
    box.width = static_cast<std::int64_t>(std::max(std::round(height * ratio), 1.0));
  }
  box.top = (size.height - box.height) / 2;
  box.left = (size.width - box.width) / 2;
  return box;
}

}  // namespace ebb::inline v0::detail
