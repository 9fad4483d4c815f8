// SPDX-License-Identifier: Apache-2.0
// Tensors of memory that is already there: wrapped with its own way of release, borrowed, or read
// out of a buffer by a copy. The owner that is given is charged. Any thread.
#pragma once

#include <ebb/alloc/mapped.h>
#include <ebb/runtime/tensor.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

namespace detail {

// The table of buffers whose managing struct release() takes, one per function.
template <auto release, class Context>
inline constexpr PtrOps managed_ops{
    [](void* context, void* /*data*/) noexcept { release(static_cast<Context*>(context)); },
    "managed buffer"};

Tensor from_shared(Owner owner, std::shared_ptr<const void> holder, void* data, const Shape& shape,
                   DType dtype, Place at);
Tensor from_borrowed(Owner owner, void* data, std::size_t count, const Shape& shape, DType dtype,
                     Place at);
// Returns tensor, of which nobody else knows yet; read-only if so.
Tensor protect(Tensor tensor, bool read_only);

}  // namespace detail

// Wraps a buffer of host memory with a managing struct: release(context), a function that does not
// throw, is called once, with the last view, on the thread that drops it, or when this throws. No
// heap call.
//
//   ebb::Tensor t = ebb::from_blob<release_frame>(it, frame->pixels, frame, {h, w}, DType::u8);
template <auto release, class Context>
Tensor from_blob(Owner owner, void* data, Context* context, const Shape& shape, DType dtype,
                 Place at = Place::here()) {
  static_assert(noexcept(release(context)), "the release of foreign memory must be noexcept");
  return from_blob(owner, DataPtr(data, context, detail::managed_ops<release, Context>, cpu), shape,
                   dtype, at);
}

// Wraps a buffer that holder keeps alive, for example inside an object of another library. Costs
// one call of the system's heap, for the reference.
inline Tensor from_blob(Owner owner, std::shared_ptr<const void> holder, void* data,
                        const Shape& shape, DType dtype, Place at = Place::here()) {
  return detail::from_shared(owner, std::move(holder), data, shape, dtype, at);
}
// As above for a shared array of elements, at least shape.elements() long. Of const elements the
// tensor is read-only.
template <class T>
Tensor from_blob(Owner owner, const std::shared_ptr<T[]>& elements, const Shape& shape,
                 Place at = Place::here()) {
  using Plain = std::remove_const_t<T>;
  return detail::protect(detail::from_shared(owner, elements, const_cast<Plain*>(elements.get()),
                                             shape, dtype_of<Plain>, at),
                         std::is_const_v<T>);
}

// Wraps borrowed memory: ebb never releases it, and it must outlive the last view. Of const
// elements the tensor is read-only. Throws std::invalid_argument when there are fewer elements
// than shape has.
template <class T, std::size_t extent>
Tensor from_blob(Owner owner, std::span<T, extent> elements, const Shape& shape,
                 Place at = Place::here()) {
  using Plain = std::remove_const_t<T>;
  return detail::protect(detail::from_borrowed(owner, const_cast<Plain*>(elements.data()),
                                               elements.size(), shape, dtype_of<Plain>, at),
                         std::is_const_v<T>);
}

// Wraps the begin of a mapped file or segment, which is unmapped with the last view; read-only as
// it was mapped. Throws std::invalid_argument when it has fewer bytes than the elements of shape,
// when it is not aligned for dtype, and for strings.
//
//   ebb::Tensor w = ebb::from_blob(rt, ebb::map_file("w.bin"), {512, 784}, ebb::DType::f32);
Tensor from_blob(Owner owner, Mapped mapped, const Shape& shape, DType dtype,
                 Place at = Place::here());

// For count: as many elements as there are.
inline constexpr std::int64_t all_elements = -1;

// Returns a copy of count elements that begin offset bytes into bytes, in the byte order given,
// converted to the machine's; bool bytes other than 0 become 1. bytes need no alignment. Throws
// std::invalid_argument when they do not hold the elements, or (all_elements) end within one, and
// for strings.
// NOLINTNEXTLINE(readability-function-size): seven say it all, and four have a default
Tensor from_buffer(Owner owner, std::span<const std::byte> bytes, DType dtype,
                   std::endian order = std::endian::native, std::int64_t count = all_elements,
                   std::size_t offset = 0, Place at = Place::here());

}  // namespace ebb::inline v0
