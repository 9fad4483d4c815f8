// SPDX-License-Identifier: Apache-2.0
// Tiled products over the step executor. Any thread.
#include "gemm.h"

#include "operands.h"

#include <ebb/runtime/parallel.h>

#include <dnnl.h>

#include <algorithm>
#include <stdexcept>

// Declared here since <omp.h> is not on clang's path without its own OpenMP, which must not be
// loaded beside the one that oneDNN uses.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int count);
}

namespace ebb::inline v0::nn {

namespace {

// OpenMP's thread count belongs to the thread: oneDNN starts no team under this, and the host finds
// its own setting again.
class SingleThreaded {
 public:
  SingleThreaded() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;
  SingleThreaded(SingleThreaded&&) = delete;
  SingleThreaded& operator=(SingleThreaded&&) = delete;
  ~SingleThreaded() { omp_set_num_threads(saved_); }

 private:
  int saved_;
};

struct Tile {
  std::int64_t rows;
  std::int64_t columns;
};

// Small enough that a few threads, one of them disturbed, share the work evenly; within 5 % of
// the speed of one call. They follow from the shape alone: oneDNN may round a tile of another
// height differently.
Tile tile_of(std::int64_t rows) {
  return rows > 128 ? Tile{128, 256} : Tile{128, 64};
}

dnnl_status_t sgemm(MatrixView<const float> a, MatrixView<const float> b, float beta,
                    MatrixView<float> c) {
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', c.rows, c.columns,
                    a.columns, 1.0f, a.data, a.leading(), b.data, b.leading(), beta, c.data,
                    c.leading());
}

template <class T>
MatrixView<T> part_of(MatrixView<T> m, std::int64_t row, std::int64_t rows, std::int64_t column,
                      std::int64_t columns) {
  m.data += m.transposed ? column * m.stride + row : row * m.stride + column;
  m.rows = rows;
  m.columns = columns;
  return m;
}

}  // namespace

void gemm(Executor& executor, MatrixView<const float> a, MatrixView<const float> b, float beta,
          MatrixView<float> c, TileDone done) {
  require_product(a, b, c, "gemm");
  const Tile tile = tile_of(c.rows);
  const std::int64_t across = (c.columns + tile.columns - 1) / tile.columns;
  const std::int64_t down = (c.rows + tile.rows - 1) / tile.rows;
  parallel_for(executor, across * down, 1, [&](std::int64_t begin, std::int64_t end) {
    const SingleThreaded scope;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / across * tile.rows;
      const std::int64_t column = i % across * tile.columns;
      const std::int64_t rows = std::min(tile.rows, c.rows - row);
      const std::int64_t columns = std::min(tile.columns, c.columns - column);
      const MatrixView<float> part = part_of(c, row, rows, column, columns);
      const dnnl_status_t status = sgemm(part_of(a, row, rows, 0, a.columns),
                                         part_of(b, 0, b.rows, column, columns), beta, part);
      if (status != dnnl_success) {
        throw std::runtime_error("[gemm] oneDNN's sgemm failed with status " +
                                 std::to_string(static_cast<int>(status)));
      }
      if (done.call != nullptr) {
        done.call(done.context, part, column);
      }
    }
  });
}

int gemm_here(MatrixView<const float> a, MatrixView<const float> b, float beta,
              MatrixView<float> c) noexcept {
  const SingleThreaded scope;
  return static_cast<int>(sgemm(a, b, beta, c));
}

}  // namespace ebb::inline v0::nn
