// SPDX-License-Identifier: Apache-2.0
// How elements get to a device, from it, and about on it. Host memory that is not pinned goes by
// way of a pinned block, which is given back at once: it is used again only when the copy is done.
#include "device_copy.h"

#include "extent.h"
#include "strided_copy.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/alloc/device_work.h>
#include <ebb/alloc/error.h>
#include <ebb/gc/domain.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace ebb::inline v0::detail {
namespace {

// Above that pinned memory would only be an additional cost: the driver copies in parts of its own.
constexpr Bytes staged_most{std::size_t{64} << 20};

// The elements of a tensor, wherever they are.
struct Layout {
  explicit Layout(const Tensor& tensor)
      : data(static_cast<std::byte*>(tensor.storage().data()) +
             static_cast<std::ptrdiff_t>(size_of(tensor.dtype())) * tensor.offset()),
        dtype(tensor.dtype()) {
    for (int d = 0; d < tensor.dims(); ++d) {
      strides[static_cast<std::size_t>(d)] = tensor.stride(d);
    }
  }
  Layout(std::byte* its_data, DType its_dtype, const Shape& shape)
      : data(its_data), dtype(its_dtype), strides(contiguous_strides(shape)) {}

  std::byte* data;
  DType dtype;
  Strides strides{};
};

// Elements from dimension first on, as rows that lie equally far apart on both sides; nothing where
// they do not.
std::optional<CopyRows> find_rows(const Shape& shape, int first, const Layout& to,
                                  const Layout& from) {
  std::int64_t width = 1;
  std::int64_t rows = 1;
  std::array<std::int64_t, 2> pitch{};
  for (int d = shape.dims(); d-- > first;) {
    const std::int64_t size = shape[d];
    const auto i = static_cast<std::size_t>(d);
    const std::array<std::int64_t, 2> step{to.strides[i], from.strides[i]};
    if (size == 1) {
      continue;
    }
    if (rows == 1 && step[0] == width && step[1] == width) {
      width *= size;
    } else if (rows == 1) {
      pitch = step;
      rows = size;
    } else if (step[0] == pitch[0] * rows && step[1] == pitch[1] * rows) {
      rows *= size;
    } else {
      return std::nullopt;
    }
  }
  if (rows > 1 && (pitch[0] < width || pitch[1] < width)) {
    return std::nullopt;
  }
  const auto bytes = [unit = size_of(to.dtype)](std::int64_t elements) {
    return unit * static_cast<std::size_t>(elements);
  };
  return CopyRows{Bytes{bytes(width)}, static_cast<std::size_t>(rows), bytes(pitch[0]),
                  bytes(pitch[1])};
}

// One stream's copies.
class Copier {
 public:
  Copier(DeviceContext& context, Stream stream) noexcept : context_(context), stream_(stream) {}

  // Queues them in as few pieces as the layouts have.
  void copy(const Shape& shape, const Layout& to, const Layout& from) { copy(shape, 0, to, from); }

 private:
  void copy(const Shape& shape, int first, const Layout& to, const Layout& from) {
    if (const std::optional<CopyRows> rows = find_rows(shape, first, to, from)) {
      if (rows->rows == 1) {
        context_.copy(to.data, from.data, rows->width, stream_);
      } else {
        context_.copy_rows(to.data, from.data, *rows, stream_);
      }
      return;
    }
    Layout next_to = to;
    Layout next_from = from;
    const auto unit = static_cast<std::ptrdiff_t>(size_of(to.dtype));
    const auto i = static_cast<std::size_t>(first);
    for (std::int64_t at = 0; at < shape[first]; ++at) {
      copy(shape, first + 1, next_to, next_from);
      next_to.data += unit * to.strides[i];
      next_from.data += unit * from.strides[i];
    }
  }

  DeviceContext& context_;
  Stream stream_;
};

void copy_on_host(const Shape& shape, const Layout& to, const Layout& from) {
  strided_copy(shape, {to.data, to.dtype, to.strides}, {from.data, from.dtype, from.strides});
}

// Pinned memory for a copy on stream; empty where there is none.
Storage take_staging(const Tensor& tensor, Stream stream) {
  const Owner owner = tensor.storage().domain().long_lived().on(stream);
  if (tensor.bytes() > staged_most) {
    return {};
  }
  try {
    return Storage::make_pinned(owner, tensor.bytes(), default_align_cpu, Birth{Place::here()});
  } catch (const OutOfMemory&) {
    return {};
  }
}

// Throws unless a device can copy between the two: it converts nothing.
void require_same_dtype(const Tensor& to, const Tensor& from, const char* function) {
  EBB_REQUIRE(to.dtype() == from.dtype(), function, "a device does not convert from ",
              to_string(from.dtype()), " to ", to_string(to.dtype()),
              ": convert it in host memory, with to(ebb::cpu).to(dtype)");
}

// A graph would use the host's memory each time that it is launched.
void require_direct(bool is_direct, const DeviceContext& context, const char* function) {
  EBB_REQUIRE(is_direct || !context.is_capturing(), function,
              "while a graph is captured, only empty_pinned() tensors of the same type are copied "
              "from and to the host: do it before or after the captured step");
}

void upload(const Tensor& to, const Tensor& from, const char* function) {
  const Stream stream = to.storage().stream();
  DeviceContext& context = to.storage().domain().use(stream, function);
  Copier copier(context, stream);
  const bool direct = from.storage().is_pinned() && from.dtype() == to.dtype();
  require_direct(direct, context, function);
  const Storage staging = direct ? Storage() : take_staging(to, stream);
  if (!staging) {
    require_same_dtype(to, from, function);
    from.storage().used_on(stream);
    copier.copy(to.shape(), Layout(to), Layout(from));
  } else {
    const Layout middle(static_cast<std::byte*>(staging.data()), to.dtype(), to.shape());
    copy_on_host(to.shape(), middle, Layout(from));
    staging.used_on(stream);
    copier.copy(to.shape(), Layout(to), middle);
  }
  // The host memory is nobody else's before this is seen to be done.
  context.record(stream);
}

void download(const Tensor& to, const Tensor& from, const char* function) {
  const Stream stream = from.storage().stream();
  Domain& domain = from.storage().domain();
  DeviceContext& context = domain.use(stream, function);
  Copier copier(context, stream);
  const bool direct = to.storage().is_pinned() && from.dtype() == to.dtype();
  require_direct(direct, context, function);
  const Storage staging = direct ? Storage() : take_staging(from, stream);
  if (!staging) {
    require_same_dtype(to, from, function);
    to.storage().used_on(stream);
    copier.copy(to.shape(), Layout(to), Layout(from));
    const StreamPoint done = context.record(stream);
    if (!direct) {
      domain.wait_for(done, function);
    }
    return;
  }
  const Layout middle(static_cast<std::byte*>(staging.data()), from.dtype(), from.shape());
  staging.used_on(stream);
  copier.copy(to.shape(), middle, Layout(from));
  domain.wait_for(context.record(stream), function);
  copy_on_host(to.shape(), Layout(to), middle);
}

// Each side's stream comes after what the other was given before.
void copy_within(const Tensor& to, const Tensor& from, const char* function) {
  const Stream stream = to.storage().stream();
  const Stream other = from.storage().stream();
  DeviceContext& context = to.storage().domain().use(stream, function);
  if (stream != other) {
    context.wait(stream, other);
    from.storage().used_on(stream);
  }
  Copier(context, stream).copy(to.shape(), Layout(to), Layout(from));
  if (stream != other) {
    context.wait_unless_ended(other, context.newest(stream));
  }
}

// The streams of two devices are not put in order: the host waits for both.
void copy_across(const Tensor& to, const Tensor& from, const char* function) {
  Domain& domain = to.storage().domain();
  DeviceContext& source = domain.use(from.storage().stream(), function);
  domain.wait_for(source.record(from.storage().stream()), function);
  const Stream stream = to.storage().stream();
  DeviceContext& context = domain.use(stream, function);
  Copier(context, stream).copy(to.shape(), Layout(to), Layout(from));
  domain.wait_for(context.record(stream), function);
}

}  // namespace

void copy_by_device(const Tensor& to, const Tensor& from, const char* function) {
  EBB_REQUIRE(is_plain(to.dtype()) && is_plain(from.dtype()), function,
              "strings live in host memory");
  if (from.device() == cpu) {
    return upload(to, from, function);
  }
  if (to.device() == cpu) {
    return download(to, from, function);
  }
  require_same_dtype(to, from, function);
  if (to.device() != from.device()) {
    return copy_across(to, from, function);
  }
  copy_within(to, from, function);
}

void fill_by_device(const Tensor& tensor, const std::byte* element, const char* function) {
  EBB_REQUIRE(tensor.is_contiguous(), function,
              "on a device only contiguous tensors are filled: fill a contiguous one and copy_ it");
  const auto count = static_cast<std::size_t>(tensor.elements());
  if (count == 0) {
    return;
  }
  FillPattern pattern{.bits = 0, .width = size_of(tensor.dtype())};
  std::memcpy(&pattern.bits, element, pattern.width);
  const Stream stream = tensor.storage().stream();
  DeviceContext& context = tensor.storage().domain().use(stream, function);
  context.fill(Layout(tensor).data, pattern, count, stream);
}

void require_no_capture(const Storage& from, Device to, const char* function) {
  const Device device = to == cpu ? from.device() : to;
  if (device != cpu && (to == cpu || from.device() == cpu)) {
    require_direct(from.is_pinned(), from.domain().device(device, function), function);
  }
}

Tensor host_copy(const Tensor& tensor, const char* function) {
  const Domain& domain = tensor.storage().domain();
  domain.require_usable(function);
  Tensor copy = empty(domain.long_lived(), tensor.shape(), tensor.dtype());
  copy.copy_(tensor);
  return copy;
}

}  // namespace ebb::inline v0::detail
