// SPDX-License-Identifier: Apache-2.0
// What loads of samples share: where fields lie, the walk over a batch, errors. One thread a walk.
#include "scratch.h"
#include "stage_room.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/dataset.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ebb::inline v0 {

std::span<std::byte> StageContext::scratch(Bytes bytes) const {
  return scratch_->take(bytes);
}

void StageContext::fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                        std::string_view text) const {
  detail::SampleOrigin origin = dataset_->origin(key_);
  throw LoadError("Loader::next", {.kind = kind,
                                   .dataset = std::move(origin.dataset),
                                   .index = origin.index,
                                   .epoch = epoch_,
                                   .seq = seq_,
                                   .stage = std::string(stage),
                                   .source = std::move(origin.source),
                                   .offset = offset,
                                   .text = std::string(text)});
}

std::span<std::byte> SampleBytes::allocate(Bytes bytes) {
  if (room_ == nullptr) {
    throw std::logic_error("[SampleBytes::allocate] called twice for one sample");
  }
  bytes_ = std::exchange(room_, nullptr)->make(bytes);
  return bytes_;
}

namespace detail {

void wrong_field(std::size_t field, std::size_t fields, const FieldSpot* spot, DType asked) {
  EBB_REQUIRE(spot != nullptr, "SampleWriter::field", "there is no field ", std::to_string(field),
              ": the schema has ", std::to_string(fields));
  require_failed("SampleWriter::field", "field ", std::to_string(field), " is ",
                 to_string(spot->dtype), ", not ", to_string(asked));
}

void no_such_stage(const std::string& dataset, const char* stage) {
  throw std::logic_error("[Loader] the data set " + dataset + " has no " + stage);
}

}  // namespace detail

}  // namespace ebb::inline v0
