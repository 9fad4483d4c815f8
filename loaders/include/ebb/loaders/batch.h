// SPDX-License-Identifier: Apache-2.0
// One batch: a lease of a loader's slot. Made by Loader::next; one thread at a time, but it and its
// tensors may be dropped on any thread, and may outlive the loader and the runtime.
#pragma once

#include <ebb/loaders/dataset.h>
#include <ebb/runtime/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace ebb::inline v0 {

namespace detail {
struct BatchLayout;
}  // namespace detail

// Move-only. Its tensors are const views of the loader's memory, which no iteration counts. The
// slot is given back when the batch and the last view of it are gone. [load.slots]
class Batch {
 public:
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() = default;

  // Returns the first n fields, for auto [x, y] = batch.fields<2>(). Throws std::invalid_argument
  // when the data set has fewer.
  template <std::size_t n>
  std::array<Tensor, n> fields() const {
    require_fields(n);
    return [this]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<Tensor, n>{field(i)...};
    }
    (std::make_index_sequence<n>());
  }
  // Returns one field: shape [size(), sample_shape...], of one that varies [size(), length(), ...].
  // Throws std::invalid_argument when there is
  // none such.
  Tensor field(std::size_t i) const;
  Tensor field(std::string_view name) const;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(indices_.size()); }
  // Returns how long the fields are that vary: the longest sample's length, rounded up.
  std::int64_t length() const noexcept { return longest_; }
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t seq() const noexcept { return seq_; }
  // Returns which samples these are. Valid as long as the batch.
  std::span<const std::uint64_t> indices() const noexcept { return indices_; }

 private:
  friend class Loader;
  Batch() = default;
  void require_fields(std::size_t n) const;

  Storage lease_;
  Storage on_device_;  // what the tensors view, where that is not the slot
  const detail::BatchLayout* layout_ = nullptr;  // lives as long as the lease
  std::span<const detail::FieldSpot> spots_;     // in the slot
  std::int64_t longest_ = 0;
  std::span<const std::uint64_t> indices_;  // in the slot
  std::uint64_t epoch_ = 0;
  std::uint64_t seq_ = 0;
};

}  // namespace ebb::inline v0
