// SPDX-License-Identifier: Apache-2.0
// The layout of a picture between two stages: a header of 32 bytes, then the pixels. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/loaders/image.h>

#include <cstring>

namespace ebb::inline v0 {

namespace {

struct ImageHeader {
  std::uint64_t magic = 0x676d69626265u;  // "ebbimg"
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
};
static_assert(sizeof(ImageHeader) == 32);

}  // namespace

std::size_t ImageSize::bytes() const {
  std::int64_t product = 0;
  const bool is_possible = height >= 1 && width >= 1 && (channels == 1 || channels == 3) &&
                           !__builtin_mul_overflow(height, width, &product) &&
                           !__builtin_mul_overflow(product, channels, &product) &&
                           product <= std::int64_t{1} << 62;
  EBB_REQUIRE(is_possible, "ImageSize", "there is no picture of ", to_string(*this));
  return static_cast<std::size_t>(product);
}

std::string to_string(const ImageSize& size) {
  return std::to_string(size.height) + " x " + std::to_string(size.width) + " x " +
         std::to_string(size.channels);
}

ImageView dense_view(const std::uint8_t* pixels, const ImageSize& size) noexcept {
  return {pixels, size, size.width * size.channels, size.channels};
}

void copy_pixels(const ImageView& view, std::span<std::uint8_t> out) noexcept {
  std::uint8_t* to = out.data();
  const auto channels = static_cast<std::size_t>(view.size.channels);
  const std::size_t row_bytes = static_cast<std::size_t>(view.size.width) * channels;
  for (std::int64_t row = 0; row < view.size.height; ++row) {
    const std::uint8_t* from = view.at(row, 0);
    if (view.pixel_stride == view.size.channels) {
      std::memcpy(to, from, row_bytes);
      to += row_bytes;
      continue;
    }
    for (std::int64_t column = 0; column < view.size.width; ++column, from += view.pixel_stride) {
      for (std::size_t channel = 0; channel < channels; ++channel) {
        *to++ = from[channel];
      }
    }
  }
}

std::span<std::uint8_t> make_image(SampleBytes& out, const ImageSize& size) {
  const Bytes bytes = Bytes{sizeof(ImageHeader)} + Bytes{size.bytes()};
  const std::span<std::byte> room = out.allocate(bytes);
  const ImageHeader header{.height = size.height, .width = size.width, .channels = size.channels};
  std::memcpy(room.data(), &header, sizeof header);
  return {reinterpret_cast<std::uint8_t*>(room.data()) + sizeof header,
          room.size() - sizeof header};
}

ImageView view_image(std::span<const std::byte> bytes) {
  ImageHeader header;
  const std::uint64_t magic = header.magic;
  EBB_REQUIRE(bytes.size() >= sizeof header, "view_image", "these bytes are no picture");
  std::memcpy(&header, bytes.data(), sizeof header);
  EBB_REQUIRE(header.magic == magic, "view_image", "these bytes are no picture");
  const ImageSize size{header.height, header.width, header.channels};
  EBB_REQUIRE(size.bytes() == bytes.size() - sizeof header, "view_image",
              "these are not the bytes of a picture of ", to_string(size));
  return dense_view(reinterpret_cast<const std::uint8_t*>(bytes.data()) + sizeof header, size);
}

}  // namespace ebb::inline v0
