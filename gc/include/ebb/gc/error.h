// SPDX-License-Identifier: Apache-2.0
// The errors of lifetimes.
#pragma once

#include <ebb/gc/report.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace ebb::inline v0 {

// An iteration closed with something of it still alive, and its policy says that this is an
// error; or adopted stragglers passed straggler_bytes. what() holds the report's text.
class StragglerError : public std::runtime_error {
 public:
  StragglerError(const std::string& reason, StragglerReport report);

  const StragglerReport& report() const noexcept { return *report_; }

 private:
  std::shared_ptr<const StragglerReport> report_;  // shared: copying an exception must not throw
};

// A tensor whose memory was given up was used: it outlived its iteration under Policy::revoke.
class RevokedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ebb::inline v0
