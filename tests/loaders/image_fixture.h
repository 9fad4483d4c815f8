// SPDX-License-Identifier: Apache-2.0
// Pictures, a format of their own without any library, PNG files made by hand, and what comes out
// of a set of pictures. For the tests of pictures.
#pragma once

#include "loader_fixture.h"
#include "support/temporary_folder.h"

#include <ebb/loaders/image_folder.h>

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ebb::test {

// Pixels row by row, channels side by side.
struct Picture {
  ImageSize size;
  std::vector<std::uint8_t> pixels;

  std::uint8_t at(std::int64_t row, std::int64_t column, std::int64_t channel) const {
    return pixels[static_cast<std::size_t>((row * size.width + column) * size.channels + channel)];
  }
  bool operator==(const Picture&) const = default;
};

// A picture of which every pixel is known: see the stored ones.
inline Picture picture(std::int64_t height, std::int64_t width, std::int64_t channels = 3) {
  Picture it{{height, width, channels}, {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t colours[] = {13 * x + 7 * y, 40 + 9 * y + x * x, 200 - 5 * x - 3 * y};
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        it.pixels.push_back(static_cast<std::uint8_t>(colours[channel]));
      }
    }
  }
  return it;
}

// "RAW", height, width, channels as numbers with spaces behind, then the pixels.
inline std::string raw_file(const Picture& it) {
  std::string bytes = "RAW " + std::to_string(it.size.height) + " " +
                      std::to_string(it.size.width) + " " + std::to_string(it.size.channels) + " ";
  return bytes.append(it.pixels.begin(), it.pixels.end());
}

// A decoder as a user would write one. It gives what is in the file, and does not convert.
class RawDecoder final : public ImageDecoder {
 public:
  std::string name() const override { return "raw"; }
  bool knows(std::span<const std::byte> first) const noexcept override {
    return first.size() >= 4 && std::memcmp(first.data(), "RAW ", 4) == 0;
  }
  std::unique_ptr<ImageReader> make_reader() const override { return std::make_unique<Reader>(); }

 private:
  class Reader final : public ImageReader {
   public:
    ImageInfo begin(std::span<const std::byte> bytes, const ImageWish& /*wish*/) override {
      const std::string text(reinterpret_cast<const char*>(bytes.data()),
                             std::min<std::size_t>(bytes.size(), 80));
      int header_bytes = 0;
      ImageSize size;
      if (std::sscanf(text.c_str(), "RAW %ld %ld %ld%n", &size.height, &size.width, &size.channels,
                      &header_bytes) != 3) {
        fail("no header");
      }
      pixels_ = bytes.subspan(static_cast<std::size_t>(header_bytes) + 1);
      return {size, size};
    }
    void read(std::span<std::uint8_t> pixels) override {
      if (pixels.size() != pixels_.size()) {
        fail("truncated", pixels_.size());
      }
      std::memcpy(pixels.data(), pixels_.data(), pixels.size());
    }

   private:
    std::span<const std::byte> pixels_;
  };
};

inline ImageDecoders raw_decoders() {
  return {std::make_shared<const RawDecoder>()};
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const auto number = [](std::uint64_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                       static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  const std::string body = type + data;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return number(data.size()) + body + number(crc);
}

// What PNG's header says besides the size.
struct PngKind {
  int depth = 8;
  int colour = 2;  // 0 grey, 2 colours, 3 palette, 4 grey and alpha, 6 colours and alpha
  std::string more_chunks = {};  // such as a palette
};
// rows: each begins with its filter, 0. Fills the size with zeros where there is less.
inline std::string png_file(std::int64_t height, std::int64_t width, const std::string& rows,
                            const PngKind& kind = {}) {
  std::string header(13, '\0');
  for (int i = 0; i < 4; ++i) {
    header[static_cast<std::size_t>(i)] = static_cast<char>(width >> (24 - 8 * i));
    header[static_cast<std::size_t>(4 + i)] = static_cast<char>(height >> (24 - 8 * i));
  }
  header[8] = static_cast<char>(kind.depth);
  header[9] = static_cast<char>(kind.colour);
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + kind.more_chunks +
         png_chunk("IDAT", packed) + png_chunk("IEND", "");
}
inline std::string png_file(const Picture& it) {
  std::string rows;
  const auto row_bytes = static_cast<std::size_t>(it.size.width * it.size.channels);
  for (std::size_t at = 0; at < it.pixels.size(); at += row_bytes) {
    rows += '\0';
    rows.append(it.pixels.begin() + static_cast<std::ptrdiff_t>(at),
                it.pixels.begin() + static_cast<std::ptrdiff_t>(at + row_bytes));
  }
  return png_file(it.size.height, it.size.width, rows, {.colour = it.size.channels == 1 ? 0 : 2});
}

inline bool has_decoder(const std::string& name) {
  const ImageDecoders all = image_decoders();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& decoder) { return decoder->name() == name; });
}

// A folder of classes. files: "class/name", bytes.
inline void write_classes(const TempFolder& folder,
                          const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [name, bytes] : files) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    folder.write(name, bytes);
  }
}

struct Sample {
  Picture picture;
  std::int64_t label;
  bool operator==(const Sample&) const = default;
};

struct Reading {
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0;
  unsigned workers = 0;
};

// All samples of a set with mean 0 and std 1, by index, as bytes again.
inline std::vector<Sample> read_all(const AnyDataset& data, const Reading& how = {}) {
  LogLines log;
  Runtime rt({.executor = executor_choice(), .log = log.hook()});
  Loader loader(rt, data, {.batch = 4, .seed = how.seed, .workers = how.workers});
  loader.begin_epoch(how.epoch);
  std::vector<Sample> samples(data.size());
  while (const auto batch = loader.next()) {
    const auto [x, y] = batch->fields<2>();
    const Shape shape = x.shape();
    const ImageSize size{shape[2], shape[3], shape[1]};
    const auto plane = static_cast<std::size_t>(size.height * size.width);
    for (std::size_t row = 0; row < batch->indices().size(); ++row) {
      Sample& sample = samples[batch->indices()[row]];
      sample.label = y.template span<const std::int64_t>()[row];
      sample.picture.size = size;
      const float* const from = x.template span<const float>().data() + row * size.bytes();
      for (std::size_t i = 0; i < size.bytes(); ++i) {
        const auto channels = static_cast<std::size_t>(size.channels);
        const float value = from[i % channels * plane + i / channels];
        sample.picture.pixels.push_back(static_cast<std::uint8_t>(std::lround(value * 255)));
      }
    }
  }
  return samples;
}

// What open_images gives for one file, in a folder of one class.
inline Picture read_picture(const std::string& file, ImageOptions options,
                            const Reading& how = {}) {
  const TempFolder folder;
  write_classes(folder, {{"class/file", file}});
  return read_all(open_images(folder.path(), options).data, how).front().picture;
}

}  // namespace ebb::test
