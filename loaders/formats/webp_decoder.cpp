// SPDX-License-Identifier: Apache-2.0
// WebP by libwebp. A reader is used by one thread at a time.
#include "image_codecs.h"

#include <new>
#include <string>
#include <vector>

#include <webp/decode.h>

namespace ebb::inline v0::detail {

namespace {

const char* reason(VP8StatusCode status) noexcept {
  switch (status) {
    case VP8_STATUS_BITSTREAM_ERROR:
      return "bad bitstream";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a feature that libwebp does not have";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "it ends early";
    default:
      return "no reason";
  }
}

class WebpReader final : public ImageReader {
 public:
  ImageInfo begin(std::span<const std::byte> bytes, const ImageWish& wish) override {
    bytes_ = bytes;
    WebPBitstreamFeatures features;
    check(WebPGetFeatures(octets(bytes), bytes.size(), &features));
    if (features.has_animation != 0) {
      fail("an animated WebP: take a picture out of it");
    }
    given_ = {features.height, features.width, wish.channels};
    return {{features.height, features.width, 3}, given_};
  }

  void read(std::span<std::uint8_t> pixels) override {
    if (given_.channels == 3) {
      decode(pixels);
    } else {
      colours_.resize(3 * pixels.size());
      decode(colours_);
      colours_to_grey(colours_.data(), pixels);
    }
  }

 private:
  void decode(std::span<std::uint8_t> colours) const {
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0) {
      fail("libwebp is of another version than its header");
    }
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = colours.data();
    config.output.u.RGBA.stride = static_cast<int>(3 * given_.width);
    config.output.u.RGBA.size = colours.size();
    check(WebPDecode(octets(bytes_), bytes_.size(), &config));
  }

  static void check(VP8StatusCode status) {
    if (status == VP8_STATUS_OUT_OF_MEMORY) {
      throw std::bad_alloc();
    }
    if (status != VP8_STATUS_OK) {
      fail(std::string("damaged or truncated WebP (") + reason(status) + "): get the file again");
    }
  }

  std::span<const std::byte> bytes_;  // of the picture begun last
  ImageSize given_;
  std::vector<std::uint8_t> colours_;  // what becomes grey
};

class WebpDecoder final : public ImageDecoder {
 public:
  std::string name() const override { return "webp"; }
  bool knows(std::span<const std::byte> first) const noexcept override {
    return begins_with(first, "RIFF") && first.size() >= 12 &&
           begins_with(first.subspan(8), "WEBP");
  }
  std::unique_ptr<ImageReader> make_reader() const override {
    return std::make_unique<WebpReader>();
  }
};

}  // namespace

std::shared_ptr<const ImageDecoder> webp_decoder() {
  return std::make_shared<const WebpDecoder>();
}

}  // namespace ebb::inline v0::detail
