// SPDX-License-Identifier: Apache-2.0
// Streams of devices: ebb's own and the host's, the order between them, and what runs on them.
// Nothing here blocks but synchronise(). All throw std::invalid_argument for what is not the
// runtime's, and DeviceError once the device is lost. Any thread. [rt.stream]
#pragma once

#include <ebb/alloc/stream.h>
#include <ebb/gc/clock.h>
#include <ebb/gc/domain.h>
#include <ebb/runtime/runtime.h>
#include <ebb/runtime/tensor.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

namespace ebb::inline v0 {

// A stream for as long as this lives; what is queued on it by then goes on to its end. Move-only;
// may outlive the runtime.
//
//   ebb::DeviceStream copies(rt, {ebb::DeviceKind::cuda, 0});
//   ebb::Tensor x = batch.to(copies);
class DeviceStream {
 public:
  DeviceStream() noexcept = default;  // of no device
  // Makes a stream, which does not wait for the device's default one. There may be 63 of a device.
  DeviceStream(Runtime& rt, Device device);
  DeviceStream(DeviceStream&& other) noexcept
      : domain_(std::move(other.domain_)), stream_(std::exchange(other.stream_, Stream{})) {}
  DeviceStream& operator=(DeviceStream&& other) noexcept;
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() { end(); }

  Stream stream() const noexcept { return stream_; }
  operator Stream() const noexcept { return stream_; }  // NOLINT(google-explicit-constructor)
  Device device() const noexcept { return stream_.device; }

 private:
  friend DeviceStream borrow_stream(Runtime& rt, Device device, void* handle);
  DeviceStream(std::shared_ptr<Domain> domain, Stream stream) noexcept
      : domain_(std::move(domain)), stream_(stream) {}
  void end() noexcept;

  std::shared_ptr<Domain> domain_;
  Stream stream_;
};

// Makes a stream of the host's known, by the driver's handle, which the host destroys after this
// has ended. A handle that stands for another stream on each thread is refused.
DeviceStream borrow_stream(Runtime& rt, Device device, void* handle);
// Returns the driver's handle of a stream. Stream{device} is the device's default one.
void* stream_handle(Runtime& rt, Stream stream);

// Returns the point that covers all that has been queued on stream.
StreamPoint record(Runtime& rt, Stream stream);
// Has what is queued on later from now on wait for the point, or for all that is queued on earlier
// by now. Both are of one device.
void make_wait(Runtime& rt, Stream later, StreamPoint point);
void make_wait(Runtime& rt, Stream later, Stream earlier);
bool is_done(Runtime& rt, StreamPoint point);
// Blocks until the device has come past the point, or all that is queued on stream by now. False:
// that took longer than patience.
bool synchronise(Runtime& rt, StreamPoint point, Milliseconds patience);
bool synchronise(Runtime& rt, Stream stream, Milliseconds patience);

// Runs function on a thread of the driver's once all that is queued on stream by now is done; what
// is queued later waits for it. It is work of the current owner, and charged to it; what it throws
// is the error of that iteration: its close throws it, or, when that was before, the next open of
// its loop or finish(). It must not use a device; what it releases is released later, by a close
// (see DeferReleases). The runtime's destructor waits for it.
void launch_host(Runtime& rt, Stream stream, std::function<void()> function);

// Returns host memory that device copies from and to by itself: copy_ between it and the device
// only queues. Do not write it again, or read what was copied into it, before synchronise(rt,
// stream): use two and alternate. [alloc.cuda]
Tensor empty_pinned(Owner owner, Device device, const Shape& shape, DType dtype = DType::f32,
                    Place at = Place::here());

namespace detail {

using TensorList = std::initializer_list<std::reference_wrapper<const Tensor>>;

// Before and after something on stream uses the tensors: it comes after what their own streams were
// given by then, and before what those are given later.
void* begin_launch(Runtime& rt, Stream stream, TensorList tensors);
void end_launch(Runtime& rt, Stream stream, TensorList tensors);

}  // namespace detail

// Calls function with the driver's handle of stream, to queue work there that uses the tensors,
// which may have been made on other streams of the device: their work is put in order, and their
// memory stays theirs until this work is done. Tensors on the host must be pinned. Meanwhile stream
// is the thread's current one.
//
//   ebb::launch(rt, stream, {x, y}, [&](void* handle) { scale<<<n, 256, 0, cudaStream_t(handle)>>>(
//       x.data<const float>(), y.data<float>()); });
template <class F>
void launch(Runtime& rt, Stream stream, detail::TensorList tensors, F&& function) {
  void* const handle = detail::begin_launch(rt, stream, tensors);
  try {
    const StreamScope scope(rt, stream);
    std::forward<F>(function)(handle);
  } catch (...) {
    detail::end_launch(rt, stream, tensors);  // it may have queued some of its work
    throw;
  }
  detail::end_launch(rt, stream, tensors);
}

}  // namespace ebb::inline v0
