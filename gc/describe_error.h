// SPDX-License-Identifier: Apache-2.0
// The text of an exception that can only be logged. Private to gc. Any thread.
#pragma once

#include <exception>
#include <string>

namespace ebb::inline v0::detail {

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
