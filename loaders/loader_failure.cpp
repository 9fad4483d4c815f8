// SPDX-License-Identifier: Apache-2.0
// Samples that do not load: what is said of them, and how a run goes on without them. By whoever
// fills, without the mutex. [load.error]
#include "loader_core.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/error.h>

#include <new>
#include <string>
#include <utility>

namespace ebb::inline v0 {

namespace {

// How many other samples are tried in the place of one.
constexpr std::uint64_t substitutes_max = 16;

}  // namespace

// Samples known not to load are not tried again.
void Loader::Core::avoid_skipped(Slot& slot) {
  const std::size_t unpadded = slot.samples - slot.padding;
  std::size_t to = 0;
  for (std::size_t i = 0; i < slot.samples; ++i) {
    std::uint64_t index = slot.indices[i];
    if (skips_.contains(index) && options.on_error == OnError::skip) {
      slot.padding -= i >= unpadded ? 1 : 0;
      continue;
    }
    for (std::uint64_t n = 0; n < substitutes_max && skips_.contains(index); ++n) {
      index = substitute_for(slot, i, n);
    }
    slot.indices[to++] = index;
  }
  slot.indices.resize(to);
}

bool Loader::Core::do_without(Slot& slot, Hands& hands, detail::RangeFill& walk, Range& range,
                              const std::exception_ptr& error) noexcept {
  const std::uint64_t index = hands.current.load(std::memory_order_relaxed);
  hands.clocks.write.add_failure();
  const bool in_sample = index != no_index;
  std::exception_ptr why = load_error(slot, index, error);
  if (in_sample && options.on_error != OnError::fail) {
    const std::size_t place = range.first + walk.position();
    try {
      if (note_skip(slot, index, why) &&
          (options.on_error == OnError::skip || substitute(slot, hands, walk, place))) {
        if (options.on_error == OnError::skip) {
          range.left_out.push_back(place);
        }
        return true;
      }
    } catch (...) {
      why = load_error(slot, index, std::current_exception());
    }
  }
  range.failed_at = range.first + (in_sample ? walk.position() : 0);
  range.error = std::move(why);
  return false;
}

// Returns whether the run may do without one more sample; else why says that it may not.
bool Loader::Core::note_skip(const Slot& slot, std::uint64_t index, std::exception_ptr& why) {
  std::string reason;
  try {
    std::rethrow_exception(why);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (skips_.size() >= options.skips_max && !skips_.contains(index)) {
    why = std::make_exception_ptr(LoadError(
        "Loader::next",
        {.kind = LoadErrorKind::user,
         .dataset = data.name(),
         .index = index,
         .epoch = slot.epoch,
         .seq = slot.seq,
         .stage = "skip",
         .text = "more than LoaderOptions::skips_max = " + std::to_string(options.skips_max) +
                 " samples cannot be loaded; this one, and why: " + reason}));
    return false;
  }
  if (skips_.add({.index = index, .epoch = slot.epoch, .seq = slot.seq, .reason = reason})) {
    domain_->log(LogLevel::warning, reason + (options.on_error == OnError::skip
                                                  ? ": it is left out from now on"
                                                  : ": another one takes its place from now on"));
  }
  return true;
}

std::uint64_t Loader::Core::substitute_for(const Slot& slot, std::size_t place,
                                           std::uint64_t attempt) const noexcept {
  const std::uint64_t position = slot.first + place;
  Random random(options.seed, "ebb substitute", slot.epoch, position * substitutes_max + attempt);
  return random.below(data.size());
}

bool Loader::Core::substitute(Slot& slot, Hands& hands, detail::RangeFill& walk,
                              std::size_t place) {
  for (std::uint64_t n = 0; n < substitutes_max; ++n) {
    const std::uint64_t index = substitute_for(slot, place, n);
    const std::int64_t length = layout_.varies ? data.erased().length(index) : 0;
    if (skips_.contains(index) || length > slot.longest) {
      continue;
    }
    try {
      if (hands.local == nullptr) {
        hands.local = data.erased().make_local();
      }
      walk.replace_by(index, length);
      if (layout_.varies) {
        slot.lengths[place] = length;
        layout_.pad(slot.spots, static_cast<std::byte*>(slot.memory.data()), place, length);
      }
      if (data.erased().has_stages) {
        load_sample(slot, hands, walk, place);
      } else {
        data.erased().load_one(index, *hands.local, walk.context(), walk.writer());
      }
      slot.indices[place] = index;
      return true;
    } catch (...) {
      hands.local.reset();
      std::exception_ptr why = load_error(slot, index, std::current_exception());
      if (!note_skip(slot, index, why)) {
        std::rethrow_exception(why);
      }
    }
  }
  return false;
}

// Returns an error as a LoadError that says where it belongs.
std::exception_ptr Loader::Core::load_error(const Slot& slot, std::uint64_t index,
                                            const std::exception_ptr& error,
                                            const char* stage) const noexcept {
  try {
    LoadErrorInfo info{.dataset = data.name(), .epoch = slot.epoch, .seq = slot.seq};
    if (index != no_index) {
      detail::SampleOrigin origin = data.erased().origin(index);
      info.dataset = std::move(origin.dataset);
      info.index = origin.index;
      info.source = std::move(origin.source);
    }
    info.stage = stage != nullptr ? stage : index != no_index ? "load" : "making Local";
    try {
      std::rethrow_exception(error);
    } catch (const LoadError& load) {
      if (load.info().seq.has_value()) {
        return error;  // StageContext::fail made it
      }
      info.kind = load.kind();
      info.text = load.what();
      std::throw_with_nested(LoadError("Loader::next", info));
    } catch (const DeviceError& failure) {
      info.kind = LoadErrorKind::device;
      info.text = failure.what();
      std::throw_with_nested(LoadError("Loader::next", info));
    } catch (const std::bad_alloc& refusal) {
      info.kind = LoadErrorKind::memory;
      info.text = std::string("memory was refused: ") + refusal.what();
      std::throw_with_nested(LoadError("Loader::next", info));
    } catch (const std::exception& other) {
      info.text = other.what();
      std::throw_with_nested(LoadError("Loader::next", info));
    } catch (...) {
      info.text = "load threw something that is no std::exception";
      std::throw_with_nested(LoadError("Loader::next", info));
    }
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace ebb::inline v0
