// SPDX-License-Identifier: Apache-2.0
// What goes wrong with data: which sample of which data set, where in which file, at which stage.
// Thrown by data sets, by open_* functions and by Loader::next. Values: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ebb::inline v0 {

enum class LoadErrorKind : std::uint8_t {
  io,       // the system refused: missing, unreadable, a directory
  corrupt,  // the bytes are not what their format promises
  shape,    // sizes or types do not fit: counts differ, another element type
  user,     // the data set's own code threw
  memory,   // memory was refused while loading
  stalled,  // a deadline passed
  device,   // a device failed
};

std::string_view to_string(LoadErrorKind kind) noexcept;

// What is known of a failure; empty members are unknown, and are left out of the message.
struct LoadErrorInfo {
  LoadErrorKind kind = LoadErrorKind::user;
  std::string dataset = {};
  std::optional<std::uint64_t> index = {};  // of the sample in its data set
  std::optional<std::uint64_t> epoch = {};
  std::optional<std::uint64_t> seq = {};     // of the batch in its epoch
  std::string stage = {};                    // "open", "header", "data", "load", ...
  std::string source = {};                   // path
  std::optional<std::uint64_t> offset = {};  // in source, unpacked; stage "gzip": as it lies there
  std::string text = {};                     // what happened, and what to do
};

// One line: "[Loader::next] data set cats, sample 130, epoch 0, batch 2, stage decode,
// cats/130.png at byte 8: ...". The cause, if any, is nested: std::rethrow_if_nested. [load.error]
class LoadError : public std::runtime_error {
 public:
  LoadError(std::string_view function, LoadErrorInfo info);

  LoadErrorKind kind() const noexcept { return info_->kind; }
  const LoadErrorInfo& info() const noexcept { return *info_; }

 private:
  std::shared_ptr<const LoadErrorInfo> info_;  // shared: copying an exception must not throw
};

}  // namespace ebb::inline v0
