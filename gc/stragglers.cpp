// SPDX-License-Identifier: Apache-2.0
// Scanning a pool's cells for the storages of one owner. [gc.policy] [gc.report]
#include "stragglers.h"

#include "domain_impl.h"
#include "slot.h"
#include "storage_cell.h"

#include <ebb/alloc/error.h>

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <string_view>
#include <utility>

namespace ebb::inline v0::detail {
namespace {

// Calls visit(cell) for each live storage of pool, or of those charged to record if that is not
// null; the cell is pinned meanwhile.
template <class Visit>
void for_each_live(const PoolHandle& pool, const OwnerRecord* record, Visit visit) {
  struct Context {
    const OwnerRecord* record;
    Visit* visit;
    std::exception_ptr error;  // no exception crosses the pool's walk
  } context{record, &visit, nullptr};
  pool.for_each_cell(
      [](void* opaque, Cell* cell) {
        auto& c = *static_cast<Context*>(opaque);
        auto& storage = *static_cast<StorageCell*>(static_cast<StorageHead*>(cell));
        if (c.error != nullptr || !storage.owner.pin(c.record)) {
          return;
        }
        try {
          (*c.visit)(storage);
        } catch (...) {
          c.error = std::current_exception();
        }
        storage.unpin();
      },
      &context);
  if (context.error != nullptr) {
    std::rethrow_exception(context.error);
  }
}

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

bool same_place(const Place& a, const Place& b) {
  return a.line == b.line && std::string_view(a.file) == b.file;
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

// Storages by place; the most bytes first once sorted.
class Places {
 public:
  void add(const StorageCell& cell) {
    auto found = std::find_if(places_.begin(), places_.end(), [&](const StragglerPlace& p) {
      return same_place(p.place, cell.birth.place);
    });
    if (found == places_.end()) {
      places_.push_back(first_of_place(cell));
      found = std::prev(places_.end());
    }
    ++found->count;
    found->bytes += cell.bytes;
  }
  std::vector<StragglerPlace> sorted() {
    std::sort(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.sequence < b.sequence;
    });
    return std::move(places_);
  }

 private:
  std::vector<StragglerPlace> places_;
};

}  // namespace

std::vector<StragglerPlace> find_stragglers(const OwnerRecord& record) {
  Places places;
  const std::lock_guard lock(record.domain->impl().replace_mutex);
  for_each_live(record.pool, &record, [&](const StorageCell& cell) { places.add(cell); });
  return places.sorted();
}

std::string describe_holders(const OwnerRecord& record) {
  constexpr std::size_t shown = 5;
  Places places;
  const std::lock_guard lock(record.domain->impl().replace_mutex);
  for_each_live(record.pool, nullptr, [&](const StorageCell& cell) { places.add(cell); });
  std::string text;
  std::size_t line = 0;
  for (const StragglerPlace& p : places.sorted()) {
    if (line++ == shown) {
      break;
    }
    text += (text.empty() ? "" : "\n") + describe_place(p);
  }
  return text;
}

void fail_for_memory(const char* function, const OwnerRecord& record, const Heap& heap,
                     Bytes asked) {
  OutOfMemoryInfo info = heap.explain(asked);
  info.holders = describe_holders(record);
  throw OutOfMemory(function, std::move(info));
}

std::uint64_t adopt_stragglers(OwnerRecord& record) noexcept {
  Domain::Impl& impl = record.domain->impl();
  OwnerRecord& runtime = *impl.long_lived;
  const std::uint64_t thread = this_thread_number();
  std::uint64_t adopted = 0;
  const std::lock_guard lock(impl.replace_mutex);
  for_each_live(record.pool, &record, [&](StorageCell& cell) {
    const std::int64_t bytes = signed_bytes(cell.bytes);
    // First the new count, then the word, then the old count: no reader sees too little.
    runtime.add(bytes, thread);
    impl.adopted_live.fetch_add(1, std::memory_order_relaxed);
    impl.adopted_bytes.fetch_add(bytes, std::memory_order_relaxed);
    cell.adopted.store(true, std::memory_order_release);
    if (cell.owner.transfer_from(record, runtime)) {
      record.subtract(bytes, thread);
      ++adopted;
      return;
    }
    runtime.subtract(bytes, thread);
    if (cell.adopted.exchange(false, std::memory_order_acq_rel)) {
      impl.adopted_live.fetch_sub(1, std::memory_order_relaxed);
      impl.adopted_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
  });
  return adopted;
}

void append_places(std::string& text, const std::vector<StragglerPlace>& places) {
  constexpr std::size_t shown = 20;
  for (std::size_t i = 0; i < std::min(places.size(), shown); ++i) {
    const StragglerPlace& p = places[i];
    text += "\n" + describe_place(p);
    text += p.phase.empty() ? "" : ", made in phase \"" + p.phase + "\"";
    text += ", number " + std::to_string(p.sequence) + " of its iteration, made by thread " +
            std::to_string(p.thread);
    if (p.streak > 1) {
      text += ", alive at " + std::to_string(p.streak) + " closes in a row";
    }
  }
  if (places.size() > shown) {
    text += "\n  and " + std::to_string(places.size() - shown) + " more places";
  }
}

std::string describe_live(const OwnerRecord& record) {
  const std::vector<StragglerPlace> places = find_stragglers(record);
  std::uint64_t count = 0;
  Bytes bytes;
  for (const StragglerPlace& place : places) {
    count += place.count;
    bytes += place.bytes;
  }
  std::string text = "the runtime ends while " + std::to_string(count) + " of its storages (" +
                     to_string(bytes) + ") are alive; they stay valid";
  append_places(text, places);
  return text;
}

}  // namespace ebb::inline v0::detail
