// SPDX-License-Identifier: Apache-2.0
// Pictures as the stages of a data set hand them on: bytes, row by row, the channels of a pixel
// side by side. Used by open_images, its transforms and decoders, and by data sets of one's own.
// Values: any thread.
#pragma once

#include <ebb/loaders/dataset.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ebb::inline v0 {

// In pixels. channels is 1 (grey) or 3 (red, green, blue).
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 3;

  bool operator==(const ImageSize&) const = default;
  // Returns height * width * channels: the bytes of such a picture. Throws std::invalid_argument
  // for a size below 1, other channels, or more bytes than 2^62.
  std::size_t bytes() const;
};

// Returns "480 x 640 x 3".
std::string to_string(const ImageSize& size);

// Pixels that somebody else keeps. Strides are in bytes and may be negative, so that a crop or a
// flip is another view of the same pixels; the channels of a pixel lie side by side.
struct ImageView {
  const std::uint8_t* pixels = nullptr;  // the channels of the pixel at row 0, column 0
  ImageSize size = {};
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t pixel_stride = 0;

  const std::uint8_t* at(std::int64_t row, std::int64_t column) const noexcept {
    return pixels + row * row_stride + column * pixel_stride;
  }
  // Returns whether the pixels lie one after the other, as make_image lays them.
  bool is_dense() const noexcept {
    return pixel_stride == size.channels && row_stride == size.width * size.channels;
  }
};

// Returns a view of pixels that lie one after the other.
ImageView dense_view(const std::uint8_t* pixels, const ImageSize& size) noexcept;
// Writes the pixels of view one after the other. out has size.bytes() bytes, outside of view.
void copy_pixels(const ImageView& view, std::span<std::uint8_t> out) noexcept;

// Returns room for the pixels of a picture that a stage hands on, uninitialised: all of it must be
// written. The picture's size goes before them, which takes 32 bytes. Throws what
// SampleBytes::allocate throws, and std::invalid_argument for a size that cannot be.
std::span<std::uint8_t> make_image(SampleBytes& out, const ImageSize& size);
// Returns the picture that make_image laid out there; it lives as long as the bytes. Throws
// std::invalid_argument when they are something else.
ImageView view_image(std::span<const std::byte> bytes);

}  // namespace ebb::inline v0
