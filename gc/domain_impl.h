// SPDX-License-Identifier: Apache-2.0
// The inside of a Domain. Private to gc. Thread rules stand at each member.
#pragma once

#include "deferred.h"
#include "device_pools.h"
#include "owner_record.h"
#include "undeclared_use.h"

#include <ebb/alloc/address_map.h>
#include <ebb/alloc/fork.h>
#include <ebb/alloc/pool.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/storage.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace ebb::inline v0 {

class Domain::Impl {
 public:
  Impl(Domain& domain, DomainOptions options);

  // Returns a closed record for iterations that nothing is counted in. Takes a lock: a series
  // keeps its record from one iteration to the next.
  OwnerRecord& take_record();
  // Returns a new record, which is never used again for another owner.
  OwnerRecord& make_record(OwnerKind kind, PoolHandle its_pool, std::uint64_t number);
  // Gives a record back whose generation has ended: by its opener, or by whom the opener handed it
  // to, since its local counts become remote ones. A record that still counts something (a job
  // that did not end, a storage that is just being released) rests until that is gone.
  void give_record(OwnerRecord& record) noexcept;
  // The runtime ends: the domain stays for the guards that are still open, in slots of any thread.
  void stay_for_open_guards() noexcept;

  // Null where the domain does not have the device.
  // Whether this thread captures a graph on any of the devices.
  bool captures_here() const noexcept;
  detail::DeviceMemory* find_device(Device device) noexcept;
  // As Domain::device.
  detail::DeviceMemory& require_device(Device device, const char* function);
  // The thread's iteration has queued work on stream, or is about to.
  void note_use(const detail::DeviceMemory& device, Stream stream) noexcept;
  // Calls visit(pool) for each pool besides the CPU's that was asked for something.
  template <class Visit>
  void for_each_device_pool(Visit visit) const {
    for (const detail::DeviceMemory& device : devices) {
      for (const detail::DevicePool* its : {&device.memory, &device.pinned}) {
        if (const PoolHandle* const handle = its->made()) {
          visit(*handle);
        }
      }
    }
  }

  // Returns what the log says of storages that outlive the runtime.
  std::string describe_outliving() const;

  // What every entry asks, one of the two that throws. Any thread.
  bool in_child() const noexcept { return detail::is_forked_child() && mark.in_child(); }
  void require_usable(const char* function) const {
    if (in_child() || ended.load(std::memory_order_acquire)) [[unlikely]] {
      throw_unusable(function);
    }
  }
  [[noreturn, gnu::cold]] void throw_unusable(const char* function) const;

  const detail::ForkMark mark;
  Domain& domain;
  const DomainOptions options;
  const std::uint64_t serial;
  const std::uint64_t pool_number;
  // Made by Domain::make, closed by shutdown; all others go through the handle of a record, since
  // they may come when it has closed.
  std::optional<Pool> pool;
  // A deque: they do not move. Closed with the pool.
  std::deque<detail::DeviceMemory> devices;
  // Set by shutdown before the pool closes, so that late calls say so. Release and acquire.
  std::atomic<bool> ended{false};
  OwnerRecord* long_lived = nullptr;  // set once, in make
  std::uint64_t long_lived_generation = 0;

  // Relaxed: figures only.
  std::atomic<std::uint64_t> storages_unowned{0};
  std::atomic<std::uint64_t> storages_late{0};
  std::atomic<std::int64_t> adopted_live{0};
  std::atomic<std::int64_t> adopted_bytes{0};
  void count_adopted(std::int64_t bytes) noexcept {
    adopted_live.fetch_add(1, std::memory_order_relaxed);
    adopted_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Set once something late was logged, so that it is said once per runtime.
  std::atomic<bool> late_logged{false};
  // For the tests of the tagging tests: scopes then do not restore the slot. Relaxed: set before
  // tasks are submitted.
  std::atomic<bool> skip_restore{false};

  // Guards the finalizer lists of all storages of this domain: registration is rare.
  std::mutex finalizer_mutex;
  // Held while the bytes of a storage are replaced, and while a scan for stragglers reads them: a
  // close may scan while a late task resizes. Taken by rare calls only.
  mutable std::mutex replace_mutex;
  detail::DeferredReleases deferred;
  detail::UndeclaredUses undeclared;
  // Guards the storages that are known by their address only.
  std::mutex raw_mutex;
  AddressMap<detail::StorageHead> raw_live;

 private:
  // Guards the three containers.
  std::mutex records_mutex_;
  std::deque<OwnerRecord> records_;  // a deque: records never move and are never destroyed early
  std::vector<OwnerRecord*> idle_;
  std::vector<OwnerRecord*> resting_;
};

// Returns a number that no pool of this process has had.
std::uint64_t next_pool_number() noexcept;

}  // namespace ebb::inline v0
