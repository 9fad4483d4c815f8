// SPDX-License-Identifier: Apache-2.0
// A data set of arrays with equal first sizes, in memory or in files. Made by open_npy,
// open_npz and open_safetensors.
#pragma once

#include "array_form.h"
#include "byte_range.h"

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/dataset.h>

#include <string>
#include <vector>

namespace ebb::inline v0::detail {

struct ArrayField {
  std::string name;
  ByteRange range;
  ArrayForm form;
};

struct ArraySet {
  std::string name;
  std::uint64_t fingerprint;  // of the files
  Bytes memory_max;           // of one array
};

// Throws as open_npy does, but for two fields of one name.
AnyDataset make_array_dataset(std::vector<ArrayField> fields, const ArraySet& set);

// Throws std::invalid_argument where there are no names, or two are equal.
void check_field_names(const char* function, const std::vector<std::string>& names);

}  // namespace ebb::inline v0::detail
