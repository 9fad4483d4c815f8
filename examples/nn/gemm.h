// SPDX-License-Identifier: Apache-2.0
// Matrix products on the CPU: oneDNN's sgemm, called single-threaded from our own tasks, over tiles
// that depend on the shape only. Used by CpuMath. Any thread.
#pragma once

#include "matrix_view.h"

#include <ebb/runtime/executor.h>

#include <cstdint>

namespace ebb::inline v0::nn {

// What is to be done with a tile of c right after its product, while it is in the cache.
struct TileDone {
  void (*call)(void* context, MatrixView<float> tile, std::int64_t first_column) = nullptr;
  void* context = nullptr;
};

// c = a b + beta c, and done for every tile of c, unless it is empty.
void gemm(Executor& executor, MatrixView<const float> a, MatrixView<const float> b, float beta,
          MatrixView<float> c, TileDone done = {});

// c = a b + beta c on the calling thread, with no call of ebb's. Shapes fit. Returns oneDNN's
// status, 0 when it is done.
int gemm_here(MatrixView<const float> a, MatrixView<const float> b, float beta,
              MatrixView<float> c) noexcept;

// Returns how far apart the rows of a matrix should begin, in elements. Rows start on cache lines,
// and not a multiple of 1 KiB apart: then a column would fall into few sets of the cache, which
// halves the speed of products that read it.
constexpr std::int64_t padded_stride(std::int64_t columns) noexcept {
  constexpr std::int64_t line = 16;
  const std::int64_t rounded = (columns + line - 1) / line * line;
  return rounded % 256 == 0 ? rounded + line : rounded;
}

}  // namespace ebb::inline v0::nn
