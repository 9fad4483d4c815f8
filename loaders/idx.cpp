// SPDX-License-Identifier: Apache-2.0
// The data set of two IDX files: pixels stay bytes, and become floats in the slot. [load.formats]
#include "content_hash.h"
#include "idx_file.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/idx.h>

#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

namespace ebb::inline v0 {

namespace {

class IdxDataset {
 public:
  struct Local {};

  IdxDataset(detail::IdxFile images, detail::IdxFile labels, const IdxOptions& options)
      : name_(options.name.empty() ? std::filesystem::path(images.source).filename().string()
                                   : options.name),
        images_(std::move(images)),
        labels_(std::move(labels)),
        pixels_(static_cast<std::size_t>(images_.sizes[1] * images_.sizes[2])) {
    for (std::size_t byte = 0; byte < values_.size(); ++byte) {
      values_[byte] = (static_cast<float>(byte) / 255.0f - options.mean) / options.std;
    }
    fingerprint_ =
        detail::hash_bytes(labels_.all(), detail::hash_bytes(images_.all(), images_.sizes[1]));
    for (const float option : {options.mean, options.std}) {
      fingerprint_ = detail::hash_number(std::bit_cast<std::uint32_t>(option), fingerprint_);
    }
  }

  std::uint64_t size() const { return images_.sizes[0]; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  std::string source(std::uint64_t /*index*/) const { return images_.source; }
  Schema schema() const {
    const auto height = static_cast<std::int64_t>(images_.sizes[1]);
    const auto width = static_cast<std::int64_t>(images_.sizes[2]);
    return {{{"x", DType::f32, {1, height, width}}, {"y", DType::i64, {}}}};
  }

  void load(std::uint64_t index, Local& /*local*/, const SampleContext& /*context*/,
            SampleWriter& writer) const {
    const std::uint8_t* const pixels = images_.data.get() + index * pixels_;
    float* const out = writer.field<float>(0).data();
    for (std::size_t i = 0; i < pixels_; ++i) {
      out[i] = values_[pixels[i]];
    }
    writer.field<std::int64_t>(1)[0] = labels_.data[index];
  }

 private:
  std::string name_;
  detail::IdxFile images_;
  detail::IdxFile labels_;
  std::size_t pixels_;               // of an image
  std::array<float, 256> values_{};  // of each byte
  std::uint64_t fingerprint_ = 0;
};

}  // namespace

AnyDataset open_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                    const IdxOptions& options) {
  EBB_REQUIRE(std::isfinite(options.mean), "open_idx", "mean must be a finite number");
  EBB_REQUIRE(std::isfinite(options.std) && options.std > 0, "open_idx",
              "std must be a finite number above 0");
  detail::IdxFile x = detail::read_idx("open_idx", images, 3, "images");
  detail::IdxFile y = detail::read_idx("open_idx", labels, 1, "labels");
  if (x.sizes[0] != y.sizes[0]) {
    throw LoadError("open_idx", {.kind = LoadErrorKind::shape,
                                 .stage = "header",
                                 .source = y.source,
                                 .offset = 4,
                                 .text = std::to_string(y.sizes[0]) + " labels, but " +
                                         std::to_string(x.sizes[0]) + " images in " + x.source +
                                         ": take two files of one set"});
  }
  return IdxDataset(std::move(x), std::move(y), options);
}

}  // namespace ebb::inline v0
