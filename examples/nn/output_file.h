// SPDX-License-Identifier: Apache-2.0
// Files that are whole or not there: written beside, synced, renamed. Used by the trainers for
// results and weights. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace ebb::inline v0::nn {

// Throws std::runtime_error, naming path and the reason, when write_file could not write there.
// Leaves nothing behind. To be called before hours of work, not after.
void require_writable(const std::string& path);

// Replaces path by a file that holds bytes. Throws std::runtime_error, and then path is as before.
void write_file(const std::string& path, std::string_view bytes);

// Returns the bytes of a file. Throws std::runtime_error.
std::string read_file(const std::string& path);

}  // namespace ebb::inline v0::nn
