// SPDX-License-Identifier: Apache-2.0
// How ebb speaks: one hook per runtime. Default: one line on stderr with "[ebb]" in front.
// The hook is called on any thread, by several at once, and must not throw or use ebb.
#pragma once

#include <functional>
#include <string_view>

namespace ebb::inline v0 {

enum class LogLevel { info, warning, error };

// text has no newline at its end; it may have some inside.
using LogHook = std::function<void(LogLevel level, std::string_view text)>;

}  // namespace ebb::inline v0
