// SPDX-License-Identifier: Apache-2.0
// Parts and mirrors of a picture: views, but for the edge that padding adds. Used by the
// transforms. Any thread.
#pragma once

#include <ebb/loaders/image.h>
#include <ebb/loaders/image_transforms.h>
#include <ebb/runtime/random.h>

namespace ebb::inline v0::detail {

// A part of a picture, in its pixels.
struct Box {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

ImageView part_of(const ImageView& view, const Box& box) noexcept;
ImageView mirrored(const ImageView& view, bool vertical) noexcept;

// Throw LoadError by context, stage transform, when the picture is smaller than the part.
ImageView centre_crop(const ImageView& view, const CentreCrop& crop, const StageContext& context);
ImageView random_crop(const ImageView& view, const RandomCrop& crop, Random random,
                      const StageContext& context);

// Returns the part that RandomResizedCrop takes of a picture of that size. Its sides are 1 or more.
Box random_box(const ImageSize& size, const RandomResizedCrop& crop, Random random) noexcept;

}  // namespace ebb::inline v0::detail
