// SPDX-License-Identifier: Apache-2.0
// Lists of transforms: their options, what of them is done when, and their revision.
#include "image_chain.h"

#include "content_hash.h"
#include "image_crops.h"
#include "image_resize.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

const char* name_of(const ImageTransform& transform) noexcept {
  constexpr std::array names = {"resize", "centre_crop", "crop", "resized_crop", "flip"};
  static_assert(names.size() == std::variant_size_v<ImageTransform>);
  return names[transform.index()];
}

bool is_random(const ImageTransform& transform) noexcept {
  return !std::holds_alternative<Resize>(transform) &&
         !std::holds_alternative<CentreCrop>(transform);
}

// Whether pictures of all sizes have one size then.
bool sets_size(const ImageTransform& transform) noexcept {
  const auto* const to = std::get_if<Resize>(&transform);
  return to != nullptr ? to->shorter == 0 : !std::holds_alternative<RandomFlip>(transform);
}

std::uint64_t bits(std::int64_t number) noexcept {
  return static_cast<std::uint64_t>(number);
}
std::uint64_t bits(double number) noexcept {
  return std::bit_cast<std::uint64_t>(number);
}

// Mixes what a transform is into a hash.
std::uint64_t revised(std::uint64_t hash, const ImageTransform& transform) {
  const auto mix = [&hash](auto... numbers) { ((hash = hash_number(bits(numbers), hash)), ...); };
  mix(static_cast<std::int64_t>(transform.index()));
  std::visit(
      Match{[&](const Resize& r) { mix(r.shorter, r.height, r.width); },
            [&](const CentreCrop& c) { mix(c.height, c.width); },
            [&](const RandomCrop& c) { mix(c.height, c.width, c.padding, std::int64_t{c.fill}); },
            [&](const RandomResizedCrop& c) {
              mix(c.height, c.width, c.scale[0], c.scale[1], c.ratio[0], c.ratio[1]);
            },
            [&](const RandomFlip& f) { mix(f.probability, std::int64_t{f.vertical}); }},
      transform);
  return hash;
}

// Returns what is wrong with the options of a transform, or nothing.
std::string mistake(const ImageTransform& transform, std::int64_t pixels_max) {
  const auto size = [pixels_max](std::int64_t height, std::int64_t width) -> std::string {
    if (height < 1 || width < 1) {
      return "height and width must be 1 or more";
    }
    return height > pixels_max / width ? "its size is beyond max_pixels" : "";
  };
  const auto range = [](const std::array<double, 2>& ends, double limit) {
    return std::isfinite(ends[0]) && ends[0] > 0 && ends[0] <= ends[1] && ends[1] <= limit;
  };
  return std::visit(
      Match{[&](const Resize& r) -> std::string {
              if ((r.shorter != 0) == (r.height != 0 || r.width != 0)) {
                return "give either shorter or height and width";
              }
              return r.shorter != 0 ? size(r.shorter, r.shorter) : size(r.height, r.width);
            },
            [&](const CentreCrop& c) { return size(c.height, c.width); },
            [&](const RandomCrop& c) -> std::string {
              if (c.padding < 0 || c.padding > pixels_max) {
                return "padding must be 0 or more";
              }
              return size(c.height, c.width);
            },
            [&](const RandomResizedCrop& c) -> std::string {
              if (!range(c.scale, 1)) {
                return "scale must be two numbers above 0 and up to 1, the smaller one first";
              }
              if (!range(c.ratio, 1e6)) {
                return "ratio must be two numbers above 0, the smaller one first";
              }
              return size(c.height, c.width);
            },
            [&](const RandomFlip& f) -> std::string {
              return f.probability >= 0 && f.probability <= 1 ? "" : "probability must be 0 to 1";
            }},
      transform);
}

// Returns the size that a picture is resized to. None where it is beyond pixels_max, or would be
// between its two passes: a slim picture of few bytes could ask for all memory there.
std::optional<ImageSize> resized(const ImageSize& from, const Resize& to, std::int64_t pixels_max) {
  ImageSize size{to.height, to.width, from.channels};
  if (to.shorter != 0) {
    // Sides are pixels_max at most, below 2^31: products fit.
    const std::int64_t side = std::min(from.height, from.width);
    size.height = to.shorter * from.height / side;
    size.width = to.shorter * from.width / side;
  }
  const bool fits = std::max(size.height, from.height) <= pixels_max / size.width;
  return fits ? std::optional(size) : std::nullopt;
}

ImageView apply_resize(const ImageView& view, const Resize& to, std::int64_t pixels_max,
                       const StageContext& context) {
  const auto size = resized(view.size, to, pixels_max);
  if (!size.has_value()) {
    context.fail(LoadErrorKind::shape, "transform", 0,
                 "a picture of " + to_string(view.size) + " is beyond max_pixels = " +
                     std::to_string(pixels_max) + " when it is resized");
  }
  return resize(view, size->height, size->width, context);
}

}  // namespace

ImageChain::ImageChain(const char* function, const ImageTransforms& transforms,
                       std::int64_t pixels_max)
    : pixels_max_(pixels_max) {
  for (const ImageTransform& transform : transforms) {
    const std::string place = std::to_string(steps_.size());
    const std::string wrong = mistake(transform, pixels_max);
    EBB_REQUIRE(wrong.empty(), function, "transform ", place, " (", name_of(transform),
                "): ", wrong);
    revision_ = revised(revision_, transform);
    has_size_ = has_size_ || sets_size(transform);
    steps_.push_back({transform, std::string(name_of(transform)) + "." + place});
  }
  const auto first = std::find_if(steps_.begin(), steps_.end(),
                                  [](const Step& step) { return is_random(step.transform); });
  random_from_ = static_cast<std::size_t>(first - steps_.begin());
}

ImageSize ImageChain::size_after(ImageSize size) const {
  for (const Step& step : steps_) {
    std::visit(Match{[&](const Resize& to) {
                       const auto after = resized(size, to, pixels_max_);
                       EBB_REQUIRE(after.has_value(), "open_images", "a picture of ",
                                   to_string(size), " is beyond max_pixels when it is resized");
                       size = *after;
                     },
                     [](const RandomFlip&) {},
                     [&](const auto& crop) {
                       size.height = crop.height;
                       size.width = crop.width;
                     }},
               step.transform);
  }
  return size;
}

ImageWish ImageChain::wish(std::int64_t channels) const noexcept {
  ImageWish wish{.channels = channels};
  if (!steps_.empty()) {
    if (const auto* const first = std::get_if<Resize>(&steps_.front().transform)) {
      wish.height_min = std::max(first->height, first->shorter);
      wish.width_min = std::max(first->width, first->shorter);
    }
  }
  return wish;
}

ImageView ImageChain::apply_fixed(ImageView view, const StageContext& context) const {
  for (std::size_t i = 0; i < random_from_; ++i) {
    const ImageTransform& transform = steps_[i].transform;
    if (const auto* const to = std::get_if<Resize>(&transform)) {
      view = apply_resize(view, *to, pixels_max_, context);
    } else {
      view = centre_crop(view, std::get<CentreCrop>(transform), context);
    }
  }
  return view;
}

ImageView ImageChain::apply_rest(ImageView view, const SampleContext& context) const {
  for (std::size_t i = random_from_; i < steps_.size(); ++i) {
    const Random random = context.random(steps_[i].name);
    view = std::visit(
        Match{[&](const Resize& to) { return apply_resize(view, to, pixels_max_, context); },
              [&](const CentreCrop& crop) { return centre_crop(view, crop, context); },
              [&](const RandomCrop& crop) { return random_crop(view, crop, random, context); },
              [&](const RandomResizedCrop& crop) {
                const Box box = random_box(view.size, crop, random);
                const Resize to{.height = crop.height, .width = crop.width};
                return apply_resize(part_of(view, box), to, pixels_max_, context);
              },
              [&](const RandomFlip& flip) {
                Random draws = random;
                const bool does = draws.uniform() < static_cast<float>(flip.probability);
                return does ? mirrored(view, flip.vertical) : view;
              }},
        steps_[i].transform);
  }
  return view;
}

}  // namespace ebb::inline v0::detail
