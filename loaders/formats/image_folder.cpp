// SPDX-License-Identifier: Apache-2.0
// The data set of pictures in folders and archives. What its stages hand on is a file's bytes, and
// then a picture (image.h); it is normalised in the slot. [load.formats]
#include "content_hash.h"
#include "image_chain.h"
#include "image_files.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace ebb::inline v0 {

namespace {

using detail::ImageChain;
using detail::ImageFiles;

constexpr const char* function = "open_images";

// Runs a part of a stage; what it says of a file becomes a failure of the sample.
template <class Part>
void for_sample(const StageContext& context, Part part) {
  try {
    part();
  } catch (const LoadError& error) {
    const LoadErrorInfo& info = error.info();
    if (info.index.has_value()) {
      throw;  // the sample's already
    }
    context.fail(info.kind, info.stage, info.offset.value_or(0), info.text);
  }
}

class ImageDataset {
 public:
  struct Local {
    std::vector<std::unique_ptr<ImageReader>> readers;  // by decoder; made when they are needed
  };

  ImageDataset(ImageFiles files, ImageChain chain, const ImageOptions& options, std::string name)
      : name_(std::move(name)),
        files_(std::move(files)),
        chain_(std::move(chain)),
        decoders_(options.decoders),
        channels_(options.channels),
        max_pixels_(options.max_pixels),
        wish_(chain_.wish(options.channels)) {
    fingerprint_ = detail::hash_number(chain_.revision(), files_.fingerprint());
    fingerprint_ = detail::hash_number(static_cast<std::uint64_t>(channels_), fingerprint_);
    for (const auto& decoder : decoders_) {
      fingerprint_ = detail::hash_bytes(decoder->name() + "\n", fingerprint_);
    }
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const float mean = options.mean[channel];
      const float std = options.std[channel];
      for (std::size_t byte = 0; byte < 256; ++byte) {
        values_[channel][byte] = (static_cast<float>(byte) / 255.0f - mean) / std;
      }
      fingerprint_ = detail::hash_number(std::bit_cast<std::uint32_t>(mean), fingerprint_);
      fingerprint_ = detail::hash_number(std::bit_cast<std::uint32_t>(std), fingerprint_);
    }
    size_ = chain_.size_after(chain_.has_size() ? ImageSize{1, 1, channels_} : first_size());
  }

  std::uint64_t size() const { return files_.size(); }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  std::string source(std::uint64_t index) const { return files_.source(index); }
  Schema schema() const {
    return {
        {{"x", DType::f32, {size_.channels, size_.height, size_.width}}, {"y", DType::i64, {}}}};
  }

  void fetch(std::uint64_t index, const StageContext& context, SampleBytes& out) const {
    const std::span<std::byte> bytes = out.allocate(Bytes{files_.bytes(index)});
    for_sample(context, [&] { files_.read(index, bytes); });
  }

  void decode(std::uint64_t /*index*/, Local& local, const StageContext& context,
              std::span<const std::byte> bytes, SampleBytes& out) const {
    for_sample(context, [&] {
      ImageReader& reader = reader_of(bytes, local);
      const ImageSize size = begin(reader, bytes);
      if (!chain_.has_fixed()) {
        reader.read(make_image(out, size));
        return;
      }
      const std::span<std::byte> whole = context.scratch(Bytes{size.bytes()});
      auto* const pixels = reinterpret_cast<std::uint8_t*>(whole.data());
      reader.read({pixels, whole.size()});
      const ImageView view = chain_.apply_fixed(dense_view(pixels, size), context);
      copy_pixels(view, make_image(out, view.size));
    });
  }

  void finish(std::uint64_t index, Local& /*local*/, const SampleContext& context,
              std::span<const std::byte> decoded, SampleWriter& writer) const {
    const ImageView view = chain_.apply_rest(view_image(decoded), context);
    if (view.size != size_) {
      context.fail(LoadErrorKind::shape, "transform", 0,
                   "a picture of " + to_string(view.size) + " where the first one has " +
                       to_string(size_) + ": end the transforms with a crop, or a Resize to a " +
                       "height and width");
    }
    normalise(view, writer.field<float>(0).data());
    writer.field<std::int64_t>(1)[0] = files_.label(index);
  }

 private:
  // Begins a picture, and returns its size once that is within the limits.
  ImageSize begin(ImageReader& reader, std::span<const std::byte> bytes) const {
    const ImageInfo info = reader.begin(bytes, wish_);
    for (const ImageSize& size : {info.whole, info.given}) {
      if (size.height < 1 || size.width < 1 || size.height > max_pixels_ / size.width) {
        refuse("a picture of " + to_string(size) + ", where max_pixels is " +
               std::to_string(max_pixels_));
      }
    }
    if (info.given.channels != channels_) {
      refuse("the decoder gives " + std::to_string(info.given.channels) + " channels, not " +
             std::to_string(channels_));
    }
    return info.given;
  }

  ImageReader& reader_of(std::span<const std::byte> bytes, Local& local) const {
    const auto first = bytes.first(std::min<std::size_t>(bytes.size(), 32));
    const auto decoder = std::find_if(decoders_.begin(), decoders_.end(),
                                      [&](const auto& it) { return it->knows(first); });
    if (decoder == decoders_.end()) {
      std::string names;
      for (const auto& known : decoders_) {
        names += (names.empty() ? "" : ", ") + known->name();
      }
      refuse(bytes.empty() ? "the file is empty"
                           : "no picture that a decoder knows (there are: " + names +
                                 "); name .extensions to pass over what is no picture");
    }
    local.readers.resize(decoders_.size());
    auto& reader = local.readers[static_cast<std::size_t>(decoder - decoders_.begin())];
    if (reader == nullptr) {
      reader = (*decoder)->make_reader();
    }
    return *reader;
  }

  [[noreturn]] static void refuse(std::string text) {
    throw LoadError(
        function,
        {.kind = LoadErrorKind::corrupt, .stage = "decode", .offset = 0, .text = std::move(text)});
  }

  // Returns the size in which the first picture comes from its decoder.
  ImageSize first_size() const {
    std::vector<std::byte> bytes(files_.bytes(0));
    files_.read(0, bytes);
    Local local;
    try {
      return begin(reader_of(bytes, local), bytes);
    } catch (const LoadError& error) {
      LoadErrorInfo info = error.info();
      info.source = source(0);
      throw LoadError(function, info);
    }
  }

  void normalise(const ImageView& view, float* out) const noexcept {
    const auto plane = static_cast<std::size_t>(size_.height * size_.width);
    for (std::int64_t row = 0; row < size_.height; ++row) {
      const std::uint8_t* pixel = view.at(row, 0);
      for (std::int64_t column = 0; column < size_.width; ++column) {
        out[0] = values_[0][pixel[0]];
        if (size_.channels == 3) {
          out[plane] = values_[1][pixel[1]];
          out[2 * plane] = values_[2][pixel[2]];
        }
        ++out;
        pixel += view.pixel_stride;
      }
    }
  }

  std::string name_;
  ImageFiles files_;
  ImageChain chain_;
  ImageDecoders decoders_;
  std::int64_t channels_;
  std::int64_t max_pixels_;
  ImageWish wish_;
  ImageSize size_;                                  // of all samples
  std::array<std::array<float, 256>, 3> values_{};  // of each byte, by channel
  std::uint64_t fingerprint_ = 0;
};

void check(const FilePaths& paths, const ImageOptions& options) {
  EBB_REQUIRE(!paths.empty(), function, "no folder and no archive is named");
  EBB_REQUIRE(!options.decoders.empty(), function,
              "there are no decoders: pass .decoders = ebb::image_decoders(), which has those that "
              "ebb was built with");
  for (const auto& decoder : options.decoders) {
    EBB_REQUIRE(decoder != nullptr, function, "a decoder is null");
  }
  EBB_REQUIRE(options.channels == 1 || options.channels == 3, function,
              "channels must be 1 or 3, not ", std::to_string(options.channels));
  // Below 2^31, so that sizes multiply without overflow.
  EBB_REQUIRE(options.max_pixels >= 1 && options.max_pixels < std::int64_t{1} << 31, function,
              "max_pixels must be 1 to 2^31 - 1");
  for (std::size_t channel = 0; channel < 3; ++channel) {
    EBB_REQUIRE(std::isfinite(options.mean[channel]), function, "mean must be finite numbers");
    EBB_REQUIRE(std::isfinite(options.std[channel]) && options.std[channel] > 0, function,
                "std must be finite numbers above 0");
  }
}

}  // namespace

ImageSet open_images(const FilePaths& paths, const ImageOptions& options) {
  check(paths, options);
  ImageChain chain(function, options.transforms, options.max_pixels);
  ImageFiles files(paths, options);
  std::vector<std::string> vocabulary = files.vocabulary();
  std::string name = options.name;
  if (name.empty()) {
    // A folder may be named with a slash at its end.
    const std::filesystem::path path = paths.front().lexically_normal();
    name = (path.has_filename() ? path : path.parent_path()).filename().string();
  }
  return {ImageDataset(std::move(files), std::move(chain), options, std::move(name)),
          std::move(vocabulary)};
}

}  // namespace ebb::inline v0
