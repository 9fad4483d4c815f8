// SPDX-License-Identifier: Apache-2.0
// Wrapping foreign memory, and reading elements out of a buffer of bytes. [alloc.wrap] [rt.tensor]
// Any thread.
#include <ebb/alloc/check.h>
#include <ebb/runtime/tensor_from.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace {

void release_holder(void* context, void* /*data*/) noexcept {
  delete static_cast<std::shared_ptr<const void>*>(context);
}

constexpr PtrOps shared_ops{release_holder, "shared buffer"};
constexpr PtrOps borrowed_ops{nullptr, "borrowed"};

// Copies n elements of unit bytes, each with its bytes reversed.
template <std::size_t unit>
void copy_reversed(std::byte* to, const std::byte* from, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    std::reverse_copy(from + i * unit, from + (i + 1) * unit, to + i * unit);
  }
}

void copy_elements(std::byte* to, const std::byte* from, std::size_t n, DType dtype,
                   bool reversed) {
  const std::size_t unit = size_of(dtype);
  if (dtype == DType::boolean) {
    std::transform(from, from + n, to, [](std::byte b) { return std::byte{b != std::byte{0}}; });
  } else if (!reversed || unit == 1) {
    std::memcpy(to, from, n * unit);
  } else if (unit == 2) {
    copy_reversed<2>(to, from, n);
  } else if (unit == 4) {
    copy_reversed<4>(to, from, n);
  } else {
    copy_reversed<8>(to, from, n);
  }
}

// Returns how many elements are read. Nothing is multiplied, so nothing overflows.
std::size_t checked_count(std::size_t bytes, DType dtype, std::int64_t count, std::size_t offset) {
  constexpr const char* function = "from_buffer";
  EBB_REQUIRE(is_plain(dtype), function, "strings are not read from bytes");
  EBB_REQUIRE(offset <= bytes, function, "the offset ", std::to_string(offset),
              " is past the end of ", std::to_string(bytes), " bytes");
  const std::size_t rest = bytes - offset;
  const std::size_t room = rest / size_of(dtype);
  if (count == all_elements) {
    EBB_REQUIRE(rest % size_of(dtype) == 0, function, "the ", std::to_string(rest),
                " bytes are no whole number of ", to_string(dtype));
    return room;
  }
  EBB_REQUIRE(count >= 0 && static_cast<std::uint64_t>(count) <= room, function,
              std::to_string(count), " elements were asked for, and ", std::to_string(rest),
              " bytes hold ", std::to_string(room), " ", to_string(dtype));
  return static_cast<std::size_t>(count);
}

}  // namespace

Tensor from_blob(Owner owner, DataPtr data, const Shape& shape, DType dtype, Place at) {
  EBB_REQUIRE(owner, "from_blob", "the owner is empty: pass a Runtime or an Iteration");
  const auto count = static_cast<std::size_t>(shape.elements());
  const Bytes bytes = Bytes{size_of(dtype)} * count;
  EBB_REQUIRE(data || bytes == Bytes{}, "from_blob", "data is null, and the shape ",
              to_string(shape), " has elements");
  EBB_REQUIRE(reinterpret_cast<std::uintptr_t>(data.get()) % align_of(dtype) == 0, "from_blob",
              "data is not aligned for ", to_string(dtype));
  const Birth birth{at, birth_note(dtype, shape, data.device())};
  if (is_plain(dtype)) {
    return {Storage::wrap(owner, std::move(data), bytes, birth), dtype, shape};
  }
  return {Storage::wrap_elements(owner, std::move(data), element_ops<std::string>, count, birth),
          dtype, shape};
}

Tensor detail::protect(Tensor tensor, bool read_only) {
  if (read_only) {
    Storage(tensor.storage()).set_read_only();
  }
  return tensor;
}

Tensor detail::from_shared(Owner owner, std::shared_ptr<const void> holder, void* data,
                           const Shape& shape, DType dtype, Place at) {
  auto node = std::make_unique<std::shared_ptr<const void>>(std::move(holder));
  return from_blob(owner, DataPtr(data, node.release(), shared_ops, cpu), shape, dtype, at);
}

Tensor detail::from_borrowed(Owner owner, void* data, std::size_t count, const Shape& shape,
                             DType dtype, Place at) {
  EBB_REQUIRE(static_cast<std::uint64_t>(shape.elements()) <= count, "from_blob", "the shape ",
              to_string(shape), " has more elements than the ", std::to_string(count),
              " that were given");
  return from_blob(owner, DataPtr(data, nullptr, borrowed_ops, cpu), shape, dtype, at);
}

Tensor from_blob(Owner owner, Mapped mapped, const Shape& shape, DType dtype, Place at) {
  EBB_REQUIRE(is_plain(dtype), "from_blob", "a mapping holds no constructed strings");
  const Bytes bytes = Bytes{size_of(dtype)} * static_cast<std::size_t>(shape.elements());
  EBB_REQUIRE(bytes <= mapped.bytes, "from_blob", "the mapping has ",
              std::to_string(mapped.bytes.count()), " bytes, and ", to_string(shape), " ",
              to_string(dtype), " takes ", std::to_string(bytes.count()));
  return detail::protect(from_blob(owner, std::move(mapped.data), shape, dtype, at),
                         mapped.read_only);
}

// NOLINTNEXTLINE(readability-function-size): as declared
Tensor from_buffer(Owner owner, std::span<const std::byte> bytes, DType dtype, std::endian order,
                   std::int64_t count, std::size_t offset, Place at) {
  EBB_REQUIRE(owner, "from_buffer", "the owner is empty: pass a Runtime or an Iteration");
  const std::size_t n = checked_count(bytes.size(), dtype, count, offset);
  EBB_REQUIRE(owner.stream().device == cpu, "from_buffer", "copies to ",
              to_string(owner.stream().device), " are not supported yet");
  Tensor tensor = empty(owner, {static_cast<std::int64_t>(n)}, dtype, at);
  if (n != 0) {
    copy_elements(static_cast<std::byte*>(tensor.storage().data()), bytes.data() + offset, n, dtype,
                  order != std::endian::native);
  }
  return tensor;
}

}  // namespace ebb::inline v0
