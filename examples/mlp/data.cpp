// SPDX-License-Identifier: Apache-2.0
// Finding the four files, and images that need none.
#include "data.h"

#include <ebb/loaders/idx.h>

#include <filesystem>

namespace {

namespace fs = std::filesystem;

// Ten patterns under noise: a linear model learns them, if the trainer works. A sample depends on
// its index only, so the test's samples are those behind the training's.
class Synthetic {
 public:
  struct Local {};

  Synthetic(std::uint64_t first, std::uint64_t size)
      : first_(first), size_(size), patterns_(pixels * classes) {
    ebb::fill_uniform(patterns_, -1.0f, 1.0f, ebb::Random(data_seed, "pattern"));
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t fingerprint() const { return ebb::fnv1a("synthetic") + first_; }
  std::string name() const { return "synthetic"; }
  ebb::Schema schema() const {
    return {{{"x", ebb::DType::f32, {1, 28, 28}}, {"y", ebb::DType::i64, {}}}};
  }
  void load(std::uint64_t index, Local& /*local*/, const ebb::SampleContext& /*context*/,
            ebb::SampleWriter& out) const {
    ebb::Random random(data_seed, "sample", 0, first_ + index);
    const std::uint64_t label = random.below(classes);
    const float* pattern = patterns_.data() + label * pixels;
    for (float& value : out.field<float>(0)) {
      value = 0.5f * *pattern++ + random.uniform(-1.0f, 1.0f);
    }
    out.field<std::int64_t>(1)[0] = static_cast<std::int64_t>(label);
  }

 private:
  static constexpr std::size_t pixels = 784;  // 28 x 28
  static constexpr std::uint64_t data_seed = 1;

  std::uint64_t first_;
  std::uint64_t size_;
  std::vector<float> patterns_;
};

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    fs::path path = folder / (name + ending);
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      return path;
    }
  }
  throw BadInput("no " + name + " or " + name + ".gz in " + folder.string() +
                 ": give --data a folder with the four IDX files of MNIST or its kin, or "
                 "--synthetic");
}

ebb::AnyDataset open_pair(const Options& options, const std::string& stem) {
  const fs::path folder(options.data);
  return ebb::open_idx(find_file(folder, stem + "-images-idx3-ubyte"),
                       find_file(folder, stem + "-labels-idx1-ubyte"),
                       {.mean = options.mean, .std = options.std});
}

}  // namespace

Data open_data(const Options& options) {
  if (options.synthetic) {
    constexpr std::uint64_t train_size = 6400;
    return {Synthetic(0, train_size), Synthetic(train_size, 1600), 784};
  }
  std::error_code ignored;
  if (!fs::is_directory(options.data, ignored)) {
    throw BadInput("no folder " + options.data +
                   ": install Debian's dataset-fashion-mnist, or give --data DIR or --synthetic");
  }
  Data data{open_pair(options, "train"), open_pair(options, "t10k"), 0};
  data.inputs = data.train.schema().fields[0].sample_shape.elements();
  if (data.test.schema().fields[0].sample_shape.elements() != data.inputs) {
    throw BadInput("images to train on and to test on differ in size in " + options.data +
                   ": the four files must be of one data set");
  }
  return data;
}
