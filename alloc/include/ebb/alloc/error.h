// SPDX-License-Identifier: Apache-2.0
// The errors of memory and devices. Everything that ebb throws derives from a standard exception,
// and each message begins with the function in brackets.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/alloc/place.h>

#include <new>
#include <stdexcept>
#include <string>

namespace ebb::inline v0 {

// What a resource knew when it had to refuse. Sizes in bytes; limit 0 means "no limit". For a heap
// live and cached are those of its whole pool, largest_hole is its own.
struct OutOfMemoryInfo {
  Bytes asked;
  Bytes limit;
  Bytes live;
  Bytes cached;        // reserved but not live
  Bytes largest_hole;  // the largest range that could have been handed out without growing
  std::string resource;
  std::string holders;  // the places that hold most, one a line; may be empty
  Place place = {};     // the line that asked, where it is known
  Bytes device = {};    // all the memory of the device that was asked, where it is known
};

// Memory was refused. Nothing was changed by the refusal: free something and ask again.
class OutOfMemory : public std::bad_alloc {
 public:
  // function is the caller's name for the message, for example "Heap::allocate".
  OutOfMemory(const char* function, OutOfMemoryInfo info);

  const char* what() const noexcept override { return message_.c_str(); }
  const OutOfMemoryInfo& info() const noexcept { return info_; }

 private:
  OutOfMemoryInfo info_;
  std::string message_;
};

// A call into a device's driver failed. is_lost: so did the device, for the rest of the process; a
// runtime does nothing more on it.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const std::string& call, int code, const std::string& device,
              const std::string& reason, bool is_lost = false);

  const std::string& call() const noexcept { return call_; }
  // The driver's code, 0 where no driver said so.
  int code() const noexcept { return code_; }
  const std::string& device() const noexcept { return device_; }
  bool is_lost() const noexcept { return is_lost_; }

 private:
  std::string call_;
  std::string device_;
  int code_;
  bool is_lost_;
};

// A runtime was used in a forked child. [rt.fork]
class ForkedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ebb::inline v0
