// SPDX-License-Identifier: Apache-2.0
// A checked list of transforms, in two parts: what is done once for each sample, and what is done
// each time. Used by the data set of pictures. Any thread.
#pragma once

#include "image_codecs.h"

#include <ebb/loaders/image_transforms.h>

#include <string>
#include <vector>

namespace ebb::inline v0::detail {

class ImageChain {
 public:
  // function is for the messages of the std::invalid_argument that options that cannot be get.
  ImageChain(const char* function, const ImageTransforms& transforms, std::int64_t pixels_max);

  // Whether all pictures have one size in the end, whatever they were.
  bool has_size() const noexcept { return has_size_; }
  // The size that a picture of this size has in the end. Throws std::invalid_argument for one that
  // overflows.
  ImageSize size_after(ImageSize size) const;
  // The size that is decoded at least.
  ImageWish wish(std::int64_t channels) const noexcept;
  // A hash of all kinds and options, in order.
  std::uint64_t revision() const noexcept { return revision_; }
  bool has_fixed() const noexcept { return random_from_ > 0; }

  // What comes before the first random transform. The result is in scratch, or a part of view.
  ImageView apply_fixed(ImageView view, const StageContext& context) const;
  // The first random transform and the rest.
  ImageView apply_rest(ImageView view, const SampleContext& context) const;

 private:
  struct Step {
    ImageTransform transform;
    std::string name;  // of its random numbers
  };

  std::vector<Step> steps_;
  std::size_t random_from_ = 0;
  std::int64_t pixels_max_;
  bool has_size_ = false;
  std::uint64_t revision_ = 0;
};

}  // namespace ebb::inline v0::detail
