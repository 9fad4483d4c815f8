// SPDX-License-Identifier: Apache-2.0
// Who makes pixels of a file's bytes: ebb's decoders, and those that a user adds. Used by
// open_images. A decoder is used by any thread, a reader by one worker.
#pragma once

#include <ebb/loaders/image.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

// What is asked of a reader. Where it can scale for less than it costs to decode all (JPEG), it may
// give a smaller picture that still has height_min rows and width_min columns, or all if it never
// had as many. 0 and 0: the whole size.
struct ImageWish {
  std::int64_t channels = 3;  // 1 or 3
  std::int64_t height_min = 0;
  std::int64_t width_min = 0;
};

// What a header says: the size that the picture has, and the one that read will give, with the
// channels that were asked for.
struct ImageInfo {
  ImageSize whole = {};
  ImageSize given = {};
};

// Reads one picture after the other; keeps handles and buffers between them. One thread at a time.
class ImageReader {
 public:
  ImageReader() = default;
  ImageReader(const ImageReader&) = delete;
  ImageReader& operator=(const ImageReader&) = delete;
  ImageReader(ImageReader&&) = delete;
  ImageReader& operator=(ImageReader&&) = delete;
  virtual ~ImageReader() = default;

  // Reads the header, and asks for no memory that depends on it: the caller checks the size first.
  // bytes stay where they are until read returned. Throws LoadError (by fail) for what is no
  // picture, or is one of a kind that cannot be read.
  virtual ImageInfo begin(std::span<const std::byte> bytes, const ImageWish& wish) = 0;
  // Writes all pixels of the picture begun last: pixels has given.bytes() bytes. Throws LoadError
  // for damaged and truncated data: nothing is made up for what is missing.
  virtual void read(std::span<std::uint8_t> pixels) = 0;

 protected:
  // Throws LoadError of kind corrupt, stage decode. offset is in the picture's bytes.
  [[noreturn]] static void fail(std::string_view text, std::uint64_t offset = 0);
};

class ImageDecoder {
 public:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;
  ImageDecoder(ImageDecoder&&) = delete;
  ImageDecoder& operator=(ImageDecoder&&) = delete;
  virtual ~ImageDecoder() = default;

  // For messages and fingerprints: "png". Add a number to it when the same bytes become others.
  virtual std::string name() const = 0;
  // Returns whether a file that begins with these bytes (up to 32 of them) is one of this format.
  virtual bool knows(std::span<const std::byte> first) const noexcept = 0;
  virtual std::unique_ptr<ImageReader> make_reader() const = 0;
};

using ImageDecoders = std::vector<std::shared_ptr<const ImageDecoder>>;

// Returns the decoders that this build of ebb has (Meson options png, jpeg and webp):
//   png   by libspng: all colour types and depths. 16 bits keep their upper 8.
//   jpeg  by libjpeg-turbo, which also scales by DCT. CMYK is refused. A file about which the
//         library warns, such as a truncated one, is refused.
//   webp  by libwebp, lossy and lossless. Animations are refused.
// Transparency is dropped: the colours below it show. Grey becomes three equal channels; colours
// become grey by (299 red + 587 green + 114 blue)/1000, JPEG's by its own luma. Colour profiles and
// orientation tags are not looked at.
ImageDecoders image_decoders();

}  // namespace ebb::inline v0
