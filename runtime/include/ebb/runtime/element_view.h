// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor by index, for loops: address, sizes and strides in a small struct, as
// std::mdspan has them. Does not keep the storage alive. A value: any thread that may use the
// memory.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ebb::inline v0 {

namespace detail {

// Throws std::invalid_argument that names the index and the dimension.
[[noreturn]] void view_index_failed(std::size_t dim, std::int64_t index, std::int64_t size);

// Whether views check every index: where the translation unit is compiled with EBB_CHECKS=2
// (checks=full). It is part of the view's type, so that such units mix with others.
#if defined(EBB_CHECKS) && EBB_CHECKS >= 2
inline namespace full_checks {
constexpr bool views_checked = true;
}
#else
inline namespace no_checks {
constexpr bool views_checked = false;
}
#endif

}  // namespace detail

// A view of rank dimensions of elements T, made by Tensor::view<T, rank>(). Strides are in
// elements, and may be 0 or negative. Valid while the tensor's storage lives and is not resized.
//
//   auto pixels = images.view<const float, 3>();
//   sum += pixels(i, row, column);
template <class T, std::size_t rank, bool checked = detail::views_checked>
class ElementView {
 public:
  using Sizes = std::array<std::int64_t, rank>;

  constexpr ElementView(T* data, const Sizes& sizes, const Sizes& strides) noexcept
      : data_(data), sizes_(sizes), strides_(strides) {}

  // Returns an element. Indices out of bounds are undefined, save where views are checked.
  template <std::integral... Index>
  constexpr T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == rank, "one index for each dimension");
    return element<checked>({static_cast<std::int64_t>(index)...});
  }
  constexpr T& operator[](std::int64_t index) const requires(rank == 1) {
    return element<checked>({index});
  }
  // As operator(), but throws std::invalid_argument for an index out of bounds.
  template <std::integral... Index>
  constexpr T& at(Index... index) const {
    static_assert(sizeof...(Index) == rank, "one index for each dimension");
    return element<true>({static_cast<std::int64_t>(index)...});
  }

  // Returns the address of the element whose indices are all 0.
  constexpr T* data() const noexcept { return data_; }
  constexpr std::int64_t size(std::size_t dim) const noexcept { return sizes_[dim]; }
  constexpr std::int64_t stride(std::size_t dim) const noexcept { return strides_[dim]; }
  constexpr const Sizes& sizes() const noexcept { return sizes_; }
  constexpr const Sizes& strides() const noexcept { return strides_; }
  static constexpr std::size_t dims() noexcept { return rank; }
  constexpr std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes_) {
      product *= size;
    }
    return product;
  }

 private:
  template <bool check>
  constexpr T& element(const Sizes& index) const {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      if constexpr (check) {
        if (index[d] < 0 || index[d] >= sizes_[d]) [[unlikely]] {
          detail::view_index_failed(d, index[d], sizes_[d]);
        }
      }
      at += index[d] * strides_[d];
    }
    return data_[at];
  }

  T* data_;
  Sizes sizes_;
  Sizes strides_;
};

}  // namespace ebb::inline v0
