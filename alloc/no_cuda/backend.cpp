// SPDX-License-Identifier: Apache-2.0
// The backend of a build without CUDA: no devices, and every call on one says why. Any thread.
#include "backend.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0 {

namespace {

constexpr const char* reason = "ebb was built without CUDA (configure with -Dcuda=enabled)";

[[noreturn]] void refuse(const char* call, Device device) {
  throw DeviceError(call, 0, to_string(device), reason);
}
[[noreturn]] void refuse_event(const char* call) {
  detail::require_failed(call, "there is no such event: ", reason);
}

class NoCudaBackend final : public Backend {
 public:
  std::vector<DeviceInfo> devices() override { return {}; }
  std::string missing() override { return reason; }

  Source& source(Device device) override { refuse("Backend::source", device); }
  Source& pinned(Device device) override { refuse("Backend::pinned", device); }

  void make_stream(Stream stream) override { refuse("Backend::make_stream", stream.device); }
  void borrow_stream(Stream stream, void* /*handle*/) override {
    refuse("Backend::borrow_stream", stream.device);
  }
  void destroy_stream(Stream /*stream*/) noexcept override {}
  void* handle_of(Stream stream) override { refuse("Backend::handle_of", stream.device); }

  Event make_event(Device device) override { refuse("Backend::make_event", device); }
  void destroy_event(Event /*event*/) noexcept override {}
  void record(Event /*event*/, Stream stream) override { refuse("Backend::record", stream.device); }
  bool is_done(Event /*event*/) override { refuse_event("Backend::is_done"); }
  void wait(Stream stream, Event /*event*/) override { refuse("Backend::wait", stream.device); }

  void copy(void* /*to*/, const void* /*from*/, Bytes /*bytes*/, Stream stream) override {
    refuse("Backend::copy", stream.device);
  }
  void copy_rows(void* /*to*/, const void* /*from*/, const CopyRows& /*rows*/,
                 Stream stream) override {
    refuse("Backend::copy_rows", stream.device);
  }
  void fill(void* /*to*/, FillPattern /*pattern*/, std::size_t /*count*/, Stream stream) override {
    refuse("Backend::fill", stream.device);
  }
  void call(void (* /*function*/)(void* context), void* /*context*/, Stream stream) override {
    refuse("Backend::call", stream.device);
  }

  void begin_capture(Stream stream) override { refuse("Backend::begin_capture", stream.device); }
  GraphExec end_capture(Stream stream, GraphExec /*into*/) override {
    refuse("Backend::end_capture", stream.device);
  }
  void abandon_capture(Stream /*stream*/) noexcept override {}
  void launch(GraphExec /*graph*/, Stream stream) override {
    refuse("Backend::launch", stream.device);
  }
  void destroy_graph(GraphExec /*graph*/) noexcept override {}
};

}  // namespace

std::unique_ptr<Backend> make_backend() {
  return std::make_unique<NoCudaBackend>();
}

const char* backend_name() noexcept {
  return "no_cuda";
}

}  // namespace ebb::inline v0
