// SPDX-License-Identifier: Apache-2.0
// The sizes of a tensor's dimensions, stored inline. Values: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace ebb::inline v0 {

inline constexpr int max_dims = 8;

// Up to eight sizes of zero or more; no size at all is a scalar.
class Shape {
 public:
  constexpr Shape() = default;
  // Throws std::invalid_argument for a negative size or more than eight.
  Shape(std::initializer_list<std::int64_t> sizes)  // NOLINT(google-explicit-constructor): {2, 3}
      : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::int64_t> sizes);

  int dims() const noexcept { return dims_; }
  std::int64_t operator[](int dim) const noexcept { return sizes_[static_cast<std::size_t>(dim)]; }
  const std::int64_t* begin() const noexcept { return sizes_.data(); }
  const std::int64_t* end() const noexcept { return sizes_.data() + dims_; }
  // Returns the number of elements: the product, 1 for a scalar. Throws std::invalid_argument when
  // the product of the sizes other than 0 overflows, so that strides are always in range too.
  std::int64_t elements() const;
  bool operator==(const Shape& other) const noexcept;

 private:
  friend class Tensor;
  std::array<std::int64_t, max_dims> sizes_{};
  int dims_ = 0;
};

// Returns "[64, 512]".
std::string to_string(const Shape& shape);

}  // namespace ebb::inline v0
