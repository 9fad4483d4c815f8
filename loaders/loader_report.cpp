// SPDX-License-Identifier: Apache-2.0
// What a loader says when it cannot go on: whom it waits for, and who holds the slots.
#include "loader_core.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace ebb::inline v0 {

namespace {

struct Holder {
  std::uint64_t epoch;
  std::uint64_t seq;
  WeakStorage lease;
};

std::string describe(const std::vector<Holder>& holders) {
  std::string text;
  for (const Holder& holder : holders) {
    const Storage lease = holder.lease.lock();
    const std::uint32_t count = lease.use_count();
    text += text.empty() ? " (" : ", ";
    text += "batch " + std::to_string(holder.seq) + " of epoch " + std::to_string(holder.epoch);
    text += count == 0 ? " just dropped"
                       : " held by " + std::to_string(count - 1) +
                             (count == 2 ? " reference" : " references");
  }
  return text + (text.empty() ? "" : ")");
}

}  // namespace

std::string Loader::Core::describe_stuck() const {
  const TimePoint now = domain_->clock().now();
  std::string text;
  const auto describe = [&](const Hands& hands) {
    if (hands.at == nullptr) {
      return;
    }
    const Slot& slot = *hands.at;
    const auto index = hands.current.load(std::memory_order_relaxed);
    const auto busy = std::chrono::duration_cast<Milliseconds>(now - slot.since).count();
    text += text.empty() ? "" : ", ";
    text += "batch " + std::to_string(slot.seq) + " of epoch " + std::to_string(slot.epoch) +
            " is being filled for " + std::to_string(busy) + " ms, now " +
            (index == no_index ? "making Local" : "at sample " + std::to_string(index));
  };
  for (const Worker& worker : workers_) {
    describe(worker.hands);
  }
  describe(mine_);
  for (const Slot& slot : slots_) {
    if (slot.state == SlotState::open && slot.fetch_next > slot.claimed) {
      text += text.empty() ? "" : ", ";
      text += "batch " + std::to_string(slot.seq) + " of epoch " + std::to_string(slot.epoch) +
              " waits for sample " + std::to_string(slot.indices[slot.claimed]) +
              " to be fetched from " + data.erased().source(slot.indices[slot.claimed]);
    }
  }
  return text;
}

void Loader::Core::throw_stalled(Lock& lock) {
  std::size_t leased = 0;
  std::size_t ready = 0;
  std::vector<Holder> holders;
  for (const Slot& slot : slots_) {
    ready += slot.state == SlotState::ready ? 1 : 0;
    if (slot.state == SlotState::leased) {
      ++leased;
      holders.push_back({slot.epoch, slot.seq, slot.lease});
    }
  }
  const std::size_t slots = slots_.size();
  LoadErrorInfo info{.kind = LoadErrorKind::stalled,
                     .dataset = data.name(),
                     .epoch = epoch_,
                     .seq = deliver_,
                     .stage = "wait"};
  const std::string stuck = describe_stuck();
  lock.unlock();
  // Outside the lock: the reference taken to count them may turn out to be the last one.
  const std::string held = describe(holders);
  info.text = "waited " + std::to_string(options.deadline.count()) + " ms: ";
  if (leased == slots) {
    info.text += "all " + std::to_string(slots) + " slots are leased" + held +
                 "; drop batches and the tensors that view them, keep_copy() what must live "
                 "longer, or raise LoaderOptions::leases";
  } else {
    info.text += stuck.empty() ? "no slot became free" : stuck;
    info.text += "; of " + std::to_string(slots) + " slots " + std::to_string(ready) +
                 " are ready and " + std::to_string(leased) + " leased" + held +
                 "; look at what load waits for, or raise LoaderOptions::deadline";
  }
  throw LoadError("Loader::next", std::move(info));
}

}  // namespace ebb::inline v0
