// SPDX-License-Identifier: Apache-2.0
// The data set of windows of a text, whose bytes are tokens. [load.formats]
#include "content_hash.h"
#include "file_bytes.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/text.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

namespace {

using detail::FileBytes;

constexpr const char* function = "open_text";
constexpr std::int64_t no_token = -1;

// Files, one after the other.
class ByteStream {
 public:
  void add(FileBytes file) {
    size_ += file.size();
    files_.push_back(std::move(file));
    ends_.push_back(size_);
  }
  std::uint64_t size() const noexcept { return size_; }
  // Returns the file that byte at is in.
  std::size_t file_at(std::uint64_t at) const noexcept {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) -
                                    ends_.begin());
  }
  const FileBytes& file(std::size_t i) const noexcept { return files_[i]; }
  std::uint64_t begin_of(std::size_t file) const noexcept {
    return file == 0 ? 0 : ends_[file - 1];
  }
  void read(std::uint64_t at, std::span<std::byte> out, const StageContext& context) const {
    for (std::size_t i = file_at(at); !out.empty(); ++i) {
      const std::uint64_t left = std::min<std::uint64_t>(ends_[i] - at, out.size());
      const auto part = out.first(static_cast<std::size_t>(left));
      files_[i].read(at - begin_of(i), part, context);
      out = out.subspan(part.size());
      at += left;
    }
  }

 private:
  std::deque<FileBytes> files_;
  std::vector<std::uint64_t> ends_;  // of each in the stream
  std::uint64_t size_ = 0;
};

using Tokens = std::array<std::int64_t, 256>;  // of each byte

struct Windows {
  std::uint64_t begin, bytes;  // of the part that is taken
  std::uint64_t window, stride;
  std::uint64_t count;
  bool random;
};

class TextDataset {
 public:
  struct Local {};

  TextDataset(std::string name, ByteStream stream, const Tokens& tokens, const Windows& windows,
              std::uint64_t contents)
      : name_(std::move(name)),
        stream_(std::move(stream)),
        tokens_(tokens),
        windows_(windows),
        fingerprint_(contents) {
    for (const std::uint64_t number : {windows.begin, windows.bytes, windows.window, windows.stride,
                                       windows.count, std::uint64_t{windows.random}}) {
      fingerprint_ = detail::hash_number(number, fingerprint_);
    }
    for (const std::int64_t token : tokens) {
      fingerprint_ = detail::hash_number(static_cast<std::uint64_t>(token), fingerprint_);
    }
  }

  std::uint64_t size() const { return windows_.count; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  std::string source(std::uint64_t index) const {
    const std::uint64_t at = windows_.random ? 0 : index * windows_.stride;
    return stream_.file(stream_.file_at(windows_.begin + at)).source();
  }
  Schema schema() const {
    const auto window = static_cast<std::int64_t>(windows_.window);
    return {{{"x", DType::i64, {window}}, {"y", DType::i64, {window}}}};
  }

  void load(std::uint64_t index, Local& /*local*/, const SampleContext& context,
            const SampleWriter& writer) const {
    const auto window = static_cast<std::size_t>(windows_.window);
    const std::uint64_t at =
        windows_.begin + (windows_.random
                              ? context.random("window").below(windows_.bytes - windows_.window)
                              : index * windows_.stride);
    const std::span<std::byte> bytes = context.scratch(Bytes{window + 1});
    stream_.read(at, bytes, context);
    std::int64_t* const x = writer.field<std::int64_t>(0).data();
    std::int64_t* const y = writer.field<std::int64_t>(1).data();
    std::int64_t all = 0;
    for (std::size_t i = 0; i < window; ++i) {
      x[i] = tokens_[std::to_integer<std::size_t>(bytes[i])];
      y[i] = tokens_[std::to_integer<std::size_t>(bytes[i + 1])];
      all |= x[i] | y[i];
    }
    if (all < 0) [[unlikely]] {
      context.fail(LoadErrorKind::corrupt, "load", at - stream_.begin_of(stream_.file_at(at)),
                   "the file has changed since it was opened: it has bytes of no token");
    }
  }

 private:
  std::string name_;
  ByteStream stream_;
  Tokens tokens_;
  Windows windows_;
  std::uint64_t fingerprint_;
};

// Reads the bytes once: for their hash, and for which of them are used.
class TextScan {
 public:
  explicit TextScan(const TextOptions& options) : max_bytes_(options.max_bytes) {
    allowed_.fill(options.vocabulary.empty());
    for (const std::uint8_t byte : options.vocabulary) {
      EBB_REQUIRE(!allowed_[byte], function, "the vocabulary has byte ", std::to_string(byte),
                  " twice");
      allowed_[byte] = true;
    }
  }

  void add(const std::filesystem::path& path) {
    FileBytes file(function, path, max_bytes_);
    file.for_each_part([&](std::uint64_t offset, std::string_view text) {
      contents = detail::hash_bytes(text, contents);
      for (const char c : text) {
        used_[static_cast<unsigned char>(c)] = true;
      }
      for (std::size_t byte = 0; byte < used_.size(); ++byte) {
        if (used_[byte] && !allowed_[byte]) {
          const std::uint64_t at = offset + text.find(static_cast<char>(byte));
          file.fail(LoadErrorKind::corrupt, "data", at,
                    "line " + std::to_string(file.line_at(at)) + ": byte " + std::to_string(byte) +
                        " is not in the vocabulary");
        }
      }
    });
    contents = detail::hash_number(file.size(), contents);
    stream.add(std::move(file));
  }

  std::vector<std::uint8_t> used() const {
    std::vector<std::uint8_t> bytes;
    for (std::size_t byte = 0; byte < used_.size(); ++byte) {
      if (used_[byte]) {
        bytes.push_back(static_cast<std::uint8_t>(byte));
      }
    }
    return bytes;
  }

  ByteStream stream;
  std::uint64_t contents = 0;

 private:
  Bytes max_bytes_;
  std::array<bool, 256> used_{};
  std::array<bool, 256> allowed_{};
};

Windows place_windows(const TextOptions& options, const ByteStream& stream) {
  const auto total = static_cast<double>(stream.size());
  Windows windows{};
  windows.begin = static_cast<std::uint64_t>(options.from * total);
  windows.bytes = static_cast<std::uint64_t>(options.to * total) - windows.begin;
  windows.window = static_cast<std::uint64_t>(options.window);
  windows.stride = options.stride > 0 ? static_cast<std::uint64_t>(options.stride) : windows.window;
  windows.random = options.random;
  if (windows.bytes <= windows.window) {
    stream.file(0).fail(LoadErrorKind::shape, "data", 0,
                        "a window of " + std::to_string(windows.window) +
                            " and the byte after it do not fit into " +
                            std::to_string(windows.bytes) + " bytes: make it smaller");
  }
  windows.count = (windows.bytes - windows.window - 1) / windows.stride + 1;
  if (options.random && options.samples > 0) {
    windows.count = options.samples;
  }
  return windows;
}

}  // namespace

TextSet open_text(const FilePaths& paths, const TextOptions& options) {
  EBB_REQUIRE(!paths.empty(), function, "there are no files");
  constexpr std::int64_t most = std::int64_t{1} << 40;
  EBB_REQUIRE(options.window > 0 && options.window <= most && options.stride >= 0, function,
              "window must be above 0, and stride not below");
  EBB_REQUIRE(options.from >= 0 && options.from < options.to && options.to <= 1, function,
              "from and to are shares of the text: 0 <= from < to <= 1");
  EBB_REQUIRE(options.compact || options.vocabulary.empty(), function,
              "a vocabulary is for compact tokens");
  EBB_REQUIRE(options.random || options.samples == 0, function, "samples is for random windows");
  EBB_REQUIRE(!options.random || options.stride == 0, function, "stride is for fixed windows");
  TextScan scan(options);
  for (const std::filesystem::path& path : paths) {
    scan.add(path);
  }
  Tokens tokens{};
  std::vector<std::uint8_t> vocabulary;
  if (options.compact) {
    vocabulary = options.vocabulary.empty() ? scan.used() : options.vocabulary;
    tokens.fill(no_token);
    for (std::size_t token = 0; token < vocabulary.size(); ++token) {
      tokens[vocabulary[token]] = static_cast<std::int64_t>(token);
    }
  } else {
    for (std::size_t byte = 0; byte < tokens.size(); ++byte) {
      tokens[byte] = static_cast<std::int64_t>(byte);
    }
  }
  const Windows windows = place_windows(options, scan.stream);
  const std::string name = options.name.empty() ? paths.front().filename().string() : options.name;
  return {TextDataset(name, std::move(scan.stream), tokens, windows, scan.contents),
          std::move(vocabulary)};
}

}  // namespace ebb::inline v0
