// SPDX-License-Identifier: Apache-2.0
// The errors of lifetimes.
#include <ebb/gc/error.h>

#include <utility>

namespace ebb::inline v0 {

StragglerError::StragglerError(const std::string& reason, StragglerReport report)
    : std::runtime_error("[Iteration::close] " + reason + (reason.empty() ? "" : "\n") +
                         report.text()),
      report_(std::make_shared<const StragglerReport>(std::move(report))) {}

}  // namespace ebb::inline v0
