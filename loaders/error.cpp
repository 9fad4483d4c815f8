// SPDX-License-Identifier: Apache-2.0
// How load errors read. Any thread.
#include <ebb/loaders/error.h>

#include <utility>

namespace ebb::inline v0 {

namespace {

void append(std::string& line, std::string_view word, const std::string& value) {
  if (!value.empty()) {
    line += (line.back() == ' ' ? "" : ", ");
    line += word;
    line += value;
  }
}

void append(std::string& line, std::string_view word, const std::optional<std::uint64_t>& value) {
  if (value.has_value()) {
    append(line, word, std::to_string(*value));
  }
}

std::string message(std::string_view function, const LoadErrorInfo& info) {
  std::string line = "[" + std::string(function) + "] ";
  append(line, "data set ", info.dataset);
  append(line, "sample ", info.index);
  append(line, "epoch ", info.epoch);
  append(line, "batch ", info.seq);
  append(line, "stage ", info.stage);
  append(line, "", info.source);
  if (info.offset.has_value()) {
    line += (info.source.empty() ? ", offset " : " at byte ") + std::to_string(*info.offset);
  }
  if (line.back() != ' ') {
    line += ": ";
  }
  return line + info.text;
}

}  // namespace

std::string_view to_string(LoadErrorKind kind) noexcept {
  switch (kind) {
    case LoadErrorKind::io:
      return "io";
    case LoadErrorKind::corrupt:
      return "corrupt";
    case LoadErrorKind::shape:
      return "shape";
    case LoadErrorKind::user:
      return "user";
    case LoadErrorKind::memory:
      return "memory";
    case LoadErrorKind::stalled:
      return "stalled";
    case LoadErrorKind::device:
      return "device";
  }
  return "?";
}

LoadError::LoadError(std::string_view function, LoadErrorInfo info)
    : std::runtime_error(message(function, info)),
      info_(std::make_shared<const LoadErrorInfo>(std::move(info))) {}

}  // namespace ebb::inline v0
