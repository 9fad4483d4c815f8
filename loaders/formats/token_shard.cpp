// SPDX-License-Identifier: Apache-2.0
// Telling formats of tokens apart, and reading them. Any thread.
#include "token_shard.h"

#include "aligned_bytes.h"
#include "npy_header.h"

#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

static_assert(std::endian::native == std::endian::little, "tokens are read as they are");

constexpr std::uint64_t llm_c_header_bytes = 256 * 4;
constexpr std::uint32_t llm_c_u16 = 20240520;
constexpr std::uint32_t llm_c_u32 = 20240801;
constexpr std::uint32_t llm_c_evaluation = 20240522;

ByteRange whole_file(const char* function, const std::filesystem::path& path) {
  auto file = std::make_shared<const PositionedFile>(function, path);
  const std::uint64_t bytes = file->bytes();
  return {std::move(file), "", 0, bytes};
}

// Returns the number at the n-th place of a file of 32-bit numbers, 0 where it has none.
std::uint32_t number_at(const ByteRange& range, std::uint64_t n) {
  std::uint32_t number = 0;
  if (range.bytes() >= (n + 1) * sizeof(number)) {
    range.read_at(n * sizeof(number), std::as_writable_bytes(std::span(&number, 1)));
  }
  return number;
}

TokenFormat tell_format(const ByteRange& range) {
  const std::uint32_t magic = number_at(range, 0);
  switch (magic) {
    case llm_c_u16:
    case llm_c_u32:
      return TokenFormat::llm_c;
    case llm_c_evaluation:
      range.fail(LoadErrorKind::shape, "header", 0,
                 "these are questions for llm.c's evaluation, not a sequence of tokens");
    default:
      constexpr std::uint32_t npy_magic = 0x4d554e93;  // "\x93NUM"
      return magic == npy_magic ? TokenFormat::npy : TokenFormat::raw_u16;
  }
}

}  // namespace

TokenShard::TokenShard(const char* function, const std::filesystem::path& path, TokenFormat format)
    : range_(whole_file(function, path)) {
  if (range_.bytes() == 0) {
    range_.fail(LoadErrorKind::corrupt, "header", 0, "the file is empty");
  }
  if (path.extension() == ".gz") {
    range_.fail(LoadErrorKind::shape, "header", 0, "windows are read anywhere in it: unpack it");
  }
  switch (format == TokenFormat::automatic ? tell_format(range_) : format) {
    case TokenFormat::llm_c:
      read_llm_c_header();
      break;
    case TokenFormat::npy:
      read_npy();
      break;
    case TokenFormat::raw_u32:
      unit_ = 4;
      break;
    default:
      break;
  }
  const std::uint64_t bytes = range_.bytes() - begin_;
  if (bytes % unit_ != 0) {
    range_.fail(LoadErrorKind::corrupt, "data", range_.bytes(),
                "truncated, or another format: " + std::to_string(bytes) + " bytes are no whole " +
                    "number of tokens of " + std::to_string(8 * unit_) + " bits");
  }
  tokens_ = bytes / unit_;
  // The header's number has 32 bits only; of more tokens it has the lower bits.
  if (begin_ == llm_c_header_bytes && static_cast<std::uint32_t>(tokens_) != number_at(range_, 2)) {
    range_.fail(LoadErrorKind::corrupt, "header", 8,
                "the header promises " + std::to_string(number_at(range_, 2)) + " tokens, there " +
                    "are " + std::to_string(tokens_) + ": get it again");
  }
}

void TokenShard::read_llm_c_header() {
  const std::uint32_t magic = number_at(range_, 0);
  if (magic != llm_c_u16 && magic != llm_c_u32) {
    range_.fail(LoadErrorKind::corrupt, "header", 0,
                "not one of llm.c's files of tokens: it begins with " + std::to_string(magic));
  }
  if (range_.bytes() < llm_c_header_bytes) {
    range_.fail(LoadErrorKind::corrupt, "header", range_.bytes(),
                "truncated in the header: get it again");
  }
  const std::uint32_t version = number_at(range_, 1);
  const std::uint32_t wanted = magic == llm_c_u16 ? 1 : 7;
  if (version != wanted) {
    range_.fail(LoadErrorKind::shape, "header", 4,
                "version " + std::to_string(version) + ": version " + std::to_string(wanted) +
                    " is known; tokenise the text again");
  }
  unit_ = magic == llm_c_u16 ? 2 : 4;
  begin_ = llm_c_header_bytes;
}

void TokenShard::read_npy() {
  const ArrayForm form = read_npy_header(range_);
  const bool is_unsigned = form.format.step == ElementStep::widen && !form.format.reversed;
  if (!is_unsigned || form.shape.dims() != 1) {
    range_.fail(LoadErrorKind::shape, "header", 0,
                "the array is no sequence of u16 or u32: save tokens.astype('uint16')");
  }
  unit_ = form.format.unit;
  begin_ = form.data;
}

void TokenShard::load() {
  try {
    std::shared_ptr<std::byte> all = allocate_aligned(bytes());
    range_.read_at(begin_, {all.get(), bytes()});
    memory_ = std::move(all);
  } catch (const std::bad_alloc&) {
    range_.fail(
        LoadErrorKind::memory, "data", begin_,
        "there is no memory for its " + std::to_string(bytes()) + " bytes: lower memory_max");
  }
}

void TokenShard::read(std::uint64_t token, std::span<std::byte> out) const {
  range_.read_at(begin_ + token * unit_, out);
}

void TokenShard::fail(LoadErrorKind kind, std::string_view stage, std::uint64_t token,
                      const std::string& text) const {
  range_.fail(kind, stage, begin_ + token * unit_, text);
}

}  // namespace ebb::inline v0::detail
