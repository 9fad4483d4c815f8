// SPDX-License-Identifier: Apache-2.0
// PNG by libspng. A reader is used by one thread at a time.
#include "image_codecs.h"

#include <new>
#include <string>
#include <vector>

#include <spng.h>

namespace ebb::inline v0::detail {

namespace {

class PngReader final : public ImageReader {
 public:
  ImageInfo begin(std::span<const std::byte> bytes, const ImageWish& wish) override {
    // libspng's contexts are for one picture.
    context_.reset(spng_ctx_new(0));
    if (context_ == nullptr) {
      throw std::bad_alloc();
    }
    // Chunks that are no pixels (texts, profiles) may not take more than this when unpacked.
    constexpr std::size_t chunk_bytes_max = std::size_t{16} << 20;
    check(spng_set_chunk_limits(context_.get(), chunk_bytes_max, 4 * chunk_bytes_max));
    check(spng_set_png_buffer(context_.get(), bytes.data(), bytes.size()));
    check(spng_get_ihdr(context_.get(), &header_));
    const ImageSize whole{header_.height, header_.width, is_grey() ? 1 : 3};
    given_ = {header_.height, header_.width, wish.channels};
    return {whole, given_};
  }

  void read(std::span<std::uint8_t> pixels) override {
    const bool from_grey = is_grey() && header_.bit_depth <= 8;  // libspng has no 16 to 8 for grey
    const std::size_t count = pixels.size() / static_cast<std::size_t>(given_.channels);
    if (from_grey) {
      decode(pixels.first(count), SPNG_FMT_G8);
      if (given_.channels == 3) {
        spread_grey(pixels);
      }
    } else if (given_.channels == 3) {
      decode(pixels, SPNG_FMT_RGB8);
    } else {
      colours_.resize(3 * count);
      decode(colours_, SPNG_FMT_RGB8);
      colours_to_grey(colours_.data(), pixels);
    }
  }

 private:
  struct Free {
    void operator()(spng_ctx* context) const noexcept { spng_ctx_free(context); }
  };

  bool is_grey() const noexcept { return header_.color_type == SPNG_COLOR_TYPE_GRAYSCALE; }

  void decode(std::span<std::uint8_t> pixels, int format) {
    std::size_t needed = 0;
    check(spng_decoded_image_size(context_.get(), format, &needed));
    if (needed != pixels.size()) {
      fail("libspng gives " + std::to_string(needed) + " bytes where " +
           std::to_string(pixels.size()) + " are expected");
    }
    check(spng_decode_image(context_.get(), pixels.data(), pixels.size(), format, 0));
    check(spng_decode_chunks(context_.get()));  // up to the end: the last checksum, too
  }

  void check(int result) const {
    if (result == SPNG_EMEM) {
      throw std::bad_alloc();
    }
    if (result != SPNG_OK) {
      fail(std::string("damaged or truncated PNG (") + spng_strerror(result) +
           "): get the file again");
    }
  }

  std::unique_ptr<spng_ctx, Free> context_;
  spng_ihdr header_{};
  ImageSize given_;
  std::vector<std::uint8_t> colours_;  // what becomes grey
};

class PngDecoder final : public ImageDecoder {
 public:
  std::string name() const override { return "png"; }
  bool knows(std::span<const std::byte> first) const noexcept override {
    return begins_with(first, "\x89PNG\r\n\x1a\n");
  }
  std::unique_ptr<ImageReader> make_reader() const override {
    return std::make_unique<PngReader>();
  }
};

}  // namespace

std::shared_ptr<const ImageDecoder> png_decoder() {
  return std::make_shared<const PngDecoder>();
}

}  // namespace ebb::inline v0::detail
