// SPDX-License-Identifier: Apache-2.0
// Two passes, rows and then columns, each rounded to bytes. A weight is a whole number of 22 bits
// after the point: so the sums, and with them the bytes, are those of Pillow's Image.resize.
#include "image_resize.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ebb::inline v0::detail {

namespace {

constexpr int weight_bits = 22;
constexpr std::int32_t half = 1 << (weight_bits - 1);

template <class T>
std::span<T> scratch_of(const StageContext& context, std::size_t count) {
  const std::span<std::byte> bytes = context.scratch(Bytes::of<T>(count));
  return {reinterpret_cast<T*>(bytes.data()), count};
}

std::uint8_t to_byte(std::int32_t sum) noexcept {
  return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

// Which pixels along one side make each pixel of the result, and with which weights.
struct Taps {
  std::span<std::int64_t> first;
  std::span<std::int32_t> count;
  std::span<std::int32_t> weights;  // stride of them for each pixel
  std::size_t stride = 0;

  const std::int32_t* weights_of(std::size_t pixel) const noexcept {
    return weights.data() + pixel * stride;
  }
};

Taps make_taps(std::int64_t from, std::int64_t to, const StageContext& context) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);  // the triangle's half width: 1 when enlarging
  const auto pixels = static_cast<std::size_t>(to);
  Taps taps;
  taps.stride = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  taps.first = scratch_of<std::int64_t>(context, pixels);
  taps.count = scratch_of<std::int32_t>(context, pixels);
  taps.weights = scratch_of<std::int32_t>(context, (Bytes{pixels} * taps.stride).count());
  const std::span<double> triangle = scratch_of<double>(context, taps.stride);
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    const double centre = (static_cast<double>(pixel) + 0.5) * scale;
    const auto nearest = [](double x) { return static_cast<std::int64_t>(std::floor(x + 0.5)); };
    const std::int64_t first = std::max(nearest(centre - support), std::int64_t{0});
    const std::int64_t last = std::min(nearest(centre + support), from);
    double sum = 0;
    for (std::int64_t i = first; i < last; ++i) {
      const double distance = (static_cast<double>(i) - centre + 0.5) * (1.0 / support);
      const double weight = std::max(1.0 - std::abs(distance), 0.0);
      triangle[static_cast<std::size_t>(i - first)] = weight;
      sum += weight;
    }
    taps.first[pixel] = first;
    taps.count[pixel] = static_cast<std::int32_t>(last - first);
    for (std::int64_t i = 0; i < last - first; ++i) {
      const double weight = triangle[static_cast<std::size_t>(i)] / sum;
      taps.weights[pixel * taps.stride + static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(std::floor(weight * (1 << weight_bits) + 0.5));
    }
  }
  return taps;
}

// channels as a constant, which is also the stride of pixels: a third quicker.
template <int channels>
void resize_row(const std::uint8_t* begin, const Taps& taps, std::uint8_t* out) {
  for (std::size_t pixel = 0; pixel < taps.first.size(); ++pixel) {
    const std::uint8_t* from = begin + taps.first[pixel] * channels;
    const std::int32_t* const weights = taps.weights_of(pixel);
    std::array<std::int32_t, channels> sums;
    sums.fill(half);
    for (std::int32_t i = 0; i < taps.count[pixel]; ++i, from += channels) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        sums[channel] += from[channel] * weights[i];
      }
    }
    for (const std::int32_t sum : sums) {
      *out++ = to_byte(sum);
    }
  }
}

ImageView resize_rows(const ImageView& view, std::int64_t width, const StageContext& context) {
  const Taps taps = make_taps(view.size.width, width, context);
  const ImageSize size{view.size.height, width, view.size.channels};
  const std::span<std::uint8_t> out = scratch_of<std::uint8_t>(context, size.bytes());
  const auto row_bytes = static_cast<std::size_t>(size.width * size.channels);
  for (std::int64_t row = 0; row < size.height; ++row) {
    std::uint8_t* const to = out.data() + static_cast<std::size_t>(row) * row_bytes;
    if (size.channels == 3) {
      resize_row<3>(view.at(row, 0), taps, to);
    } else {
      resize_row<1>(view.at(row, 0), taps, to);
    }
  }
  return dense_view(out.data(), size);
}

ImageView resize_columns(const ImageView& view, std::int64_t height, const StageContext& context) {
  const Taps taps = make_taps(view.size.height, height, context);
  const ImageSize size{height, view.size.width, view.size.channels};
  const std::span<std::uint8_t> out = scratch_of<std::uint8_t>(context, size.bytes());
  const auto row_bytes = static_cast<std::size_t>(size.width * size.channels);
  const std::span<std::int32_t> sums = scratch_of<std::int32_t>(context, row_bytes);
  for (std::size_t row = 0; row < taps.first.size(); ++row) {
    std::fill(sums.begin(), sums.end(), half);
    for (std::int32_t i = 0; i < taps.count[row]; ++i) {
      const std::uint8_t* const from = view.at(taps.first[row] + i, 0);
      const std::int32_t weight = taps.weights_of(row)[i];
      for (std::size_t byte = 0; byte < row_bytes; ++byte) {
        sums[byte] += from[byte] * weight;
      }
    }
    std::transform(sums.begin(), sums.end(), out.data() + row * row_bytes, to_byte);
  }
  return dense_view(out.data(), size);
}

}  // namespace

ImageView resize(const ImageView& view, std::int64_t height, std::int64_t width,
                 const StageContext& context) {
  const bool changes_rows = width != view.size.width;
  const bool changes_columns = height != view.size.height;
  ImageView result = view;
  if ((changes_rows || changes_columns) && view.pixel_stride != view.size.channels) {
    // Mirrored. The passes want the pixels of a row one after the other.
    const std::span<std::uint8_t> dense = scratch_of<std::uint8_t>(context, view.size.bytes());
    copy_pixels(view, dense);
    result = dense_view(dense.data(), view.size);
  }
  if (changes_rows) {
    result = resize_rows(result, width, context);
  }
  if (changes_columns) {
    result = resize_columns(result, height, context);
  }
  return result;
}

}  // namespace ebb::inline v0::detail
