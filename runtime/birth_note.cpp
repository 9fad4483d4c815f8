// SPDX-License-Identifier: Apache-2.0
// What a tensor's storage remembers for reports: dtype, shape and device in 48 bytes, written on
// every allocation and printed only when something is wrong. Any thread.
#include <ebb/runtime/tensor.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <string_view>

namespace ebb::inline v0 {

namespace {

// Sizes have 40 bits; a larger one is stored as the largest, which is printed as "...".
constexpr std::uint64_t size_limit = (std::uint64_t{1} << 40) - 1;

struct PackedNote {
  DType dtype{};
  std::uint8_t dims = 0;
  std::uint8_t device_kind = 0;
  std::uint32_t device_index = 0;
  std::array<std::uint32_t, max_dims> size_low{};
  std::array<std::uint8_t, max_dims> size_high{};
};
static_assert(sizeof(PackedNote) == birth_note_bytes && alignof(PackedNote) <= alignof(BirthNote));

// Appends to a buffer and drops what does not fit. to_string of shapes and devices would allocate.
class Text {
 public:
  Text(char* buffer, std::size_t size) : buffer_(buffer), room_(size) {}

  void add(std::string_view part) {
    const std::size_t count = std::min(part.size(), room_ - used_);
    std::copy_n(part.data(), count, buffer_ + used_);
    used_ += count;
  }
  void add(std::uint64_t number) {
    std::array<char, 20> digits{};
    const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }
  std::size_t used() const { return used_; }

 private:
  char* buffer_;
  std::size_t room_;
  std::size_t used_ = 0;
};

std::size_t format(const std::byte* note, char* buffer, std::size_t size) noexcept {
  PackedNote packed;
  std::memcpy(&packed, note, sizeof packed);
  Text text(buffer, size);
  text.add(to_string(packed.dtype));
  text.add("[");
  for (std::size_t d = 0; d < packed.dims; ++d) {
    text.add(d == 0 ? "" : ", ");
    const std::uint64_t value = (std::uint64_t{packed.size_high[d]} << 32) | packed.size_low[d];
    if (value == size_limit) {
      text.add("...");
    } else {
      text.add(value);
    }
  }
  text.add("] ");
  constexpr std::array<std::string_view, 3> kinds{"cpu", "cuda:", "sim:"};
  text.add(kinds[packed.device_kind]);
  if (packed.device_kind != 0) {
    text.add(std::uint64_t{packed.device_index});
  }
  return text.used();
}

}  // namespace

BirthNote birth_note(DType dtype, const Shape& shape, Device device) noexcept {
  static_assert(static_cast<int>(DeviceKind::cpu) == 0 && static_cast<int>(DeviceKind::sim) == 2);
  // Written in place, by small stores that nothing reads soon: this is on every allocation's path.
  BirthNote note;
  auto& packed = *new (note.bytes.data()) PackedNote;
  packed.dtype = dtype;
  packed.dims = static_cast<std::uint8_t>(shape.dims());
  packed.device_kind = static_cast<std::uint8_t>(device.kind);
  packed.device_index = device.index;
  for (int d = 0; d < shape.dims(); ++d) {
    const std::uint64_t size = std::min(static_cast<std::uint64_t>(shape[d]), size_limit);
    packed.size_low[static_cast<std::size_t>(d)] = static_cast<std::uint32_t>(size);
    packed.size_high[static_cast<std::size_t>(d)] = static_cast<std::uint8_t>(size >> 32);
  }
  note.format = format;
  return note;
}

}  // namespace ebb::inline v0
