// SPDX-License-Identifier: Apache-2.0
// Shapes: what may be one, and how many elements it has. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/runtime/shape.h>

#include <algorithm>

namespace ebb::inline v0 {

Shape::Shape(std::span<const std::int64_t> sizes) {
  EBB_REQUIRE(sizes.size() <= static_cast<std::size_t>(max_dims), "Shape",
              std::to_string(sizes.size()), " dimensions: a tensor has at most ",
              std::to_string(max_dims));
  for (std::int64_t size : sizes) {
    EBB_REQUIRE(size >= 0, "Shape", "the size ", std::to_string(size), " of dimension ",
                std::to_string(dims_), " is negative");
    sizes_[static_cast<std::size_t>(dims_++)] = size;
  }
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  bool none = false;
  for (std::int64_t size : *this) {
    none = none || size == 0;
    EBB_REQUIRE(size == 0 || !__builtin_mul_overflow(product, size, &product), "Shape::elements",
                "the sizes ", to_string(*this), " have a product that overflows");
  }
  return none ? 0 : product;
}

bool Shape::operator==(const Shape& other) const noexcept {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int d = 0; d < shape.dims(); ++d) {
    text += d == 0 ? "" : ", ";
    text += std::to_string(shape[d]);
  }
  return text + "]";
}

}  // namespace ebb::inline v0
