// SPDX-License-Identifier: Apache-2.0
// What is behind AnyDataset: the concepts of a data set, a walk over samples, and one interface for
// all data sets. Not for users.
#pragma once

#include <ebb/loaders/sample.h>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ebb::inline v0::detail {

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

template <class D>
concept HasLengths = requires(const D dataset, std::uint64_t index) {
  { dataset.length(index) } -> std::convertible_to<std::int64_t>;
};

// Some samples of one batch, one after the other. Used by one thread.
class RangeFill {
 public:
  struct Where {
    std::span<const std::uint64_t> indices;  // of the samples
    std::span<const std::int64_t> lengths;   // the same; empty where no field varies
    std::size_t row;                         // of the first one in the batch
    std::byte* slot;
    std::span<const FieldSpot> spots;
    std::uint64_t epoch, seq, seed;
    const std::atomic<std::uint64_t>* generation;  // the walk ends when it is no longer expected
    std::uint64_t expected;
    std::atomic<std::uint64_t>* current;  // told the index of each sample, for reports
  };
  RangeFill(const Where& where, const ErasedDataset& dataset, Scratch& scratch) noexcept;

  // Goes to the next sample. Returns false after the last one, or when the batch is cancelled.
  bool next() noexcept;
  // Has the sample be another one, in its place.
  void replace_by(std::uint64_t index, std::int64_t length) noexcept;
  // Of the sample, among those of this walk.
  std::size_t position() const noexcept { return started_ - 1; }
  const SampleContext& context() const noexcept { return context_; }
  SampleWriter& writer() noexcept { return writer_; }
  // Returns whether the walk came to its end.
  bool complete() const noexcept { return started_ > where_.indices.size(); }

 private:
  void begin(std::uint64_t index) noexcept;

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

// Which sample of which data set, for messages.
struct SampleOrigin {
  std::string dataset;
  std::uint64_t index;
  std::string source;
};

// A data set either loads whole ranges, or has stages, sample by sample; the other functions throw
// std::logic_error. index is the sample's in this data set, whatever the context says.
class ErasedDataset {
 public:
  ErasedDataset() = default;
  ErasedDataset(const ErasedDataset&) = delete;
  ErasedDataset& operator=(const ErasedDataset&) = delete;
  ErasedDataset(ErasedDataset&&) = delete;
  ErasedDataset& operator=(ErasedDataset&&) = delete;
  virtual ~ErasedDataset() = default;

  virtual std::unique_ptr<ErasedLocal> make_local() const = 0;
  virtual std::string source(std::uint64_t index) const = 0;
  // Of a part, where it has some.
  virtual SampleOrigin origin(std::uint64_t index) const { return {name, index, source(index)}; }
  virtual std::int64_t length(std::uint64_t index) const = 0;
  // Goes on where fill is, to its end.
  virtual void load(ErasedLocal& local, RangeFill& fill) const = 0;
  virtual void load_one(std::uint64_t index, ErasedLocal& local, const SampleContext& context,
                        SampleWriter& writer) const = 0;
  virtual void fetch(std::uint64_t index, const StageContext& context, SampleBytes& out) const = 0;
  virtual void decode(std::uint64_t index, ErasedLocal& local, const StageContext& context,
                      std::span<const std::byte> bytes, SampleBytes& out) const = 0;
  virtual void finish(std::uint64_t index, ErasedLocal& local, const SampleContext& context,
                      std::span<const std::byte> bytes, SampleWriter& writer) const = 0;

  std::uint64_t size = 0;
  std::uint64_t fingerprint = 0;
  Schema schema = {};
  std::string name = "data set";
  bool has_stages = false;
  bool fetches = false;
  bool has_lengths = false;
};

[[noreturn]] void no_such_stage(const std::string& dataset, const char* stage);

template <class D>
class DatasetModel final : public ErasedDataset {
 public:
  explicit DatasetModel(D dataset) : dataset_(std::move(dataset)) {
    size = dataset_.size();
    fingerprint = dataset_.fingerprint();
    schema = dataset_.schema();
    has_stages = !LoadsWhole<D>;
    fetches = has_stages && Fetches<D>;
    has_lengths = HasLengths<D>;
    if constexpr (requires { std::string(dataset_.name()); }) {
      name = std::string(dataset_.name());
    }
  }

  std::unique_ptr<ErasedLocal> make_local() const override { return std::make_unique<Local>(); }
  std::string source([[maybe_unused]] std::uint64_t index) const override {
    if constexpr (requires { std::string(dataset_.source(index)); }) {
      return std::string(dataset_.source(index));
    } else {
      return {};
    }
  }
  std::int64_t length([[maybe_unused]] std::uint64_t index) const override {
    if constexpr (HasLengths<D>) {
      return dataset_.length(index);
    } else {
      no_such_stage(name, "length");
    }
  }
  void load(ErasedLocal& local, RangeFill& fill) const override {
    while (fill.next()) {
      load_one(fill.context().index(), local, fill.context(), fill.writer());
    }
  }
  void load_one([[maybe_unused]] std::uint64_t index, [[maybe_unused]] ErasedLocal& local,
                [[maybe_unused]] const SampleContext& context,
                [[maybe_unused]] SampleWriter& writer) const override {
    if constexpr (LoadsWhole<D>) {
      dataset_.load(index, mine(local), context, writer);
    } else {
      no_such_stage(name, "load");
    }
  }
  void fetch([[maybe_unused]] std::uint64_t index, [[maybe_unused]] const StageContext& context,
             [[maybe_unused]] SampleBytes& out) const override {
    if constexpr (Fetches<D>) {
      dataset_.fetch(index, context, out);
    } else {
      no_such_stage(name, "fetch");
    }
  }
  void decode([[maybe_unused]] std::uint64_t index, [[maybe_unused]] ErasedLocal& local,
              [[maybe_unused]] const StageContext& context,
              [[maybe_unused]] std::span<const std::byte> bytes,
              [[maybe_unused]] SampleBytes& out) const override {
    if constexpr (LoadsInStages<D>) {
      dataset_.decode(index, mine(local), context, bytes, out);
    } else {
      no_such_stage(name, "decode");
    }
  }
  void finish([[maybe_unused]] std::uint64_t index, [[maybe_unused]] ErasedLocal& local,
              [[maybe_unused]] const SampleContext& context,
              [[maybe_unused]] std::span<const std::byte> bytes,
              [[maybe_unused]] SampleWriter& writer) const override {
    if constexpr (LoadsInStages<D>) {
      dataset_.finish(index, mine(local), context, bytes, writer);
    } else {
      no_such_stage(name, "finish");
    }
  }

 private:
  struct Local final : ErasedLocal {
    typename D::Local value{};
  };
  static typename D::Local& mine(ErasedLocal& local) { return static_cast<Local&>(local).value; }

  const D dataset_;
};

}  // namespace ebb::inline v0::detail
