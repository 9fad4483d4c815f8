// SPDX-License-Identifier: Apache-2.0
// What a data set is, for those who write one: it says how large it is, what a sample looks like,
// and writes one sample straight into a batch. load is called by several threads at once.
#pragma once

#include <ebb/loaders/error.h>
#include <ebb/runtime/dtype.h>
#include <ebb/runtime/random.h>
#include <ebb/runtime/shape.h>
#include <ebb/runtime/tensor.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// Where the fields of a batch lie in its slot.
struct FieldSpot {
  DType dtype;
  std::size_t offset;  // of the first sample, a multiple of 64
  std::size_t sample_elements;
  std::size_t sample_bytes;
};

class ErasedDataset;
class Scratch;
class BatchFill;

[[noreturn]] void wrong_field(std::size_t field, std::size_t fields, const FieldSpot* spot,
                              DType asked);

}  // namespace detail

// What each stage of loading knows of its sample. Valid during that call.
class StageContext {
 public:
  std::uint64_t index() const noexcept { return index_; }

  // Returns uninitialised bytes, aligned to 64, from the loader's own memory; each call returns
  // others. Throws OutOfMemory.
  std::span<std::byte> scratch(Bytes bytes) const;
  // Throws LoadError for this sample. offset is in the sample's source.
  [[noreturn]] void fail(LoadErrorKind kind, std::string_view stage, std::uint64_t offset,
                         std::string_view text) const;

 private:
  friend class detail::BatchFill;
  friend class SampleContext;
  StageContext() = default;

  std::uint64_t index_ = 0;
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
  // a batch does not depend on who fills it. [rt.random]
  Random random(std::string_view name = "") const noexcept {
    return Random(seed_, name, epoch_, index_);
  }

 private:
  friend class detail::BatchFill;
  SampleContext() = default;
};

// Where fetch and decode put what they make of a sample. Valid during that call.
class SampleBytes {
 public:
  // Returns room, aligned to 64 and uninitialised: all of it must be written. One call for each
  // sample. Throws OutOfMemory, and std::logic_error for a second call.
  std::span<std::byte> allocate(Bytes bytes);

 private:
  friend class detail::BatchFill;
  explicit SampleBytes(const StageContext& context) noexcept : context_(context) {}

  const StageContext& context_;
  std::span<std::byte> bytes_;
  bool is_allocated_ = false;
};

// The place of one sample in its batch. Every element must be written: the bytes are those of an
// earlier batch. Valid during one call of load.
class SampleWriter {
 public:
  // Returns the elements of a field. Throws std::invalid_argument when T is not its dtype's type.
  template <class T>
  std::span<T> field(std::size_t i) const {
    if (i >= spots_.size() || spots_[i].dtype != dtype_of<T>) [[unlikely]] {
      detail::wrong_field(i, spots_.size(), i < spots_.size() ? &spots_[i] : nullptr, dtype_of<T>);
    }
    const detail::FieldSpot& spot = spots_[i];
    return {reinterpret_cast<T*>(slot_ + spot.offset + row_ * spot.sample_bytes),
            spot.sample_elements};
  }
  std::size_t fields() const noexcept { return spots_.size(); }

 private:
  friend class detail::BatchFill;
  SampleWriter() = default;

  std::span<const detail::FieldSpot> spots_;
  std::byte* slot_ = nullptr;
  std::size_t row_ = 0;
};

namespace detail {

template <class D>
concept DescribesSamples = requires(const D dataset) {
  { dataset.size() } -> std::convertible_to<std::uint64_t>;
  { dataset.schema() } -> std::convertible_to<Schema>;
  { dataset.fingerprint() } -> std::convertible_to<std::uint64_t>;
  requires std::default_initializable<typename D::Local>;
};

template <class D>
concept LoadsWhole = DescribesSamples<D> &&
    requires(const D dataset, std::uint64_t index, typename D::Local& local,
             const SampleContext& context, SampleWriter& writer) {
  dataset.load(index, local, context, writer);
};

template <class D>
concept LoadsInStages = DescribesSamples<D> &&
    requires(const D dataset, std::uint64_t index, typename D::Local& local,
             const StageContext& stage, const SampleContext& context,
             std::span<const std::byte> bytes, SampleBytes& out, SampleWriter& writer) {
  dataset.decode(index, local, stage, bytes, out);
  dataset.finish(index, local, context, bytes, writer);
};

template <class D>
concept Fetches = requires(const D dataset, std::uint64_t index, const StageContext& stage,
                           SampleBytes& out) {
  dataset.fetch(index, stage, out);
};

}  // namespace detail

// A data set. Local is what one worker keeps between samples (decoder, buffers; it may be an empty
// struct). fingerprint tells data sets apart: a saved position is refused by another one. A sample
// is loaded as a whole or in stages; all of them are const, are called by several threads at once,
// may throw, and must give the same bytes for the same (index, context).
//
//   load    writes sample index into its batch; or
//   fetch   optional: reads its bytes from a file or the like; threads of their own wait for those
//   decode  makes of them (of nothing, without fetch) what may be cached: it knows no random
//   numbers finish  writes it into the batch, with what differs from epoch to epoch
//
// Optional: std::string name() const; std::string source(index) const, the sample's path;
// std::int64_t length(index) const, where the schema has fields that vary.
template <class D>
concept Dataset = detail::LoadsWhole<D> || detail::LoadsInStages<D>;

namespace detail {

struct BatchLayout {
  Schema schema;
  std::vector<FieldSpot> spots;
  std::size_t slot_bytes = 0;

  // Throws std::invalid_argument when the schema has no field or the sizes overflow.
  BatchLayout(const Schema& schema, std::size_t batch);
};

// A walk over the samples of one batch. Used by one thread.
class BatchFill {
 public:
  // What the samples of a batch share.
  struct Where {
    std::span<const std::uint64_t> indices;
    std::byte* slot;
    std::uint64_t epoch, seq, seed;
    const std::atomic<std::uint64_t>* generation;  // the walk ends when it is no longer expected
    std::uint64_t expected;
    std::atomic<std::uint64_t>* current;  // told the index of each sample, for reports
  };
  BatchFill(const Where& where, const BatchLayout& layout, const ErasedDataset& dataset,
            Scratch& scratch) noexcept;

  // Goes to the next sample. Returns false after the last one, or when the batch is cancelled.
  bool next() noexcept;
  const SampleContext& context() const noexcept { return context_; }
  SampleWriter& writer() noexcept { return writer_; }
  // Runs one stage of the sample, and returns the bytes it made.
  template <class Stage>
  std::span<const std::byte> make(Stage stage) const {
    SampleBytes out(context_);
    stage(static_cast<const StageContext&>(context_), out);
    return out.bytes_;
  }
  // Returns whether the walk came to its end.
  bool complete() const noexcept { return started_ > where_.indices.size(); }

 private:
  Where where_;
  std::size_t started_ = 0;
  SampleContext context_;
  SampleWriter writer_;
};

class ErasedLocal {
 public:
  ErasedLocal() = default;
  ErasedLocal(const ErasedLocal&) = delete;
  ErasedLocal& operator=(const ErasedLocal&) = delete;
  ErasedLocal(ErasedLocal&&) = delete;
  ErasedLocal& operator=(ErasedLocal&&) = delete;
  virtual ~ErasedLocal() = default;
};

// The interface behind AnyDataset: one virtual call per batch.
class ErasedDataset {
 public:
  ErasedDataset() = default;
  ErasedDataset(const ErasedDataset&) = delete;
  ErasedDataset& operator=(const ErasedDataset&) = delete;
  ErasedDataset(ErasedDataset&&) = delete;
  ErasedDataset& operator=(ErasedDataset&&) = delete;
  virtual ~ErasedDataset() = default;

  virtual std::unique_ptr<ErasedLocal> make_local() const = 0;
  virtual void load(ErasedLocal& local, BatchFill& fill) const = 0;
  virtual std::string source(std::uint64_t index) const = 0;

  std::uint64_t size = 0;
  std::uint64_t fingerprint = 0;
  Schema schema = {};
  std::string name = "data set";
};

template <Dataset D>
class DatasetModel final : public ErasedDataset {
 public:
  explicit DatasetModel(D dataset) : dataset_(std::move(dataset)) {
    size = dataset_.size();
    fingerprint = dataset_.fingerprint();
    schema = dataset_.schema();
    if constexpr (requires { std::string(dataset_.name()); }) {
      name = std::string(dataset_.name());
    }
  }

  std::unique_ptr<ErasedLocal> make_local() const override { return std::make_unique<Local>(); }
  void load(ErasedLocal& local, BatchFill& fill) const override {
    typename D::Local& mine = static_cast<Local&>(local).value;
    while (fill.next()) {
      const std::uint64_t index = fill.context().index();
      if constexpr (LoadsWhole<D>) {
        dataset_.load(index, mine, fill.context(), fill.writer());
      } else {
        std::span<const std::byte> fetched;
        if constexpr (Fetches<D>) {
          fetched = fill.make([&](const StageContext& context, SampleBytes& out) {
            dataset_.fetch(index, context, out);
          });
        }
        const auto decoded = fill.make([&](const StageContext& context, SampleBytes& out) {
          dataset_.decode(index, mine, context, fetched, out);
        });
        dataset_.finish(index, mine, fill.context(), decoded, fill.writer());
      }
    }
  }
  std::string source(std::uint64_t index) const override {
    if constexpr (requires { std::string(dataset_.source(index)); }) {
      return std::string(dataset_.source(index));
    } else {
      static_cast<void>(index);
      return {};
    }
  }

 private:
  struct Local final : ErasedLocal {
    typename D::Local value{};
  };

  const D dataset_;
};

}  // namespace detail

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

  std::uint64_t size() const noexcept { return erased_->size; }
  const Schema& schema() const noexcept { return erased_->schema; }
  std::uint64_t fingerprint() const noexcept { return erased_->fingerprint; }
  const std::string& name() const noexcept { return erased_->name; }

  const detail::ErasedDataset& erased() const noexcept { return *erased_; }

 private:
  std::shared_ptr<const detail::ErasedDataset> erased_;
};

}  // namespace ebb::inline v0
