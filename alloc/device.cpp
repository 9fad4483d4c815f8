// SPDX-License-Identifier: Apache-2.0
// Devices as text. Any thread.
#include <ebb/alloc/check.h>
#include <ebb/alloc/device.h>

#include <charconv>

namespace ebb::inline v0 {

namespace {

const char* kind_name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::sim:
      return "sim";
  }
  return "?";
}

}  // namespace

std::string to_string(Device device) {
  std::string text = kind_name(device.kind);
  if (device.kind != DeviceKind::cpu) {
    text += ':' + std::to_string(device.index);
  }
  return text;
}

Device parse_device(std::string_view text) {
  if (text == "cpu") {
    return cpu;
  }
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::sim}) {
    const std::string_view name = kind_name(kind);
    if (text == name) {
      return {kind, 0};
    }
    if (text.size() > name.size() + 1 && text.substr(0, name.size()) == name &&
        text[name.size()] == ':') {
      Device device{kind, 0};
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + name.size() + 1, end, device.index);
      if (error == std::errc{} && stop == end) {
        return device;
      }
    }
  }
  detail::require_failed("parse_device", "\"", text,
                         "\" names no device; known forms: cpu, cuda, cuda:N, sim:N");
}

}  // namespace ebb::inline v0
