// SPDX-License-Identifier: Apache-2.0
// What a sample is, and what those who load one get: its context, room for its bytes, and its place
// in the batch. For who writes a data set.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/error.h>
#include <ebb/runtime/dtype.h>
#include <ebb/runtime/random.h>
#include <ebb/runtime/shape.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

// One value of a sample. A batch's tensor has the shape [batch, sample_shape...].
struct Field {
  std::string name;
  DType dtype = DType::f32;
  Shape sample_shape = {};
  // Whether the first dimension of sample_shape is the longest that a sample may have there. The
  // data set has length(index) then; a batch is as long as its longest sample, and the others are
  // filled up with pad.
  bool varies = false;
  double pad = 0;
};

struct Schema {
  std::vector<Field> fields;
};

namespace detail {

// Where a field of a batch lies in its slot.
struct FieldSpot {
  DType dtype;
  bool varies;
  std::size_t offset;         // of the first sample, a multiple of 64
  std::size_t row_bytes;      // from one sample to the next
  std::size_t row_elements;   // of a sample
  std::size_t unit_elements;  // of one step of the dimension that varies
};

class CombinedDataset;
class ErasedDataset;
class RangeFill;
class Scratch;
class StageRoom;

[[noreturn]] void wrong_field(std::size_t field, std::size_t fields, const FieldSpot* spot,
                              DType asked);

}  // namespace detail

// What each stage of loading knows of its sample. Valid during that call.
class StageContext {
 public:
  // Of the sample in its data set, also where that is a part of the loader's.
  std::uint64_t index() const noexcept { return index_; }

  // Returns uninitialised bytes, aligned to 64, from the loader's own memory; each call returns
  // others. Throws OutOfMemory.
  std::span<std::byte> scratch(Bytes bytes) const;
  // Throws LoadError for this sample. offset is in the sample's source.
  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string_view text) const;

 private:
  friend class detail::CombinedDataset;
  friend class detail::RangeFill;
  friend class SampleContext;
  StageContext() = default;

  std::uint64_t index_ = 0;
  std::uint64_t key_ = 0;  // the sample's index in the loader's data set, which dataset_ is
  std::uint64_t epoch_ = 0;
  std::uint64_t seq_ = 0;
  std::uint64_t seed_ = 0;
  detail::Scratch* scratch_ = nullptr;
  const detail::ErasedDataset* dataset_ = nullptr;
};

// The same with what may differ each time that the sample is asked for: of load and finish only.
class SampleContext : public StageContext {
 public:
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t seq() const noexcept { return seq_; }  // of the batch in its epoch
  std::uint64_t seed() const noexcept { return seed_; }

  // Returns the random numbers of (seed, epoch, this sample, name): use no others in load, so that
  // a batch does not depend on who fills it. In a subset or a part of several data sets, they are
  // those of the place there: a sample that is in it twice gets others each time. [rt.random]
  Random random(std::string_view name = "") const noexcept {
    return Random(seed_, name, epoch_, key_);
  }

 private:
  friend class detail::CombinedDataset;
  friend class detail::RangeFill;
  SampleContext() = default;
};

// Where fetch and decode put what they make of a sample. Valid during that call.
class SampleBytes {
 public:
  explicit SampleBytes(detail::StageRoom& room) noexcept : room_(&room) {}
  // Returns room, aligned to 64 and uninitialised: all of it must be written. One call for each
  // sample. Throws OutOfMemory, and std::logic_error for a second call.
  std::span<std::byte> allocate(Bytes bytes);
  // Returns what was allocated.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  detail::StageRoom* room_;  // null once it was asked
  std::span<std::byte> bytes_;
};

// The place of one sample in its batch. Every element must be written: the bytes are those of an
// earlier batch. Valid during one call of load or finish.
class SampleWriter {
 public:
  // Returns the elements of a field; of one that varies, as many as the sample has. Throws
  // std::invalid_argument when T is not its dtype's type.
  template <class T>
  std::span<T> field(std::size_t i) const {
    if (i >= spots_.size() || spots_[i].dtype != dtype_of<T>) [[unlikely]] {
      detail::wrong_field(i, spots_.size(), i < spots_.size() ? &spots_[i] : nullptr, dtype_of<T>);
    }
    const detail::FieldSpot& spot = spots_[i];
    return {reinterpret_cast<T*>(slot_ + spot.offset + row_ * spot.row_bytes),
            spot.varies ? length_ * spot.unit_elements : spot.row_elements};
  }
  std::size_t fields() const noexcept { return spots_.size(); }

 private:
  friend class detail::RangeFill;
  SampleWriter() = default;

  std::span<const detail::FieldSpot> spots_;
  std::byte* slot_ = nullptr;
  std::size_t row_ = 0;
  std::size_t length_ = 0;
};

}  // namespace ebb::inline v0
