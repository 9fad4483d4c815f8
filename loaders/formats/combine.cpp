// SPDX-License-Identifier: Apache-2.0
// Data sets made of others. Each says where a sample is, and hands every stage on to there.
#include "content_hash.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/combine.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace detail {

// What data sets made of others share. Const calls: any thread.
class CombinedDataset : public ErasedDataset {
 public:
  std::unique_ptr<ErasedLocal> make_local() const override {
    auto local = std::make_unique<Local>();
    for (const AnyDataset& part : parts_) {
      local->of_parts.push_back(part.erased().make_local());
    }
    return local;
  }
  std::string source(std::uint64_t index) const override {
    const Spot at = find(index);
    return part(at).source(at.index);
  }
  SampleOrigin origin(std::uint64_t index) const override {
    const Spot at = find(index);
    return part(at).origin(at.index);
  }
  std::int64_t length(std::uint64_t index) const override {
    const Spot at = find(index);
    return part(at).length(at.index);
  }

  void load(ErasedLocal& local, RangeFill& fill) const override {
    while (fill.next()) {
      load_one(fill.context().index(), local, fill.context(), fill.writer());
    }
  }
  void load_one(std::uint64_t index, ErasedLocal& local, const SampleContext& context,
                SampleWriter& writer) const override {
    const Spot at = find(index);
    part(at).load_one(at.index, local_of(local, at), within(context, at), writer);
  }
  void fetch(std::uint64_t index, const StageContext& context, SampleBytes& out) const override {
    const Spot at = find(index);
    if (part(at).fetches) {
      part(at).fetch(at.index, within(context, at), out);
    }
  }
  void decode(std::uint64_t index, ErasedLocal& local, const StageContext& context,
              std::span<const std::byte> bytes, SampleBytes& out) const override {
    const Spot at = find(index);
    if (part(at).has_stages) {
      part(at).decode(at.index, local_of(local, at), within(context, at), bytes, out);
    }
  }
  // Parts that load as a whole do it here, when others have stages.
  void finish(std::uint64_t index, ErasedLocal& local, const SampleContext& context,
              std::span<const std::byte> bytes, SampleWriter& writer) const override {
    const Spot at = find(index);
    const SampleContext inner = within(context, at);
    if (part(at).has_stages) {
      part(at).finish(at.index, local_of(local, at), inner, bytes, writer);
    } else {
      part(at).load_one(at.index, local_of(local, at), inner, writer);
    }
  }

 protected:
  // Where a sample is.
  struct Spot {
    std::size_t part;
    std::uint64_t index;
  };

  // Fingerprint and name are left to the others. samples: of all.
  CombinedDataset(std::vector<AnyDataset> parts, std::uint64_t samples) : parts_(std::move(parts)) {
    const auto stages = [](const AnyDataset& part) { return part.erased().has_stages; };
    const auto waits = [](const AnyDataset& part) { return part.erased().fetches; };
    const auto lengths = [](const AnyDataset& part) { return part.erased().has_lengths; };
    size = samples;
    schema = parts_.front().schema();
    has_stages = std::any_of(parts_.begin(), parts_.end(), stages);
    fetches = std::any_of(parts_.begin(), parts_.end(), waits);
    has_lengths = std::all_of(parts_.begin(), parts_.end(), lengths);
  }

  virtual Spot find(std::uint64_t index) const noexcept = 0;
  const std::vector<AnyDataset>& parts() const noexcept { return parts_; }

 private:
  struct Local final : ErasedLocal {
    std::vector<std::unique_ptr<ErasedLocal>> of_parts;
  };

  const ErasedDataset& part(const Spot& at) const noexcept { return parts_[at.part].erased(); }
  static ErasedLocal& local_of(ErasedLocal& local, const Spot& at) noexcept {
    return *static_cast<Local&>(local).of_parts[at.part];
  }
  // Returns the context as the part is to see it.
  template <class Context>
  static Context within(Context context, const Spot& at) noexcept {
    context.index_ = at.index;
    return context;
  }

  std::vector<AnyDataset> parts_;
};

}  // namespace detail

namespace {

using detail::hash_bytes;
using detail::hash_number;

class RangeSubset final : public detail::CombinedDataset {
 public:
  RangeSubset(AnyDataset data, std::uint64_t begin, std::uint64_t end)
      : CombinedDataset({std::move(data)}, end - begin), begin_(begin) {
    const AnyDataset& whole = parts().front();
    fingerprint = hash_bytes("subset", hash_number(begin, hash_number(end, whole.fingerprint())));
    name = whole.name() + "[" + std::to_string(begin) + ":" + std::to_string(end) + "]";
  }

 private:
  Spot find(std::uint64_t index) const noexcept override { return {0, begin_ + index}; }

  std::uint64_t begin_;
};

class IndexSubset final : public detail::CombinedDataset {
 public:
  IndexSubset(AnyDataset data, std::vector<std::uint64_t> indices)
      : CombinedDataset({std::move(data)}, indices.size()), indices_(std::move(indices)) {
    const AnyDataset& whole = parts().front();
    fingerprint = hash_number(indices_.size(), whole.fingerprint());
    for (const std::uint64_t index : indices_) {
      fingerprint = hash_number(index, fingerprint);
    }
    fingerprint = hash_bytes("indices", fingerprint);
    name = whole.name() + "[" + std::to_string(indices_.size()) + " of " +
           std::to_string(whole.size()) + "]";
  }

 private:
  Spot find(std::uint64_t index) const noexcept override { return {0, indices_[index]}; }

  std::vector<std::uint64_t> indices_;
};

class Concat final : public detail::CombinedDataset {
 public:
  Concat(std::vector<AnyDataset> all, std::uint64_t samples)
      : CombinedDataset(std::move(all), samples) {
    constexpr std::size_t named = 3;
    fingerprint = hash_bytes("concat", parts().size());
    name.clear();
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < parts().size(); ++i) {
      fingerprint =
          hash_number(parts()[i].size(), hash_number(parts()[i].fingerprint(), fingerprint));
      end += parts()[i].size();
      ends_.push_back(end);
      if (i < named) {
        name += (i == 0 ? "" : " + ") + parts()[i].name();
      }
    }
    if (parts().size() > named) {
      name += " + " + std::to_string(parts().size() - named) + " more";
    }
  }

 private:
  Spot find(std::uint64_t index) const noexcept override {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), index);
    return {static_cast<std::size_t>(after - ends_.begin()),
            index - (after == ends_.begin() ? 0 : *(after - 1))};
  }

  std::vector<std::uint64_t> ends_;  // of each part among all samples
};

class Transformed final : public detail::CombinedDataset {
 public:
  Transformed(const AnyDataset& data, std::string_view revision, SampleTransform transform)
      : CombinedDataset({data}, data.size()), transform_(std::move(transform)) {
    const AnyDataset& whole = parts().front();
    fingerprint = hash_bytes("transformed", hash_bytes(revision, whole.fingerprint()));
    name = whole.name();
  }

  void load_one(std::uint64_t index, detail::ErasedLocal& local, const SampleContext& context,
                SampleWriter& writer) const override {
    CombinedDataset::load_one(index, local, context, writer);
    transform_(context, writer);
  }
  void finish(std::uint64_t index, detail::ErasedLocal& local, const SampleContext& context,
              std::span<const std::byte> bytes, SampleWriter& writer) const override {
    CombinedDataset::finish(index, local, context, bytes, writer);
    transform_(context, writer);
  }

 private:
  Spot find(std::uint64_t index) const noexcept override { return {0, index}; }

  SampleTransform transform_;
};

std::string describe(const Field& field) {
  return "\"" + field.name + "\" of " + std::string(to_string(field.dtype)) +
         to_string(field.sample_shape) +
         (field.varies ? " that varies, filled up with " + std::to_string(field.pad) : "");
}

// Returns how a schema differs from the first one, or nothing.
std::string difference(const Schema& first, const Schema& other) {
  if (first.fields.size() != other.fields.size()) {
    return "it has " + std::to_string(other.fields.size()) + " fields, not " +
           std::to_string(first.fields.size());
  }
  for (std::size_t i = 0; i < first.fields.size(); ++i) {
    const Field& wanted = first.fields[i];
    const Field& field = other.fields[i];
    const bool is_same = field.name == wanted.name && field.dtype == wanted.dtype &&
                         field.sample_shape == wanted.sample_shape &&
                         field.varies == wanted.varies && field.pad == wanted.pad;
    if (!is_same) {
      return "field " + std::to_string(i) + " is " + describe(field) + ", not " + describe(wanted);
    }
  }
  return {};
}

}  // namespace

AnyDataset subset(AnyDataset data, std::uint64_t begin, std::uint64_t end) {
  EBB_REQUIRE(begin < end && end <= data.size(), "subset", "[", std::to_string(begin), ", ",
              std::to_string(end), ") is no part of the ", std::to_string(data.size()),
              " samples of ", data.name());
  return AnyDataset(std::make_shared<const RangeSubset>(std::move(data), begin, end));
}

AnyDataset subset(AnyDataset data, std::vector<std::uint64_t> indices) {
  EBB_REQUIRE(!indices.empty(), "subset", "there are no indices");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    EBB_REQUIRE(indices[i] < data.size(), "subset", "index ", std::to_string(indices[i]),
                ", at position ", std::to_string(i), ", is not in the ",
                std::to_string(data.size()), " samples of ", data.name());
  }
  return AnyDataset(std::make_shared<const IndexSubset>(std::move(data), std::move(indices)));
}

AnyDataset concat(std::vector<AnyDataset> parts) {
  EBB_REQUIRE(!parts.empty(), "concat", "there are no data sets");
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string differs = difference(parts.front().schema(), parts[i].schema());
    EBB_REQUIRE(differs.empty(), "concat", "data set ", std::to_string(i), ", ", parts[i].name(),
                ", has another schema than ", parts.front().name(), ": ", differs);
    EBB_REQUIRE(!__builtin_add_overflow(samples, parts[i].size(), &samples), "concat",
                "there are more than 2^64 samples");
  }
  return AnyDataset(std::make_shared<const Concat>(std::move(parts), samples));
}

AnyDataset transformed(const AnyDataset& data, std::string_view revision,
                       SampleTransform transform) {
  EBB_REQUIRE(transform != nullptr, "transformed", "there is no transform");
  return AnyDataset(std::make_shared<const Transformed>(data, revision, std::move(transform)));
}

}  // namespace ebb::inline v0
