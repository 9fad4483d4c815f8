// SPDX-License-Identifier: Apache-2.0
// Reading files at positions, with errors that say where. Any thread.
#include "positioned_file.h"

#include "content_hash.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

namespace ebb::inline v0::detail {

std::optional<PositionedFile::Failure> PositionedFile::try_read_at(std::uint64_t offset,
                                                                   std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count =
        ::pread(file_.descriptor(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count > 0) {
      out = out.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    } else if (count == 0) {
      return Failure{LoadErrorKind::corrupt, offset,
                     offset < bytes() ? "the file was cut short after it was opened: restore it, "
                                        "and open it again"
                                      : "truncated: the file ends " + std::to_string(out.size()) +
                                            " bytes early; get it again"};
    } else if (errno != EINTR) {
      return Failure{LoadErrorKind::io, offset, std::generic_category().message(errno)};
    }
  }
  return std::nullopt;
}

void PositionedFile::read_at(std::uint64_t offset, std::span<std::byte> out,
                             std::string_view stage) const {
  if (auto failure = try_read_at(offset, out)) [[unlikely]] {
    fail(failure->kind, stage, failure->offset, std::move(failure->text));
  }
}

void PositionedFile::read_at(std::uint64_t offset, std::span<std::byte> out,
                             const StageContext& context, std::string_view stage) const {
  if (const auto failure = try_read_at(offset, out)) [[unlikely]] {
    context.fail(failure->kind, stage, failure->offset, failure->text);
  }
}

std::uint64_t hash_sparsely(const PositionedFile& file, std::uint64_t hash) {
  constexpr std::uint64_t whole_max = 64 << 20;
  constexpr std::uint64_t samples = 256;
  constexpr std::size_t sample_bytes = 4096;  // a multiple of 8, so that parts give what all would
  const std::uint64_t bytes = file.bytes();
  const bool is_whole = bytes <= whole_max;
  const std::size_t part_bytes = is_whole ? std::size_t{1} << 18 : sample_bytes;
  const std::uint64_t stride = is_whole ? part_bytes : (bytes - sample_bytes) / (samples - 1);
  std::vector<std::byte> buffer(part_bytes);
  hash = hash_number(bytes, hash);
  for (std::uint64_t at = 0; at < bytes; at += stride) {
    const std::size_t count = std::min<std::uint64_t>(part_bytes, bytes - at);
    file.read_at(at, std::span(buffer).first(count));
    hash = hash_bytes({reinterpret_cast<const std::uint8_t*>(buffer.data()), count}, hash);
  }
  return hash;
}

}  // namespace ebb::inline v0::detail
