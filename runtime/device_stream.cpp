// SPDX-License-Identifier: Apache-2.0
// Streams as users have them, over a device's context. [rt.stream]
#include "host_calls.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/device_context.h>
#include <ebb/runtime/device_stream.h>

#include <string>

namespace ebb::inline v0 {
namespace {

// What CUDA calls cudaStreamLegacy and cudaStreamPerThread.
const void* legacy_handle() noexcept {
  return reinterpret_cast<const void*>(std::uintptr_t{1});  // NOLINT(performance-no-int-to-ptr)
}
const void* per_thread_handle() noexcept {
  return reinterpret_cast<const void*>(std::uintptr_t{2});  // NOLINT(performance-no-int-to-ptr)
}

DeviceContext& context_of(Runtime& rt, Device device, const char* function) {
  rt.domain()->require_usable(function);
  return rt.domain()->device(device, function);
}

// Throws for a tensor, the one at index of its list, that nothing on stream can use.
void require_usable_on(Stream stream, const Tensor& tensor, std::size_t index) {
  constexpr const char* function = "launch";
  const std::string which = "tensor " + std::to_string(index);
  EBB_REQUIRE(tensor.defined(), function, which, " of the list is undefined");
  if (tensor.device() == stream.device || tensor.storage().is_pinned()) {
    return;
  }
  const std::string what = which + " of the list, " + std::string(to_string(tensor.dtype())) +
                           to_string(tensor.shape()) + ", is ";
  EBB_REQUIRE(tensor.device() != cpu, function, what,
              "in host memory that is not pinned, and the stream on ", to_string(stream.device),
              ": copy it there with to(), or make it with empty_pinned()");
  detail::require_failed(function, what, "on ", to_string(tensor.device()), ", and the stream on ",
                         to_string(stream.device), ": copy it there with to()");
}

}  // namespace

DeviceStream::DeviceStream(Runtime& rt, Device device)
    : domain_(rt.domain()), stream_(context_of(rt, device, "DeviceStream").make_stream()) {}

DeviceStream& DeviceStream::operator=(DeviceStream&& other) noexcept {
  if (this != &other) {
    end();
    domain_ = std::move(other.domain_);
    stream_ = std::exchange(other.stream_, Stream{});
  }
  return *this;
}

void DeviceStream::end() noexcept {
  if (domain_ != nullptr && !domain_->in_child()) {
    domain_->device(stream_.device, "DeviceStream").destroy_stream(stream_);
  }
  domain_ = nullptr;
}

DeviceStream borrow_stream(Runtime& rt, Device device, void* handle) {
  constexpr const char* function = "borrow_stream";
  DeviceContext& context = context_of(rt, device, function);
  if (device.kind == DeviceKind::cuda) {
    EBB_REQUIRE(handle != per_thread_handle(), function,
                "cudaStreamPerThread is another stream on each thread, with one handle for all: "
                "make a DeviceStream for each thread instead");
    if (handle == nullptr || handle == legacy_handle()) {
      return {rt.domain(), context.default_stream()};
    }
  }
  return {rt.domain(), context.borrow_stream(handle)};
}

void* stream_handle(Runtime& rt, Stream stream) {
  return context_of(rt, stream.device, "stream_handle").handle_of(stream);
}

StreamPoint record(Runtime& rt, Stream stream) {
  return context_of(rt, stream.device, "record").record(stream);
}

void make_wait(Runtime& rt, Stream later, StreamPoint point) {
  constexpr const char* function = "make_wait";
  EBB_REQUIRE(later.device == point.stream.device, function, "a stream on ",
              to_string(later.device), " does not wait for one on ", to_string(point.stream.device),
              ": synchronise() with it");
  context_of(rt, later.device, function).wait(later, point);
}

void make_wait(Runtime& rt, Stream later, Stream earlier) {
  DeviceContext& context = context_of(rt, earlier.device, "make_wait");
  context.require(earlier, "make_wait");
  make_wait(rt, later, context.newest(earlier));
}

bool is_done(Runtime& rt, StreamPoint point) {
  DeviceContext& context = context_of(rt, point.stream.device, "is_done");
  context.require_no_capture("is_done");
  return context.is_done(point);
}

bool synchronise(Runtime& rt, StreamPoint point, Milliseconds patience) {
  DeviceContext& context = context_of(rt, point.stream.device, "synchronise");
  context.require_no_capture("synchronise");
  return context.wait_until(point, deadline_after(steady_clock(), patience));
}

bool synchronise(Runtime& rt, Stream stream, Milliseconds patience) {
  DeviceContext& context = context_of(rt, stream.device, "synchronise");
  context.require(stream, "synchronise");
  return synchronise(rt, context.newest(stream), patience);
}

void launch_host(Runtime& rt, Stream stream, std::function<void()> function) {
  EBB_REQUIRE(function != nullptr, "launch_host", "the function is empty");
  rt.domain()->require_usable("launch_host");
  detail::host_calls(rt).queue(stream, std::move(function));
}

Tensor empty_pinned(Owner owner, Device device, const Shape& shape, DType dtype, Place at) {
  constexpr const char* function = "empty_pinned";
  EBB_REQUIRE(owner, function, "the owner is empty: pass a Runtime or an Iteration");
  EBB_REQUIRE(is_plain(dtype), function, "strings are not pinned");
  const Birth birth{at, birth_note(dtype, shape, cpu)};
  const Bytes bytes = Bytes{size_of(dtype)} * static_cast<std::size_t>(shape.elements());
  return {Storage::make_pinned(owner.on(Stream{device}), bytes, default_align_cpu, birth), dtype,
          shape};
}

namespace detail {

void* begin_launch(Runtime& rt, Stream stream, TensorList tensors) {
  rt.domain()->require_usable("launch");
  DeviceContext& context = rt.domain()->use(stream, "launch");
  std::size_t index = 0;
  for (const Tensor& tensor : tensors) {
    require_usable_on(stream, tensor, index++);
  }
  for (const Tensor& tensor : tensors) {
    const Stream own = tensor.storage().stream();
    if (own != stream && own.device == stream.device) {
      context.wait(stream, own);
    }
    tensor.storage().used_on(stream);
  }
  return context.handle_of(stream);
}

void end_launch(Runtime& rt, Stream stream, TensorList tensors) {
  DeviceContext& context = rt.domain()->device(stream.device, "launch");
  for (const Tensor& tensor : tensors) {
    const Stream own = tensor.storage().stream();
    if (own != stream && own.device == stream.device) {
      context.wait_unless_ended(own, context.newest(stream));
    }
  }
}

}  // namespace detail
}  // namespace ebb::inline v0
