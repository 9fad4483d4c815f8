// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: which tensors there are, and where. Any thread.
#pragma once

#include "element_format.h"
#include "positioned_file.h"

#include <ebb/loaders/safetensors.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ebb::inline v0::detail {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by offset
  std::map<std::string, std::string> metadata;
};

// Reads and checks it to the last byte of the file. Throws LoadError.
SafetensorsHeader read_safetensors_header(const PositionedFile& file);

// Returns how the elements of a type become those of a tensor; none where no tensor has them.
std::optional<ElementFormat> safetensors_format(const std::string& type);

}  // namespace ebb::inline v0::detail
