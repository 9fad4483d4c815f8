// SPDX-License-Identifier: Apache-2.0
// JPEG by libjpeg-turbo's TurboJPEG interface. A reader is used by one thread at a time.
#include "image_codecs.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include <turbojpeg.h>

namespace ebb::inline v0::detail {

namespace {

class JpegReader final : public ImageReader {
 public:
  JpegReader() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) {
      throw std::bad_alloc();
    }
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  JpegReader(JpegReader&&) = delete;
  JpegReader& operator=(JpegReader&&) = delete;
  ~JpegReader() override { tjDestroy(handle_); }

  ImageInfo begin(std::span<const std::byte> bytes, const ImageWish& wish) override {
    bytes_ = bytes;
    int width = 0;
    int height = 0;
    int sampling = 0;
    int colours = 0;
    const int result = tjDecompressHeader3(handle_, octets(bytes), bytes.size(), &width, &height,
                                           &sampling, &colours);
    // Of a header that ends early it only warns, and leaves the size at 0.
    if (result != 0 || width < 1 || height < 1) {
      fail_library();
    }
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
      fail("a JPEG in CMYK, as for printing: convert it to RGB");
    }
    const ImageSize whole{height, width, colours == TJCS_GRAY ? 1 : 3};
    given_ = smallest(whole, wish);
    given_.channels = wish.channels;
    return {whole, given_};
  }

  void read(std::span<std::uint8_t> pixels) override {
    const auto width = static_cast<int>(given_.width);
    const auto height = static_cast<int>(given_.height);
    const int format = given_.channels == 1 ? TJPF_GRAY : TJPF_RGB;
    // Stopping at a warning: what the library would go on with is grey where data are missing. The
    // limit of scans: a small file can ask for hours of them.
    constexpr int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT;
    if (tjDecompress2(handle_, octets(bytes_), bytes_.size(), pixels.data(), width, 0, height,
                      format, flags) != 0) {
      fail_library();
    }
  }

 private:
  // Returns the smallest size that the library scales to and the wish allows.
  static ImageSize smallest(const ImageSize& whole, const ImageWish& wish) {
    int count = 0;
    const tjscalingfactor* const factors = tjGetScalingFactors(&count);
    ImageSize best = whole;
    if (wish.height_min <= 0 || wish.width_min <= 0 || factors == nullptr) {
      return best;
    }
    for (const tjscalingfactor factor : std::span(factors, static_cast<std::size_t>(count))) {
      // Only by powers of two: the others cost about as much as the whole picture.
      const bool is_cheap =
          factor.num == 1 && (factor.denom == 2 || factor.denom == 4 || factor.denom == 8);
      const auto scaled = [&](std::int64_t side) {
        return std::int64_t{TJSCALED(static_cast<int>(side), factor)};
      };
      const std::int64_t height = scaled(whole.height);
      const std::int64_t width = scaled(whole.width);
      if (is_cheap && height >= wish.height_min && width >= wish.width_min && width < best.width) {
        best.height = height;
        best.width = width;
      }
    }
    return best;
  }

  [[noreturn]] void fail_library() {
    fail(std::string("damaged or truncated JPEG (") + tjGetErrorStr2(handle_) +
         "): get the file again");
  }

  tjhandle handle_;
  std::span<const std::byte> bytes_;  // of the picture begun last
  ImageSize given_;
};

class JpegDecoder final : public ImageDecoder {
 public:
  std::string name() const override { return "jpeg"; }
  bool knows(std::span<const std::byte> first) const noexcept override {
    return begins_with(first, "\xff\xd8\xff");
  }
  std::unique_ptr<ImageReader> make_reader() const override {
    return std::make_unique<JpegReader>();
  }
};

}  // namespace

std::shared_ptr<const ImageDecoder> jpeg_decoder() {
  return std::make_shared<const JpegDecoder>();
}

}  // namespace ebb::inline v0::detail
