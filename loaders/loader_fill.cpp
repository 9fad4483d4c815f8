// SPDX-License-Identifier: Apache-2.0
// Filling a slot, and what became of it. Foreign code runs here and nowhere else in the loader.
#include "loader_core.h"

#include <ebb/alloc/check.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace ebb::inline v0 {

void Loader::Core::fill(Slot& slot, Hands& hands) noexcept {
  bool complete = false;
  slot.error = nullptr;
  {
    // What load makes is the loader's, whichever thread and iteration this is. [gc.owner]
    const OwnerScope scope(owner_, HeapStay::with_scope);
    const auto first = slot.seq * static_cast<std::uint64_t>(options.batch);
    slot.indices.resize(slot.samples);  // within its capacity
    for (std::size_t i = 0; i < slot.samples; ++i) {
      slot.indices[i] = slot.order.at(first + i);
    }
    auto* const memory = static_cast<std::byte*>(slot.memory.data());
    if constexpr (EBB_CHECKS >= 2) {
      std::memset(memory, 0xa5, layout_.slot_bytes);  // what load forgets to write is the same
    }
    try {
      if (hands.local == nullptr) {
        hands.local = data.erased().make_local();
      }
      detail::BatchFill walk({.indices = slot.indices,
                              .slot = memory,
                              .epoch = slot.epoch,
                              .seq = slot.seq,
                              .seed = options.seed,
                              .generation = &generation_,
                              .expected = slot.generation,
                              .current = &slot.current},
                             layout_, data.erased(), hands.scratch);
      data.erased().load(*hands.local, walk);
      complete = walk.complete();
    } catch (...) {
      slot.error = std::current_exception();
      hands.local.reset();  // whatever state it was left in, no later sample sees it
    }
    hands.scratch.reset();
  }
  {
    const std::lock_guard lock(mutex_);
    const bool wanted = slot.generation == generation_.load(std::memory_order_relaxed);
    EBB_ASSERT(complete || slot.error != nullptr || !wanted);
    if (!wanted) {
      slot.state = SlotState::free;
    } else {
      slot.state = complete ? SlotState::ready : SlotState::failed;
    }
  }
  changed_.notify_all();
}

// Returns the slot's error as a LoadError that says where it belongs.
std::exception_ptr Loader::Core::load_error(const Slot& slot) const noexcept {
  try {
    LoadErrorInfo info{.dataset = data.name(), .epoch = slot.epoch, .seq = slot.seq};
    if (const auto index = slot.current.load(std::memory_order_relaxed);
        index != detail::no_index) {
      info.index = index;
      info.source = data.erased().source(index);
      info.stage = "load";
    } else {
      info.stage = "making Local";
    }
    try {
      std::rethrow_exception(slot.error);
    } catch (const LoadError& error) {
      if (error.info().seq.has_value()) {
        return slot.error;  // SampleContext::fail made it
      }
      info.kind = error.kind();
      info.text = error.what();
      std::throw_with_nested(LoadError("Loader::next", info));
    } catch (const std::bad_alloc& error) {
      info.kind = LoadErrorKind::memory;
      info.text = std::string("memory was refused: ") + error.what();
      std::throw_with_nested(LoadError("Loader::next", info));
    } catch (const std::exception& error) {
      info.text = error.what();
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
