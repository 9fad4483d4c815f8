// SPDX-License-Identifier: Apache-2.0
// Text as data: line by line, or as windows of one long stream of bytes. Files are plain or
// gzipped, several are one after the other.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/dataset.h>
#include <ebb/loaders/file_paths.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ebb::inline v0 {

struct LineOptions {
  std::int64_t max_length = 1024;  // bytes of a line, without its end
  bool cut_long = false;           // cut longer lines, between characters; else they are refused
  bool keep_invalid = false;       // take bytes that are no UTF-8 as they are; else refused
  bool keep_empty = false;         // lines without anything are samples; else they are left out
  Bytes max_bytes{std::size_t{4} << 30};  // that a gzipped file may unpack to
  std::string name = {};                  // for messages; empty: the name of the first file
};

// A line is a sample: "text", u8 [max_length], which varies, and is filled up with zeros in a
// batch; and "length", i64 scalar, how many of its bytes are the line's. Lines end in LF or CRLF; a
// byte order mark at the beginning of a file is left out. Reads the files once and keeps 12 bytes
// for each line; lines are then read where they lie. Throws LoadError, with line and offset, for
// lines that are too long or no UTF-8, and for files without lines; std::invalid_argument for
// options that cannot be. The fingerprint is of the contents and of the options that change
// samples.
AnyDataset open_lines(const FilePaths& paths, const LineOptions& options = {});

struct TextOptions {
  std::int64_t window = 256;  // tokens of a sample
  std::int64_t stride = 0;    // from one fixed window to the next; 0: window
  bool random = false;        // windows begin anywhere, elsewhere in each epoch
  std::uint64_t samples = 0;  // an epoch, with random windows; 0: as many as there are fixed ones
  // Tokens are places in the list of the bytes that are used, so that a model of characters needs
  // no more of them; else tokens are bytes.
  bool compact = false;
  std::vector<std::uint8_t> vocabulary = {};  // for compact; empty: what the files use, sorted
  // Which part of the bytes is taken: {.to = 0.9} and {.from = 0.9} share no byte. The vocabulary
  // is of all.
  double from = 0;
  double to = 1;
  Bytes max_bytes{std::size_t{4} << 30};  // that a gzipped file may unpack to
  std::string name = {};                  // for messages; empty: the name of the first file
};

struct TextSet {
  AnyDataset data;
  std::vector<std::uint8_t> vocabulary;  // the byte of each token, when they are compact

  operator AnyDataset() const { return data; }  // NOLINT(google-explicit-constructor): it is one
};

// Bytes as tokens, for models of characters: "x", i64 [window], and "y", i64 [window], the same
// shifted by one. The fixed window i begins at i * stride; what does not fill the last one is left
// out. A random one depends on (seed, epoch, sample) only. The files are one stream; they are read
// once for the fingerprint, and windows are then read where they lie. Throws LoadError for a text
// that is shorter than a window and its next byte, or has a byte that a given vocabulary has not;
// std::invalid_argument for options that cannot be.
//
//   auto train = ebb::open_text("shakespeare.txt", {.window = 64, .random = true, .compact = true,
//                                                   .to = 0.9});
TextSet open_text(const FilePaths& paths, const TextOptions& options = {});

}  // namespace ebb::inline v0
