// SPDX-License-Identifier: Apache-2.0
// Log lines from where nothing may throw: destructors, releases, task shells. Private to gc. Any
// thread.
#pragma once

#include <ebb/gc/domain.h>

#include <exception>
#include <string>

namespace ebb::inline v0::detail {

// Logs what make_text returns; when there is no memory for that, says so instead.
template <class MakeText>
void log_safely(const Domain& domain, LogLevel level, MakeText make_text) noexcept {
  try {
    domain.log(level, make_text());
  } catch (...) {
    domain.log(level, "a message was lost: there was no memory to write it");
  }
}

// The text of an exception that can only be logged.
inline std::string describe_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace ebb::inline v0::detail
