// SPDX-License-Identifier: Apache-2.0
// The names of classes, kept beside a model: a class's number is its place. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// Writes one name a line, UTF-8 as it is. The file is there as a whole or not at all. Throws
// std::invalid_argument for a name that is empty, is there twice or has a line's end in it, and
// std::system_error, with the path, when it cannot be written.
void save_vocabulary(const std::filesystem::path& path, const std::vector<std::string>& vocabulary);

// Returns what save_vocabulary wrote; lines may end in CRLF. Throws LoadError, with path and
// offset, for an empty line, a name that is there twice, and a file that is empty or above 64 MiB.
std::vector<std::string> load_vocabulary(const std::filesystem::path& path);

}  // namespace ebb::inline v0
