// SPDX-License-Identifier: Apache-2.0
// The binary version of CIFAR: records of one label byte (two in CIFAR-100: coarse, fine) and 3072
// pixels, the red plane first. Pixels stay bytes, and become floats in the slot. [load.formats]
#include "byte_reader.h"
#include "content_hash.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/cifar.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

namespace {

using detail::ByteReader;
using Path = std::filesystem::path;

constexpr const char* function = "open_cifar";
constexpr std::size_t plane = std::size_t{32} * 32;
constexpr std::size_t pixels = 3 * plane;

// What a record has in front of its pixels, and what those bytes may be.
struct Labels {
  std::size_t bytes;         // 1, or 2: coarse, fine
  std::array<int, 2> below;  // what each must be below
  std::size_t chosen;        // which of them is y

  explicit Labels(const CifarOptions& options)
      : bytes(options.classes == 10 ? 1 : 2),
        below{options.classes == 10 ? 10 : 20, 100},
        chosen(bytes == 1 || options.coarse ? 0 : 1) {}
  std::size_t record_bytes() const noexcept { return bytes + pixels; }
};

struct Records {
  std::vector<std::uint8_t> bytes;
  // Where each file ends, in records, and its path.
  std::vector<std::pair<std::uint64_t, std::string>> files;
};

class CifarDataset {
 public:
  struct Local {};

  CifarDataset(Records records, const CifarOptions& options)
      : name_(options.name.empty() ? Path(records.files.front().second).filename().string()
                                   : options.name),
        records_(std::move(records)),
        labels_(options),
        fingerprint_(detail::hash_bytes(records_.bytes, labels_.record_bytes() + labels_.chosen)) {
    for (std::size_t colour = 0; colour < 3; ++colour) {
      const float mean = options.mean[colour];
      const float std = options.std[colour];
      for (std::size_t byte = 0; byte < 256; ++byte) {
        values_[colour][byte] = (static_cast<float>(byte) / 255.0f - mean) / std;
      }
      for (const float option : {mean, std}) {
        fingerprint_ = detail::hash_number(std::bit_cast<std::uint32_t>(option), fingerprint_);
      }
    }
  }

  std::uint64_t size() const { return records_.bytes.size() / labels_.record_bytes(); }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  std::string source(std::uint64_t index) const {
    const auto file =
        std::find_if(records_.files.begin(), records_.files.end(),
                     [index](const auto& candidate) { return index < candidate.first; });
    return file != records_.files.end() ? file->second : std::string();
  }
  Schema schema() const { return {{{"x", DType::f32, {3, 32, 32}}, {"y", DType::i64, {}}}}; }

  void load(std::uint64_t index, Local& /*local*/, const SampleContext& /*context*/,
            SampleWriter& writer) const {
    const std::uint8_t* record = records_.bytes.data() + index * labels_.record_bytes();
    writer.field<std::int64_t>(1)[0] = record[labels_.chosen];
    record += labels_.bytes;
    float* out = writer.field<float>(0).data();
    for (const auto& values : values_) {
      for (std::size_t i = 0; i < plane; ++i) {
        out[i] = values[record[i]];
      }
      record += plane;
      out += plane;
    }
  }

 private:
  std::string name_;
  Records records_;
  Labels labels_;
  std::array<std::array<float, 256>, 3> values_{};  // of each byte, by colour
  std::uint64_t fingerprint_;
};

void check_labels(const ByteReader& reader, std::span<const std::uint8_t> records,
                  const Labels& labels) {
  const std::size_t unit = labels.record_bytes();
  for (std::size_t at = 0; at < records.size(); at += unit) {
    for (std::size_t i = 0; i < labels.bytes; ++i) {
      if (records[at + i] >= labels.below[i]) {
        reader.fail(LoadErrorKind::corrupt, "data", at + i,
                    "the label of record " + std::to_string(at / unit) + " is " +
                        std::to_string(records[at + i]) + ": there are " +
                        std::to_string(labels.below[i]) + " classes; is .classes right?");
      }
    }
  }
}

// Appends the records of one file.
void read_file(const Path& path, const Labels& labels, Records& records) {
  ByteReader reader(function, path);
  const std::size_t begin = records.bytes.size();
  const std::size_t unit = labels.record_bytes();
  const auto refuse_part = [&](std::uint64_t bytes) {
    if (bytes == 0) {
      reader.fail(LoadErrorKind::corrupt, "data", 0, "the file is empty");
    }
    if (bytes % unit != 0) {
      const std::size_t other = pixels + (labels.bytes == 1 ? 2 : 1);
      reader.fail(LoadErrorKind::corrupt, "data", bytes,
                  "truncated: " + std::to_string(bytes) + " bytes are no whole number of records " +
                      "of " + std::to_string(unit) +
                      (bytes % other != 0  ? "; get the file again"
                       : labels.bytes == 1 ? ": CIFAR-100 is read with .classes = 100"
                                           : ": CIFAR-10 is read with .classes = 10"));
    }
  };
  // A packed file does not say how much is in it: it is read until it ends.
  std::size_t step = 1000 * unit;
  if (!reader.is_gzip()) {
    refuse_part(reader.bytes_max());
    step = static_cast<std::size_t>(reader.bytes_max());
  }
  try {
    for (std::size_t count = step; count == step;) {
      const std::size_t old = records.bytes.size();
      records.bytes.resize(old + step);
      count = reader.read(std::span(records.bytes).subspan(old));
      records.bytes.resize(old + count);
    }
  } catch (const std::bad_alloc&) {
    reader.fail(LoadErrorKind::memory, "data", reader.offset(), "there is no memory for it");
  }
  refuse_part(reader.offset());
  check_labels(reader, std::span(records.bytes).subspan(begin), labels);
  records.files.emplace_back(records.bytes.size() / unit, reader.source());
}

// Returns the file of that name in folder, plain or gzipped.
Path file_in(const Path& folder, const std::string& name) {
  std::error_code ignored;
  const Path packed = folder / (name + ".gz");
  return !std::filesystem::exists(folder / name, ignored) &&
                 std::filesystem::exists(packed, ignored)
             ? packed
             : folder / name;
}

std::vector<Path> files_of(const Path& path, const CifarOptions& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return {path};
  }
  if (options.classes == 100) {
    return {file_in(path, options.train ? "train.bin" : "test.bin")};
  }
  if (!options.train) {
    return {file_in(path, "test_batch.bin")};
  }
  std::vector<Path> files;
  for (int i = 1; i <= 5; ++i) {
    files.push_back(file_in(path, "data_batch_" + std::to_string(i) + ".bin"));
  }
  return files;
}

}  // namespace

AnyDataset open_cifar(const FilePaths& files, const CifarOptions& options) {
  EBB_REQUIRE(!files.empty(), function, "no file is named");
  EBB_REQUIRE(options.classes == 10 || options.classes == 100, function,
              "classes must be 10 or 100, not ", std::to_string(options.classes));
  EBB_REQUIRE(!options.coarse || options.classes == 100, function,
              "coarse labels are CIFAR-100's: set classes = 100");
  for (std::size_t colour = 0; colour < 3; ++colour) {
    EBB_REQUIRE(std::isfinite(options.mean[colour]), function, "mean must be finite numbers");
    EBB_REQUIRE(std::isfinite(options.std[colour]) && options.std[colour] > 0, function,
                "std must be finite numbers above 0");
  }
  const Labels labels(options);
  Records records;
  for (const Path& path : files) {
    for (const Path& file : files_of(path, options)) {
      read_file(file, labels, records);
    }
  }
  return CifarDataset(std::move(records), options);
}

}  // namespace ebb::inline v0
