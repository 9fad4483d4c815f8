// SPDX-License-Identifier: Apache-2.0
// What storages and jobs are counted in. Private to gc. Type-stable: a record lives as long as its
// domain, is used again for later iterations, and is checked by its generation. [gc.count]
#pragma once

#include "device_use.h"
#include "place_index.h"
#include "scoped_resource.h"
#include "tally.h"
#include "traces.h"

#include <ebb/alloc/pool.h>
#include <ebb/alloc/replay.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/owner.h>
#include <ebb/gc/report.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

namespace detail {
// The place of a job that has not ended. Links belong to the record's list.
struct JobNote {
  Place place;
  JobNote* previous = nullptr;
  JobNote* next = nullptr;
};
}  // namespace detail

// Which iterations follow each other: those that one thread opens equally deep within others.
struct Strand {
  std::uint64_t thread = 0;
  std::uint32_t depth = 0;

  bool operator==(const Strand&) const = default;
};

// The opener of a record that no thread opened: every count is then remote.
inline constexpr std::uint64_t no_thread = ~std::uint64_t{0};

// Live is local + remote. A count goes where the thread that counts belongs, so that the opening
// thread pays no atomic operation; either part may be negative on its own.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the remote counts have their own line
class alignas(64) OwnerRecord {
 public:
  OwnerRecord(Domain& its_domain, OwnerKind its_kind, PoolHandle its_pool,
              std::uint64_t its_pool_number) noexcept
      : domain(&its_domain),
        pool(std::move(its_pool)),
        pool_number(its_pool_number),
        kind(its_kind) {}

  // Charges one storage to this record if generation is still open. Returns whether it did.
  // Any thread.
  bool charge(std::uint64_t wanted, std::int64_t bytes, std::uint64_t thread) noexcept {
    if (opener.load(std::memory_order_relaxed) != thread) [[unlikely]] {
      return charge_remotely(wanted, bytes);
    }
    // This thread opened the current generation, so nobody else ends it meanwhile, save a guard
    // destroyed on a wrong thread; that one adopts by scanning and never reads local counts.
    if (generation.load(std::memory_order_relaxed) != wanted) {
      return false;
    }
    charge_own(bytes);
    return true;
  }
  // Of the thread that opened the current generation, and while it is open.
  void charge_own(std::int64_t bytes) noexcept {
    ++local_live;
    local_bytes += static_cast<std::uint64_t>(bytes);
  }
  void subtract_own(std::int64_t bytes) noexcept {
    --local_live;
    local_bytes -= static_cast<std::uint64_t>(bytes);
  }
  // Charges without a check: for transfers, whose caller knows that the record stays open or is
  // the runtime's. Any thread.
  void add(std::int64_t bytes, std::uint64_t thread) noexcept;
  // Takes one storage off; wakes the closing thread when it waits. Any thread.
  void subtract(std::int64_t bytes, std::uint64_t thread) noexcept {
    if (opener.load(std::memory_order_relaxed) != thread) [[unlikely]] {
      return subtract_remotely(bytes);
    }
    subtract_own(bytes);
  }

  // Changes the bytes of a storage that is counted here. Any thread.
  void change_bytes(std::int64_t by, std::uint64_t thread) noexcept;

  // Counts in pending, which is jobs or device_work, if generation is still open. Returns whether
  // it did. Any thread.
  bool add_pending(std::atomic<std::int64_t>& pending, std::uint64_t wanted) noexcept;
  void end_pending(std::atomic<std::int64_t>& pending) noexcept;
  // Lists the place of a counted job, and takes it off the list. Any thread.
  void add_note(detail::JobNote& note) noexcept;
  void remove_note(detail::JobNote& note) noexcept;
  // Returns the places of the jobs that have one and have not ended. Throws std::bad_alloc.
  std::vector<JobPlace> job_places();

  // Opening thread only (or any, when the opener is no_thread).
  std::int64_t live() const noexcept {
    return local_live + remote_live.load(std::memory_order_seq_cst);
  }
  std::int64_t live_bytes() const noexcept {
    return static_cast<std::int64_t>(
        local_bytes + static_cast<std::uint64_t>(remote_bytes.load(std::memory_order_relaxed)));
  }
  // Hands the local counts over to the remote ones: from now on any thread may read live().
  // Opening thread only.
  void make_remote() noexcept;
  // Returns whether nothing is counted in a record that make_remote was called on.
  bool is_idle() const noexcept {
    return remote_live.load(std::memory_order_seq_cst) == 0 &&
           jobs.load(std::memory_order_seq_cst) == 0 &&
           device_work.load(std::memory_order_seq_cst) == 0;
  }

  // Begins a generation and returns its number; thread may then count locally.
  std::uint64_t open(std::uint64_t thread, std::uint64_t new_iteration) noexcept;
  // Ends the generation: later charges and jobs are refused. Sequentially consistent, as are the
  // counts and the generation check of charge() and add_job(): either they see the end, or the
  // caller sees their count.
  void end_generation() noexcept { generation.fetch_add(1, std::memory_order_seq_cst); }

  // A guard was destroyed on a thread that is not its opener, or the runtime before the guard: the
  // opener's slot still names this record, so the domain is kept until the opener has noticed.
  void keep_domain_for_opener() noexcept;
  std::shared_ptr<Domain> forget_opener() noexcept;
  // The opener's thread ends with the guard open: its slot is gone. Returns what was kept for it.
  std::shared_ptr<Domain> end_opener() noexcept;

  // Keeps the first error of generation wanted for its close to take. False, and nothing is kept,
  // when that is over: its close has looked already. Any thread.
  bool store_error(std::uint64_t wanted, const std::exception_ptr& error) noexcept;
  // Keeps the first error after the end of the generation for who finds the record retired. By who
  // counts in device_work: until then it is not used again. Any thread.
  void store_late_error(const std::exception_ptr& error) noexcept;
  std::exception_ptr take_error() noexcept;

  // Lets the closing thread look again, if one waits. Any thread.
  void wake() noexcept;

  // Odd while open. Written by whoever opens and closes; read by all.
  std::atomic<std::uint64_t> generation{0};
  // Relaxed: a thread only asks whether it is itself, and then it wrote the value itself.
  std::atomic<std::uint64_t> opener{no_thread};
  // The same for all generations, so that stale handles may read them.
  Domain* const domain;
  const PoolHandle pool;  // which may have closed: a loader's pool goes with the loader
  const std::uint64_t pool_number;
  const OwnerKind kind;
  // Written by open(); read by holders of an open generation.
  std::uint64_t iteration = 0;
  // Set before open(); read by holders of an open generation. What the iteration makes lies in
  // cells taken since this epoch of the pool, and is tracked when its stragglers may be revoked.
  std::uint64_t since = 0;
  bool tracks = false;
  // Set when a storage made elsewhere is transferred here, which may lie in any cell. Relaxed: the
  // transfer's count, which the close sees, comes after.
  std::atomic<bool> has_immigrants{false};

  // Opening thread only, on a line of its own. Not side by side: a compiler would add to both in
  // one wide step, which waits for the two narrow writes before it.
  alignas(64) std::int64_t local_live = 0;
  std::uint64_t sequence = 0;
  // Returns the next storage's number in this iteration.
  std::uint64_t next_sequence() noexcept {
    const std::uint64_t number = sequence++;
    if (number == watched) [[unlikely]] {
      watched = traces.take(number);
    }
    return number;
  }
  Strand strand;
  OwnerRecord* enclosing = nullptr;  // whom the opener's slot named before
  // Modulo 2^64, like the remote ones: a request for more than there are addresses is counted too,
  // until it has failed.
  std::uint64_t local_bytes = 0;
  // The number of the storage whose making is to be traced next.
  std::uint64_t watched = ~std::uint64_t{0};
  detail::Traces traces;

  // How its iterations follow their plans; made when one is first to. Opening thread only.
  std::unique_ptr<Replay> replay;
  // What they have to do with devices; null where the domain has none. Set when the record is made.
  std::unique_ptr<detail::DeviceUse> devices;
  // Set before the generation ends by a guard that another thread destroys, which cannot end the
  // replay. Such a record is not used again. Relaxed: read where the end was seen.
  std::atomic<bool> ended_elsewhere{false};

  // Of the close that is going on; kept so that a loop that always straggles makes no heap call.
  std::vector<detail::Tally> tallies;
  detail::PlaceIndex tally_index;

  alignas(64) std::atomic<std::int64_t> remote_live{0};
  std::atomic<std::int64_t> remote_bytes{0};
  std::atomic<std::uint64_t> remote_sequence{0};
  std::atomic<std::int64_t> jobs{0};
  // Work on devices that the iteration waits for before it counts as retired. [gc.close]
  std::atomic<std::int64_t> device_work{0};
  // How many threads wait for a count to go down. Sequentially consistent with the counts: either
  // who counts down sees it, or the waiting thread sees the count before it sleeps.
  std::atomic<int> waiting{0};
  // Sequentially consistent with generation: either a close sees the error that is being stored, or
  // who stores it sees that the generation is over.
  std::atomic<bool> has_error{false};
  // Guards first_error_, kept_domain_, opener_ended_ and notes_; changed is notified under it.
  std::mutex mutex;
  std::condition_variable changed;
  // What containers allocate from. [rt.tensor]
  detail::ScopedResource resource{*this};

 private:
  bool charge_remotely(std::uint64_t wanted, std::int64_t bytes) noexcept;
  void subtract_remotely(std::int64_t bytes) noexcept;
  std::exception_ptr first_error_;
  std::shared_ptr<Domain> kept_domain_;
  detail::JobNote* notes_ = nullptr;
  bool opener_ended_ = false;  // such a record is not used again
};

namespace detail {

// Owner::is_open, inlined.
inline bool is_open(const Owner& owner) noexcept {
  const OwnerRecord* const record = owner.record();
  return record != nullptr &&
         record->generation.load(std::memory_order_acquire) == owner.generation();
}

}  // namespace detail
}  // namespace ebb::inline v0
