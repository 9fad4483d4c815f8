// SPDX-License-Identifier: Apache-2.0
// Tensors as text for people: dtype, shape, device, and the elements in nested brackets, shortened
// past 1000 of them. For tests, logs and debugging; allocates. On the thread that holds the tensor.
#include "device_copy.h"
#include "strided_copy.h"

#include <ebb/runtime/tensor.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <ostream>
#include <string_view>

namespace ebb::inline v0 {

namespace {

constexpr std::int64_t elements_in_full = 1000;
constexpr std::int64_t no_edge = std::numeric_limits<std::int64_t>::max() / 2;

class Printer {
 public:
  Printer(const Tensor& tensor, std::string& text)
      : tensor_(tensor),
        data_(static_cast<const std::byte*>(tensor.storage().data())),
        edge_(choose_edge(tensor)),
        text_(text) {}

  void print() { print_dim(0, tensor_.offset()); }

 private:
  // Returns how many elements are shown at both ends of each dimension.
  static std::int64_t choose_edge(const Tensor& tensor) {
    if (tensor.elements() <= elements_in_full) {
      return no_edge;
    }
    const auto shown = [&](std::int64_t edge) {
      std::int64_t product = 1;
      for (std::int64_t size : tensor.shape()) {
        product *= std::min(size, 2 * edge);
      }
      return product;
    };
    std::int64_t edge = 3;
    while (edge > 1 && shown(edge) > elements_in_full) {
      --edge;
    }
    return edge;
  }

  void print_dim(int dim, std::int64_t at) {
    if (dim == tensor_.dims()) {
      print_element(at);
      return;
    }
    const bool innermost = dim + 1 == tensor_.dims();
    const std::string separator =
        innermost ? ", " : ",\n" + std::string(static_cast<std::size_t>(dim) + 1, ' ');
    const std::int64_t size = tensor_.size(dim);
    const std::int64_t step = tensor_.stride(dim);
    text_ += '[';
    for (std::int64_t i = 0; i < size; ++i) {
      text_ += i == 0 ? "" : separator;
      if (i == edge_ && size > 2 * edge_) {
        text_ += "..." + separator;
        i = size - edge_;
      }
      print_dim(dim + 1, at + i * step);
    }
    text_ += ']';
  }

  void print_element(std::int64_t at) {
    const std::byte* from = data_ + static_cast<std::size_t>(at) * size_of(tensor_.dtype());
    switch (tensor_.dtype()) {
      case DType::f16:
      case DType::bf16:
      case DType::f32:
      case DType::f64:
        return print_as<double>(from, std::chars_format::general, 6);
      case DType::boolean:
        text_ += std::to_integer<unsigned>(*from) != 0 ? "true" : "false";
        return;
      case DType::string:
        return print_quoted(*reinterpret_cast<const std::string*>(from));
      default:
        return print_as<std::int64_t>(from);
    }
  }

  // In double quotes; quotes, backslashes and control characters as escapes, the rest as it is.
  void print_quoted(std::string_view value) {
    text_ += '"';
    for (const char c : value) {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (c == '\n') {
        text_ += "\\n";
      } else if (byte < 0x20 || byte == 0x7f) {
        text_ += "\\x";
        text_ += digits[byte / 16];
        text_ += digits[byte % 16];
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  template <class T, class... Format>
  void print_as(const std::byte* from, Format... format) {
    T value{};
    detail::strided_copy(Shape{}, {reinterpret_cast<std::byte*>(&value), dtype_of<T>, {}},
                         {from, tensor_.dtype(), {}});
    std::array<char, 32> digits{};
    const char* end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value, format...).ptr;
    text_.append(static_cast<const char*>(digits.data()), end);
  }

  const Tensor& tensor_;
  const std::byte* data_;
  std::int64_t edge_;
  std::string& text_;
};

void append_elements(std::string& text, const Tensor& tensor) {
  if (tensor.storage().revoked()) {
    text += "(the memory was given up: the tensor outlived its iteration)";
  } else if (!tensor.in_storage()) {
    text += "(the storage was resized or swapped, and no longer holds these elements)";
  } else if (tensor.elements() == 0) {
    text += "[]";
  } else if (tensor.device() == cpu) {
    Printer(tensor, text).print();
  } else {
    Printer(detail::host_copy(tensor, "to_string"), text).print();
  }
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) {
    return "undefined";
  }
  std::string text(to_string(tensor.dtype()));
  text += to_string(tensor.shape()) + " " + to_string(tensor.device()) + '\n';
  try {
    append_elements(text, tensor);
  } catch (const std::exception& error) {  // of a device
    text += "(" + std::string(error.what()) + ")";
  }
  return text;
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace ebb::inline v0
