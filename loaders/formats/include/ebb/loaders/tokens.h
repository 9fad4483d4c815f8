// SPDX-License-Identifier: Apache-2.0
// Text that was made numbers beforehand: files of tokens, one or many, read as windows for language
// models. Told by their first bytes: those of llm.c (a header of 256 i32; magic 20240520 and tokens
// of 16 bits, or 20240801 and tokens of 32 bits, https://github.com/karpathy/llm.c), npy arrays of
// u16 or u32, and else nanoGPT's, which are nothing but tokens of 16 bits. In libebb-formats.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/dataset.h>
#include <ebb/loaders/file_paths.h>

#include <cstdint>
#include <string>

namespace ebb::inline v0 {

enum class TokenFormat : std::uint8_t {
  automatic,
  llm_c,
  npy,
  raw_u16,  // nothing but tokens
  raw_u32,
};

struct TokenOptions {
  std::int64_t window = 1024;  // T
  std::int64_t stride = 0;     // from one window to the next; 0: as long as a window
  bool random = false;         // windows begin anywhere, and elsewhere in each epoch
  std::uint64_t samples = 0;   // of an epoch of random windows; 0: as many as fit side by side
  TokenFormat format = TokenFormat::automatic;
  std::uint32_t vocabulary = 0;  // more than 0: such a token, or a higher one, is an error
  // Files that have at most so many bytes together are read into memory; else each window is read
  // from its file when it is loaded.
  Bytes memory_max{256 << 20};
  std::string name = {};  // for messages; empty: the first file's name
};

// Opens the files as one sequence of tokens, in the order given: a window may span two files. A
// sample is "x", i64 [T], and "y", i64 [T], the tokens that follow each of x. Sample i begins at
// token i * stride; a random window begins at a place drawn by (seed, epoch, i), each equally
// likely. Files may be longer than 2 GiB. The fingerprint is of window, stride, random and samples,
// and of contents, of which, beyond 64 MiB a file, only sizes and samples are read.
//
// Throws LoadError, with file and byte offset, for a file that is empty, not whole or another one,
// and when there is no window in them; std::invalid_argument for options that cannot be.
//
//   auto data = ebb::open_tokens({"train_000.bin", "train_001.bin"}, {.window = 256});
AnyDataset open_tokens(const FilePaths& files, const TokenOptions& options = {});

}  // namespace ebb::inline v0
