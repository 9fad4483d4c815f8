// SPDX-License-Identifier: Apache-2.0
// One file of tokens: which format it has, and its tokens by position. Used by open_tokens. Any
// thread.
#pragma once

#include "byte_range.h"

#include <ebb/loaders/tokens.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace ebb::inline v0::detail {

class TokenShard {
 public:
  // Opens it, and checks its header and its size. Throws LoadError.
  TokenShard(const char* function, const std::filesystem::path& path, TokenFormat format);

  std::uint64_t tokens() const noexcept { return tokens_; }
  std::size_t unit() const noexcept { return unit_; }  // bytes of a token, 2 or 4
  std::uint64_t bytes() const noexcept { return tokens_ * unit_; }
  const PositionedFile& file() const noexcept { return range_.file(); }

  // Reads all tokens into memory. Throws LoadError.
  void load();
  // Returns where tokens lie in memory from one on; null where they are in the file.
  const std::byte* in_memory(std::uint64_t token) const noexcept {
    return memory_ != nullptr ? memory_.get() + token * unit_ : nullptr;
  }
  // Fills out with the tokens from one on, as they lie in the file. Throws LoadError.
  void read(std::uint64_t token, std::span<std::byte> out) const;
  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t token,
                         const std::string& text) const;

 private:
  void read_llm_c_header();
  void read_npy();

  ByteRange range_;
  std::uint64_t begin_ = 0;  // of the first token
  std::uint64_t tokens_ = 0;
  std::size_t unit_ = 2;
  std::shared_ptr<const std::byte> memory_;
};

}  // namespace ebb::inline v0::detail
