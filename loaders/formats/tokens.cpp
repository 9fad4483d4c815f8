// SPDX-License-Identifier: Apache-2.0
// Windows over files of tokens: the bytes of one are read at once, and become i64 twice, for x and
// one further for y. [load.formats]
#include "content_hash.h"
#include "token_shard.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

namespace {

using detail::TokenShard;

constexpr const char* function = "open_tokens";
constexpr std::int64_t window_max = std::int64_t{1} << 30;

// A window's tokens, and which of them comes next.
struct WindowWriter {
  std::span<std::int64_t> x;
  std::span<std::int64_t> y;
  std::size_t next = 0;

  std::size_t left() const noexcept { return x.size() + 1 - next; }

  // Appends tokens: each is one of y, but the first of the window, and of x, but the last.
  template <class Token>
  void append(const Token* tokens, std::size_t count) noexcept {
    const std::size_t to_x = std::min(count, x.size() - next);
    std::int64_t* const out_x = x.data() + next;
    for (std::size_t i = 0; i < to_x; ++i) {
      out_x[i] = tokens[i];
    }
    const std::size_t skipped = next == 0 ? 1 : 0;
    std::int64_t* const out_y = y.data() + next + skipped - 1;
    for (std::size_t i = skipped; i < count; ++i) {
      out_y[i - skipped] = tokens[i];
    }
    next += count;
  }
};

class TokenDataset {
 public:
  struct Local {};

  TokenDataset(std::vector<TokenShard> shards, const TokenOptions& options)
      : options_(options), shards_(std::move(shards)) {
    for (const TokenShard& shard : shards_) {
      tokens_ += shard.tokens();
      ends_.push_back(tokens_);
    }
    const auto window = static_cast<std::uint64_t>(options_.window);
    if (tokens_ <= window) {
      shards_.front().fail(LoadErrorKind::shape, "data", 0,
                           "there are " + std::to_string(tokens_) +
                               " tokens in all, and a window " + "takes " + std::to_string(window) +
                               " and one more");
    }
    if (options_.random) {
      size_ = options_.samples != 0 ? options_.samples : (tokens_ - 1) / window;
    } else {
      size_ = (tokens_ - 1 - window) / static_cast<std::uint64_t>(options_.stride) + 1;
    }
    for (const std::uint64_t option :
         {window, static_cast<std::uint64_t>(options_.stride),
          std::uint64_t{options_.random ? 1u : 0u}, options_.random ? size_ : 0}) {
      fingerprint_ = detail::hash_number(option, fingerprint_);
    }
    for (const TokenShard& shard : shards_) {
      fingerprint_ = detail::hash_sparsely(shard.file(), fingerprint_);
    }
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return options_.name; }
  // Of the file that a window begins in; empty where that is drawn in each epoch.
  std::string source(std::uint64_t index) const {
    if (shards_.size() > 1 && options_.random) {
      return {};
    }
    const std::uint64_t begin = options_.random ? 0 : begin_of(index);
    return shards_[shard_of(begin)].file().source();
  }
  Schema schema() const {
    return {{{"x", DType::i64, {options_.window}}, {"y", DType::i64, {options_.window}}}};
  }

  void load(std::uint64_t index, Local& /*local*/, const SampleContext& context,
            SampleWriter& writer) const {
    std::uint64_t begin = 0;
    if (options_.random) {
      begin = context.random("window").below(tokens_ - static_cast<std::uint64_t>(options_.window));
    } else {
      begin = begin_of(index);
    }
    WindowWriter out{writer.field<std::int64_t>(0), writer.field<std::int64_t>(1)};
    for (std::size_t which = shard_of(begin); out.left() > 0; ++which) {
      const TokenShard& shard = shards_[which];
      const std::uint64_t token = begin - (ends_[which] - shard.tokens());
      const std::size_t count = std::min<std::uint64_t>(out.left(), shard.tokens() - token);
      if (count == 0) {
        continue;  // a file without tokens
      }
      const std::byte* bytes = shard.in_memory(token);
      if (bytes == nullptr) {
        const auto room = context.scratch(Bytes{count * shard.unit()});
        shard.read(token, room);
        bytes = room.data();
      }
      if (shard.unit() == 2) {
        append(out, shard, token, reinterpret_cast<const std::uint16_t*>(bytes), count);
      } else {
        append(out, shard, token, reinterpret_cast<const std::uint32_t*>(bytes), count);
      }
      begin += count;
    }
  }

 private:
  std::uint64_t begin_of(std::uint64_t index) const noexcept {
    return index * static_cast<std::uint64_t>(options_.stride);
  }
  // Returns the file that has this token of all.
  std::size_t shard_of(std::uint64_t token) const noexcept {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), token) -
                                    ends_.begin());
  }

  template <class Token>
  void append(WindowWriter& out, const TokenShard& shard, std::uint64_t first, const Token* tokens,
              std::size_t count) const {
    if (options_.vocabulary != 0) {
      const Token* const bad =
          std::find_if(tokens, tokens + count,
                       [limit = options_.vocabulary](Token token) { return token >= limit; });
      if (bad != tokens + count) {
        shard.fail(LoadErrorKind::corrupt, "load", first + static_cast<std::uint64_t>(bad - tokens),
                   "token " + std::to_string(*bad) + " is not in a vocabulary of " +
                       std::to_string(options_.vocabulary) +
                       ": is the format right, and the tokeniser?");
      }
    }
    out.append(tokens, count);
  }

  TokenOptions options_;  // stride and name are set
  std::vector<TokenShard> shards_;
  std::vector<std::uint64_t> ends_;  // of each file, in tokens of all
  std::uint64_t tokens_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t fingerprint_ = 0;
};

void check(const FilePaths& files, const TokenOptions& options) {
  EBB_REQUIRE(!files.empty(), function, "no file is named");
  EBB_REQUIRE(options.window > 0 && options.window <= window_max, function, "window must be 1 to ",
              std::to_string(window_max), ", not ", std::to_string(options.window));
  EBB_REQUIRE(options.stride >= 0, function, "stride must not be negative");
  EBB_REQUIRE(options.stride == 0 || !options.random, function,
              "random windows have no stride: leave it 0");
  EBB_REQUIRE(options.samples == 0 || options.random, function,
              "samples is for random windows: the number of others follows from stride");
}

}  // namespace

AnyDataset open_tokens(const FilePaths& files, const TokenOptions& options) {
  check(files, options);
  std::vector<TokenShard> shards;
  shards.reserve(files.size());
  std::uint64_t bytes = 0;
  for (const std::filesystem::path& path : files) {
    bytes += shards.emplace_back(function, path, options.format).bytes();
  }
  if (bytes <= options.memory_max.count()) {
    for (TokenShard& shard : shards) {
      shard.load();
    }
  }
  TokenOptions complete = options;
  complete.stride = options.stride == 0 ? options.window : options.stride;
  complete.name = options.name.empty() ? files.front().filename().string() : options.name;
  return TokenDataset(std::move(shards), complete);
}

}  // namespace ebb::inline v0
