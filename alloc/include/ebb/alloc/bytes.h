// SPDX-License-Identifier: Apache-2.0
// Byte counts and alignments as types of their own, so that a forgotten sizeof does not compile.
// Used wherever memory is asked for. Values: free to copy and use on any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace ebb::inline v0 {

// A number of bytes. Not convertible from or to a count of elements: say Bytes::of<T>(count) or
// Bytes{n}. Sums and products that overflow throw std::invalid_argument. [alloc.wrap]
//
//   ebb::Bytes b = ebb::Bytes::of<float>(64 * 512);   // 131072 bytes
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::size_t count) : count_(count) {}

  // Returns the bytes of count elements of T. Throws std::invalid_argument when the product
  // overflows.
  template <class T>
  static constexpr Bytes of(std::size_t count) {
    return Bytes{sizeof(T)} * count;
  }

  constexpr std::size_t count() const { return count_; }
  // clang-tidy 14 takes the zero that comparisons are rewritten to for a null pointer.
  constexpr auto operator<=>(const Bytes&) const = default;  // NOLINT(modernize-use-nullptr)

  // Throws std::invalid_argument on overflow.
  friend constexpr Bytes operator*(Bytes bytes, std::size_t times) {
    if (times != 0 && bytes.count_ > std::numeric_limits<std::size_t>::max() / times) {
      throw std::invalid_argument("[Bytes] the product of a size and a count overflows");
    }
    return Bytes{bytes.count_ * times};
  }
  // Throws std::invalid_argument on overflow.
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    if (a.count_ > std::numeric_limits<std::size_t>::max() - b.count_) {
      throw std::invalid_argument("[Bytes] the sum of two sizes overflows");
    }
    return Bytes{a.count_ + b.count_};
  }
  // Throws std::invalid_argument when b is larger than a.
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    if (b.count_ > a.count_) {
      throw std::invalid_argument("[Bytes] the difference of two sizes is negative");
    }
    return Bytes{a.count_ - b.count_};
  }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes& operator-=(Bytes other) { return *this = *this - other; }

 private:
  std::size_t count_ = 0;
};

// An alignment in bytes: a power of two.
class Align {
 public:
  // Throws std::invalid_argument when value is no power of two.
  constexpr explicit Align(std::size_t value) : value_(value) {
    if (value == 0 || (value & (value - 1)) != 0) {
      throw std::invalid_argument("[Align] an alignment must be a power of two");
    }
  }
  constexpr std::size_t value() const { return value_; }
  constexpr auto operator<=>(const Align&) const = default;  // NOLINT(modernize-use-nullptr): ditto

 private:
  std::size_t value_;
};

inline constexpr Align default_align_cpu{64};
inline constexpr Align default_align_cuda{256};

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes{n};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes{1024} * n;
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{std::size_t{1} << 20} * n;
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{std::size_t{1} << 30} * n;
}
}  // namespace literals

}  // namespace ebb::inline v0
