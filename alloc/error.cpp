// SPDX-License-Identifier: Apache-2.0
// The texts of memory and device errors. Any thread.
#include <ebb/alloc/error.h>

#include <cstdio>
#include <utility>

namespace ebb::inline v0 {

namespace {

// Exact below 1 KiB, else three significant digits and the exact count.
std::string human(Bytes bytes) {
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes.count() < 1024) {
    return std::to_string(bytes.count()) + " B";
  }
  double value = static_cast<double>(bytes.count()) / 1024;
  unsigned unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s (%zu B)",
                value < 10    ? 2
                : value < 100 ? 1
                              : 0,
                value, units[unit], bytes.count());
  return text;
}

std::string memory_message(const char* function, const OutOfMemoryInfo& info) {
  std::string text = std::string("[") + function + "] out of memory in \"" + info.resource +
                     "\": asked " + human(info.asked);
  if (info.place.line != 0) {
    text += " at " + std::string(info.place.file) + ":" + std::to_string(info.place.line);
  }
  text += ", limit " + (info.limit == Bytes{} ? "none" : human(info.limit));
  if (info.limit == Bytes{} && info.device != Bytes{}) {
    text += ", device " + human(info.device);
  }
  text += ", live " + human(info.live) + ", cached " + human(info.cached) + ", largest hole " +
          human(info.largest_hole);
  if (!info.holders.empty()) {
    text += "; held by:\n" + info.holders;
  }
  return text;
}

std::string device_message(const std::string& call, int code, const std::string& device,
                           const std::string& reason) {
  return "[" + call + "] failed" + (device.empty() ? "" : " on " + device) +
         (code == 0 ? "" : " with code " + std::to_string(code)) + ": " + reason;
}

}  // namespace

OutOfMemory::OutOfMemory(const char* function, OutOfMemoryInfo info)
    : info_(std::move(info)), message_(memory_message(function, info_)) {}

DeviceError::DeviceError(const std::string& call, int code, const std::string& device,
                         const std::string& reason, bool is_lost)
    : std::runtime_error(device_message(call, code, device, reason)),
      call_(call),
      device_(device),
      code_(code),
      is_lost_(is_lost) {}

}  // namespace ebb::inline v0
