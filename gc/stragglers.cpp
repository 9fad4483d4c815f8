// SPDX-License-Identifier: Apache-2.0
// Scanning a pool's cells for the storages of one owner. [gc.policy] [gc.report]
#include "stragglers.h"

#include "place_index.h"
#include "scan.h"

#include <ebb/alloc/error.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

namespace ebb::inline v0::detail {
namespace {

std::string format_birth(const Birth& birth) {
  if (birth.note.format == nullptr) {
    return {};
  }
  std::array<char, 128> text;
  const std::size_t size = birth.note.format(birth.note.bytes.data(), text.data(), text.size());
  return {text.data(), std::min(size, text.size())};
}

std::string text_or_empty(const char* text) {
  return text != nullptr ? text : "";
}

StragglerPlace first_of_place(const StorageCell& cell) {
  StragglerPlace place;
  place.place = cell.birth.place;
  place.what = format_birth(cell.birth);
  place.name = text_or_empty(cell.name.load(std::memory_order_relaxed));
  place.phase = text_or_empty(cell.phase);
  place.sequence = cell.sequence;
  place.thread = cell.thread;
  return place;
}

// "  train.cpp:12  3 x f32[64] cpu, 768 B, named "loss""
std::string describe_place(const StragglerPlace& p) {
  std::string text = "  " + std::string(p.place.file) + ":" + std::to_string(p.place.line) + "  ";
  text += p.count == 1 ? "" : std::to_string(p.count) + " x ";
  text += p.what.empty() ? "storage" : p.what;
  text += ", " + to_string(p.bytes);
  text += p.name.empty() ? "" : ", named \"" + p.name + "\"";
  return text;
}

void append_earlier(std::string& text, const StragglerPlace& p) {
  if (p.earlier_count == 0) {
    return;
  }
  text += "\n    " + std::to_string(p.earlier_count) +
          (p.earlier_count == 1 ? " earlier one (" : " earlier ones (") +
          to_string(p.earlier_bytes) + ") from this line still alive, the oldest for " +
          std::to_string(p.age) + (p.age == 1 ? " iteration" : " iterations");
}

void append_traces(std::string& text, const std::vector<StragglerTrace>& traces) {
  for (const StragglerTrace& trace : traces) {
    if (!trace.frames.empty()) {
      text += "\n    number " + std::to_string(trace.sequence) + " was made in";
    }
    for (const std::string& frame : trace.frames) {
      text += "\n      " + frame;
    }
  }
}

// How many of one place's storages are traced when they straggle again.
constexpr std::size_t traced_per_place = 4;

// Storages by place; the most bytes first once sorted.
class Places {
 public:
  // opener: whose storages may have been traced.
  explicit Places(std::uint64_t opener) noexcept : opener_(opener) {}

  void add(const StorageCell& cell) {
    StragglerPlace* const known = index_.find(places_, cell.birth.place);
    StragglerPlace& place = known != nullptr ? *known : index_.add(places_, first_of_place(cell));
    ++place.count;
    place.bytes += cell.bytes;
    if (place.holder.empty() && cell.holders.load(std::memory_order_relaxed) != 0) {
      place.holder = text_or_empty(cell.holder.load(std::memory_order_relaxed));
    }
    // Other threads number what they make anew, and other owners did.
    const bool is_own = cell.thread == opener_ && !cell.has(storage_moved);
    if (is_own && place.traces.size() < traced_per_place) {
      place.traces.push_back({cell.sequence, {}});
    }
  }
  std::vector<StragglerPlace> sorted() {
    std::sort(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.sequence < b.sequence;
    });
    return std::move(places_);
  }

 private:
  const std::uint64_t opener_;
  std::vector<StragglerPlace> places_;
  PlaceIndex index_;
};

}  // namespace

void tally_stragglers(OwnerRecord& record) {
  std::vector<Tally>& tallies = record.tallies;
  PlaceIndex& index = record.tally_index;
  tallies.clear();
  index.fill_in(tallies);
  const std::lock_guard lock(record.domain->impl().replace_mutex);
  for_each_owned(record, [&](const StorageCell& cell) {
    Tally* const known = index.find(tallies, cell.birth.place);
    Tally& tally = known != nullptr ? *known : index.add(tallies, Tally{cell.birth.place, 0, {}});
    ++tally.count;
    tally.bytes += cell.bytes;
  });
}

std::vector<StragglerPlace> find_stragglers(const OwnerRecord& record) {
  Places places(record.opener.load(std::memory_order_relaxed));
  const std::lock_guard lock(record.domain->impl().replace_mutex);
  for_each_owned(record, [&places](const StorageCell& cell) { places.add(cell); });
  return places.sorted();
}

void find_earlier(const OwnerRecord& record, std::vector<StragglerPlace>& places) {
  Domain::Impl& domain = record.domain->impl();
  PlaceIndex index;
  index.make_room(places);
  const std::lock_guard lock(domain.replace_mutex);
  for_each_owned(*domain.long_lived, [&](const StorageCell& cell) {
    const std::int64_t counted = cell.adopted.load(std::memory_order_relaxed);
    if (counted == 0) {
      return;
    }
    if (StragglerPlace* const p = index.find(places, cell.birth.place)) {
      ++p->earlier_count;
      p->earlier_bytes += Bytes{static_cast<std::size_t>(counted - 1)};
      p->age = std::max(p->age, record.iteration - std::min(record.iteration, cell.iteration));
    }
  });
}

std::vector<StragglerPlace> find_live(const Domain::Impl& domain, const PoolHandle& pool) {
  Places places(no_thread);
  const std::lock_guard lock(domain.replace_mutex);
  for_each_live(pool, 0, nullptr, [&places](const StorageCell& cell) { places.add(cell); });
  return places.sorted();
}

std::vector<StragglerPlace> find_live(const Domain::Impl& domain) {
  Places places(no_thread);
  const auto add = [&places](const StorageCell& cell) { places.add(cell); };
  const std::lock_guard lock(domain.replace_mutex);
  for_each_live(domain.long_lived->pool, 0, nullptr, add);
  domain.for_each_device_pool(
      [&](const PoolHandle& pool) { for_each_live(pool, 0, nullptr, add); });
  return places.sorted();
}

namespace {

std::string describe_holders(const std::vector<StragglerPlace>& places) {
  constexpr std::size_t shown = 5;
  std::string text;
  std::size_t line = 0;
  for (const StragglerPlace& p : places) {
    if (line++ == shown) {
      break;
    }
    text += (text.empty() ? "" : "\n") + describe_place(p);
  }
  return text;
}

}  // namespace

void fail_for_memory(const Refusal& refusal, const Domain::Impl& domain, const PoolHandle& pool,
                     const Heap& heap) {
  OutOfMemoryInfo info = heap.explain(refusal.asked);
  info.holders = describe_holders(find_live(domain, pool));
  info.place = refusal.place;
  info.device = refusal.device;
  throw OutOfMemory(refusal.function, std::move(info));
}

void fail_for_memory(const Refusal& refusal, const OwnerRecord& record, const Heap& heap) {
  fail_for_memory(refusal, record.domain->impl(), record.pool, heap);
}

void append_jobs(std::string& text, const std::vector<JobPlace>& places) {
  for (const JobPlace& p : places) {
    text += "\n  " + std::string(p.place.file) + ":" + std::to_string(p.place.line) + "  ";
    text += p.count == 1 ? "a job" : std::to_string(p.count) + " jobs";
    text += p.count == 1 ? " that was started here has not ended"
                         : " that were started here have not ended";
  }
}

void append_places(std::string& text, const std::vector<StragglerPlace>& places) {
  constexpr std::size_t shown = 20;
  for (std::size_t i = 0; i < std::min(places.size(), shown); ++i) {
    const StragglerPlace& p = places[i];
    text += "\n" + describe_place(p);
    text += p.phase.empty() ? "" : ", made in phase \"" + p.phase + "\"";
    text += p.holder.empty() ? "" : ", held by " + p.holder;
    text += ", number " + std::to_string(p.sequence) + " of its iteration, made by thread " +
            std::to_string(p.thread);
    if (p.streak > 1) {
      text += ", alive at " + std::to_string(p.streak) + " closes in a row";
    }
    append_earlier(text, p);
    append_traces(text, p.traces);
  }
  if (places.size() > shown) {
    text += "\n  and " + std::to_string(places.size() - shown) + " more places";
  }
}

std::string describe_total(const std::vector<StragglerPlace>& places) {
  std::uint64_t count = 0;
  Bytes bytes;
  for (const StragglerPlace& place : places) {
    count += place.count;
    bytes += place.bytes;
  }
  return std::to_string(count) + (count == 1 ? " storage (" : " storages (") + to_string(bytes) +
         ")";
}

}  // namespace ebb::inline v0::detail
