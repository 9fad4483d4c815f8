// SPDX-License-Identifier: Apache-2.0
// How elements lie in files of arrays, and which elements of tensors they become. Used by the
// readers of npy and npz. Values: any thread.
#pragma once

#include <ebb/runtime/dtype.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ebb::inline v0::detail {

// What has to be done with each element.
enum class ElementStep : std::uint8_t {
  none,       // the bytes are those of the tensor
  normalise,  // bool: bytes other than 0 become 1
  widen,      // unsigned integers of 16 and 32 bits become the next larger signed ones
  check,      // unsigned integers of 64 bits become signed ones, where they fit
};

struct ElementFormat {
  DType dtype = DType::f32;  // of the tensor
  std::uint8_t unit = 4;     // bytes of an element in the file
  bool reversed = false;     // whether they are in the other byte order than the machine's
  ElementStep step = ElementStep::none;

  bool is_plain() const noexcept { return !reversed && step == ElementStep::none; }
};

// Writes count elements of a file as those of a tensor. Neither has to be aligned; they do not
// overlap. Returns the first element that does not fit, none when all do.
std::optional<std::size_t> convert_elements(const ElementFormat& format, const std::byte* from,
                                            std::byte* to, std::size_t count) noexcept;

}  // namespace ebb::inline v0::detail
