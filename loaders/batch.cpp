// SPDX-License-Identifier: Apache-2.0
// Batches: the fields of a lease as tensors.
#include "batch_layout.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/batch.h>

#include <string>

namespace ebb::inline v0 {

Tensor Batch::field(std::size_t i) const {
  EBB_REQUIRE(lease_, "Batch::field", "the batch was moved from");
  EBB_REQUIRE(i < spots_.size(), "Batch::field", "there is no field ", std::to_string(i),
              ": the data set has ", std::to_string(spots_.size()));
  const Field& field = layout_->schema.fields[i];
  std::array<std::int64_t, max_dims> sizes{size()};
  std::size_t dims = 1;
  for (const std::int64_t size_of_dim : field.sample_shape) {
    sizes[dims++] = size_of_dim;
  }
  sizes[1] = field.varies ? longest_ : sizes[1];
  const std::size_t offset = spots_[i].offset / size_of(field.dtype);
  return {on_device_ ? on_device_ : lease_, field.dtype,
          Shape(std::span<const std::int64_t>(sizes.data(), dims)),
          static_cast<std::int64_t>(offset)};
}

Tensor Batch::field(std::string_view name) const {
  EBB_REQUIRE(lease_, "Batch::field", "the batch was moved from");
  std::string names;
  for (std::size_t i = 0; i < layout_->schema.fields.size(); ++i) {
    if (layout_->schema.fields[i].name == name) {
      return field(i);
    }
    names += (i == 0 ? "" : ", ") + layout_->schema.fields[i].name;
  }
  detail::require_failed("Batch::field", "there is no field \"", name, "\" among ", names);
}

void Batch::require_fields(std::size_t n) const {
  EBB_REQUIRE(lease_, "Batch::fields", "the batch was moved from");
  EBB_REQUIRE(n <= spots_.size(), "Batch::fields", std::to_string(n),
              " fields were asked for: the data set has ", std::to_string(spots_.size()));
}

}  // namespace ebb::inline v0
