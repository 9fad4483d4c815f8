// SPDX-License-Identifier: Apache-2.0
// Files of allocation traces: CSV, plain or gzipped. `a,thread,id,bytes` allocates, `f,thread,id`
// frees, `i,thread,n` begins iteration n and ends the one before; the last `i` only ends. What
// begins with # is a comment. Used by `ebb replay`. Any thread.
#pragma once

#include "trace.h"

#include <string>

namespace ebb::world {

// Throws std::runtime_error with the file and the line for what is none of these, for an id that
// is allocated twice or freed without a block, and for iterations that do not grow.
Trace read_trace_file(const std::string& path);

}  // namespace ebb::world
