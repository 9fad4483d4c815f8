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

  Stream make_stream(Device device) override { refuse("Backend::make_stream", device); }
  void destroy_stream(Stream /*stream*/) noexcept override {}
  void synchronise(Stream stream) override { refuse("Backend::synchronise", stream.device); }

  Event record(Stream stream) override { refuse("Backend::record", stream.device); }
  bool is_done(Event /*event*/) override { refuse_event("Backend::is_done"); }
  void wait(Stream stream, Event /*event*/) override { refuse("Backend::wait", stream.device); }
  void synchronise(Event /*event*/) override { refuse_event("Backend::synchronise"); }
  void release(Event /*event*/) noexcept override {}

  void copy(void* /*to*/, const void* /*from*/, Bytes /*bytes*/, Stream stream) override {
    refuse("Backend::copy", stream.device);
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() {
  return std::make_unique<NoCudaBackend>();
}

const char* backend_name() noexcept {
  return "no_cuda";
}

}  // namespace ebb::inline v0
