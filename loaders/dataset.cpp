// SPDX-License-Identifier: Apache-2.0
// What loads of samples share: where fields lie, the walk over a batch, errors. One thread a walk.
#include "scratch.h"

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
  throw LoadError("Loader::next", {.kind = kind,
                                   .dataset = dataset_->name,
                                   .index = index_,
                                   .epoch = epoch_,
                                   .seq = seq_,
                                   .stage = std::string(stage),
                                   .source = dataset_->source(index_),
                                   .offset = offset,
                                   .text = std::string(text)});
}

std::span<std::byte> SampleBytes::allocate(Bytes bytes) {
  if (std::exchange(is_allocated_, true)) {
    throw std::logic_error("[SampleBytes::allocate] called twice for one sample");
  }
  bytes_ = context_.scratch(bytes);
  return bytes_;
}

namespace detail {

void wrong_field(std::size_t field, std::size_t fields, const FieldSpot* spot, DType asked) {
  EBB_REQUIRE(spot != nullptr, "SampleWriter::field", "there is no field ", std::to_string(field),
              ": the schema has ", std::to_string(fields));
  require_failed("SampleWriter::field", "field ", std::to_string(field), " is ",
                 to_string(spot->dtype), ", not ", to_string(asked));
}

BatchLayout::BatchLayout(const Schema& its_schema, std::size_t batch) : schema(its_schema) {
  EBB_REQUIRE(!schema.fields.empty(), "Loader", "the schema of the data set has no field");
  Bytes end;
  for (const Field& field : schema.fields) {
    EBB_REQUIRE(field.sample_shape.dims() < max_dims, "Loader", "field \"", field.name,
                "\": a sample has at most ", std::to_string(max_dims - 1),
                " dimensions, since a batch adds one");
    EBB_REQUIRE(is_plain(field.dtype), "Loader", "field \"", field.name,
                "\": batches hold plain bytes, not strings");
    for (const Field& other : schema.fields) {
      EBB_REQUIRE(&other == &field || other.name != field.name, "Loader",
                  "two fields are called \"", field.name, "\"");
    }
    const auto elements = static_cast<std::size_t>(field.sample_shape.elements());
    const Bytes sample = Bytes{size_of(field.dtype)} * elements;
    spots.push_back({field.dtype, end.count(), elements, sample.count()});
    constexpr std::size_t unit = default_align_cpu.value();
    end = Bytes{(end + sample * batch + Bytes{unit - 1}).count() / unit * unit};
  }
  slot_bytes = end.count();
}

BatchFill::BatchFill(const Where& where, const BatchLayout& layout, const ErasedDataset& dataset,
                     Scratch& scratch) noexcept
    : where_(where) {
  context_.epoch_ = where.epoch;
  context_.seq_ = where.seq;
  context_.seed_ = where.seed;
  context_.scratch_ = &scratch;
  context_.dataset_ = &dataset;
  writer_.spots_ = layout.spots;
  writer_.slot_ = where.slot;
}

bool BatchFill::next() noexcept {
  // Relaxed: only whether to go on; what a cancelled batch wrote is never read.
  if (started_ < where_.indices.size() &&
      where_.generation->load(std::memory_order_relaxed) != where_.expected) {
    return false;
  }
  if (started_ >= where_.indices.size()) {
    started_ = where_.indices.size() + 1;
    return false;
  }
  context_.index_ = where_.indices[started_];
  writer_.row_ = started_;
  ++started_;
  context_.scratch_->reset();
  where_.current->store(context_.index_, std::memory_order_relaxed);
  return true;
}

}  // namespace detail

}  // namespace ebb::inline v0
