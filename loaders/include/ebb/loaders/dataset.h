// SPDX-License-Identifier: Apache-2.0
// What a data set is, for those who write one: it says how large it is and what a sample looks
// like, and writes one sample straight into a batch.
#pragma once

#include <ebb/loaders/erased_dataset.h>
#include <ebb/loaders/sample.h>
#include <ebb/runtime/tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ebb::inline v0 {

// A data set. Local is what one worker keeps between samples (decoder, buffers; it may be an empty
// struct). fingerprint tells data sets apart: a saved position is refused by another one. A sample
// is loaded as a whole, by load, or in stages. These functions are const, are called by several
// threads at once, may throw, and must give the same bytes for the same (index, context).
//
// - load writes sample index into its batch.
// - fetch, optional, reads its bytes from a file or the like. Threads of their own wait for those.
// - decode makes of these bytes, or of none, what may be cached. It knows no random numbers.
// - finish writes what was decoded into the batch, with all that differs from epoch to epoch.
//
// Optional: std::string name() const; std::string source(index) const, the sample's path;
// std::int64_t length(index) const, where the schema has fields that vary.
template <class D>
concept Dataset = detail::LoadsWhole<D> || detail::LoadsInStages<D>;

// Any data set, as a value: copies share one const object. Converts from every Dataset. Any thread.
//
//   struct Squares {
//     struct Local {};
//     std::uint64_t size() const { return 100; }
//     std::uint64_t fingerprint() const { return 1; }
//     ebb::Schema schema() const { return {{{"x", ebb::DType::f32, {1}}}}; }
//     void load(std::uint64_t i, Local&, const ebb::SampleContext&, ebb::SampleWriter& out) const {
//       out.field<float>(0)[0] = static_cast<float>(i * i);
//     }
//   };
//   ebb::Loader loader(rt, Squares{}, {.batch = 10});
class AnyDataset {
 public:
  template <Dataset D>
  AnyDataset(D dataset)  // NOLINT(google-explicit-constructor): a data set is one
      : erased_(std::make_shared<const detail::DatasetModel<D>>(std::move(dataset))) {}

  // For ebb's own.
  explicit AnyDataset(std::shared_ptr<const detail::ErasedDataset> erased) noexcept
      : erased_(std::move(erased)) {}

  std::uint64_t size() const noexcept { return erased_->size; }
  const Schema& schema() const noexcept { return erased_->schema; }
  std::uint64_t fingerprint() const noexcept { return erased_->fingerprint; }
  const std::string& name() const noexcept { return erased_->name; }

  const detail::ErasedDataset& erased() const noexcept { return *erased_; }

 private:
  std::shared_ptr<const detail::ErasedDataset> erased_;
};

}  // namespace ebb::inline v0
