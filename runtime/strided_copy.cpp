// SPDX-License-Identifier: Apache-2.0
// The loops behind strided_copy: dimensions are sorted and merged so that the innermost run is as
// long as the layouts allow, then one typed run per innermost row. Any thread.
#include "strided_copy.h"

#include "convert.h"

#include <string>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

// Strides are in bytes here.
struct Dim {
  std::int64_t size;
  std::int64_t to;
  std::int64_t from;
};

struct LoopNest {
  std::array<Dim, max_dims> dims{};
  std::size_t count = 0;
};

// Outermost first by the destination's stride, so that writes move through memory in order.
LoopNest sorted_dims(const Shape& shape, const StridedElements<std::byte>& to,
                     const StridedElements<const std::byte>& from) {
  const auto to_unit = static_cast<std::int64_t>(size_of(to.dtype));
  const auto from_unit = static_cast<std::int64_t>(size_of(from.dtype));
  LoopNest nest;
  for (std::size_t d = 0; d < static_cast<std::size_t>(shape.dims()); ++d) {
    const std::int64_t size = shape[static_cast<int>(d)];
    if (size == 1 || (to.strides[d] == 0 && from.strides[d] == 0)) {
      continue;  // it changes no address; of one element the strides may be any number
    }
    const Dim dim{size, to.strides[d] * to_unit, from.strides[d] * from_unit};
    std::size_t at = nest.count++;
    for (; at > 0 && nest.dims[at - 1].to < dim.to; --at) {
      nest.dims[at] = nest.dims[at - 1];
    }
    nest.dims[at] = dim;
  }
  return nest;
}

LoopNest merged_dims(const LoopNest& nest) {
  LoopNest merged;
  for (std::size_t d = 0; d < nest.count; ++d) {
    const Dim& inner = nest.dims[d];
    if (merged.count > 0) {
      Dim& outer = merged.dims[merged.count - 1];
      if (outer.to == inner.to * inner.size && outer.from == inner.from * inner.size) {
        outer = {outer.size * inner.size, inner.to, inner.from};
        continue;
      }
    }
    merged.dims[merged.count++] = inner;
  }
  return merged;
}

using Run = void (*)(std::byte* to, const std::byte* from, const Dim& dim);

template <DType To, DType From>
void run(std::byte* to, const std::byte* from, const Dim& dim) noexcept {
  using T = stored_t<To>;
  using F = stored_t<From>;
  constexpr auto to_unit = static_cast<std::int64_t>(sizeof(T));
  constexpr auto from_unit = static_cast<std::int64_t>(sizeof(F));
  const std::int64_t n = dim.size;
  // The first three are the last one with constants that let the compiler vectorise.
  if (To == From && dim.to == to_unit && dim.from == from_unit) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (dim.to == to_unit && dim.from == from_unit) {
    for (std::int64_t i = 0; i < n; ++i) {
      store<T>(to + i * to_unit, convert<To, From>(load<F>(from + i * from_unit)));
    }
  } else if (dim.to == to_unit && dim.from == 0) {
    const T value = convert<To, From>(load<F>(from));
    for (std::int64_t i = 0; i < n; ++i) {
      store<T>(to + i * to_unit, value);
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      store<T>(to + i * dim.to, convert<To, From>(load<F>(from + i * dim.from)));
    }
  }
}

// Both sides are constructed strings.
void run_strings(std::byte* to, const std::byte* from, const Dim& dim) {
  for (std::int64_t i = 0; i < dim.size; ++i) {
    *reinterpret_cast<std::string*>(to + i * dim.to) =
        *reinterpret_cast<const std::string*>(from + i * dim.from);
  }
}

// Of the dtypes that convert into each other: string, the last one, does not.
constexpr std::size_t dtypes = 10;
static_assert(static_cast<std::size_t>(DType::string) == dtypes);

template <std::size_t... Pair>
constexpr std::array<Run, sizeof...(Pair)> make_runs(std::index_sequence<Pair...> /*pairs*/) {
  return {&run<static_cast<DType>(Pair / dtypes), static_cast<DType>(Pair % dtypes)>...};
}

constexpr auto runs = make_runs(std::make_index_sequence<dtypes * dtypes>{});

Run choose_run(DType to, DType from) {
  EBB_ASSERT(is_plain(to) == is_plain(from));
  return is_plain(to) ? runs[static_cast<std::size_t>(to) * dtypes + static_cast<std::size_t>(from)]
                      : run_strings;
}

}  // namespace

void strided_copy(const Shape& shape, const StridedElements<std::byte>& to,
                  const StridedElements<const std::byte>& from) {
  for (std::int64_t size : shape) {
    if (size == 0) {
      return;
    }
  }
  const LoopNest nest = merged_dims(sorted_dims(shape, to, from));
  const Run run = choose_run(to.dtype, from.dtype);
  if (nest.count == 0) {
    run(to.data, from.data, {1, 0, 0});
    return;
  }
  // An odometer over all dimensions but the innermost.
  const std::size_t outer = nest.count - 1;
  std::array<std::int64_t, max_dims> index{};
  std::byte* write = to.data;
  const std::byte* read = from.data;
  while (true) {
    run(write, read, nest.dims[outer]);
    std::size_t d = outer;
    while (d > 0 && ++index[d - 1] == nest.dims[d - 1].size) {
      --d;
      index[d] = 0;
      write -= (nest.dims[d].size - 1) * nest.dims[d].to;
      read -= (nest.dims[d].size - 1) * nest.dims[d].from;
    }
    if (d == 0) {
      return;
    }
    write += nest.dims[d - 1].to;
    read += nest.dims[d - 1].from;
  }
}

}  // namespace ebb::inline v0::detail
