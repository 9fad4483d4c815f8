// SPDX-License-Identifier: Apache-2.0
// The list of decoders, and what they share. Any thread.
#include "image_codecs.h"

namespace ebb::inline v0 {

void ImageReader::fail(std::string_view text, std::uint64_t offset) {
  throw LoadError("ImageReader", {.kind = LoadErrorKind::corrupt,
                                  .stage = "decode",
                                  .offset = offset,
                                  .text = std::string(text)});
}

ImageDecoders image_decoders() {
  ImageDecoders all;
#if EBB_WITH_PNG
  all.push_back(detail::png_decoder());
#endif
#if EBB_WITH_JPEG
  all.push_back(detail::jpeg_decoder());
#endif
#if EBB_WITH_WEBP
  all.push_back(detail::webp_decoder());
#endif
  return all;
}

namespace detail {

void colours_to_grey(const std::uint8_t* colours, std::span<std::uint8_t> grey) noexcept {
  for (std::size_t i = 0; i < grey.size(); ++i) {
    const unsigned sum =
        299u * colours[3 * i] + 587u * colours[3 * i + 1] + 114u * colours[3 * i + 2];
    grey[i] = static_cast<std::uint8_t>((sum + 500) / 1000);
  }
}

void spread_grey(std::span<std::uint8_t> colours) noexcept {
  // From the end, so that no grey pixel is overwritten before it is read.
  for (std::size_t i = colours.size() / 3; i-- > 0;) {
    const std::uint8_t grey = colours[i];
    colours[3 * i] = colours[3 * i + 1] = colours[3 * i + 2] = grey;
  }
}

}  // namespace detail

}  // namespace ebb::inline v0
