// SPDX-License-Identifier: Apache-2.0
// Charging the threads of a TBB arena, by an observer. [gc.owner]
#include <ebb/gc/fallback_owner.h>
#include <ebb/runtime/interop/tbb.h>

#include <tbb/task_scheduler_observer.h>

namespace ebb::inline v0 {

// TBB tells which threads come to the arena; those in it already are announced before they take
// their first task from another thread. It does not announce that a thread leaves once observation
// is off, and workers linger: hence the fallback owner's end, which comes first. Notifications may
// also come amid a task that waits, and leave in the order in which they entered: hence a fallback,
// which no scope's way back can meet.
class ArenaOwner::Impl final : public tbb::task_scheduler_observer {
 public:
  explicit Impl(Owner owner) : fallback_(owner, "ArenaOwner"), scope_(owner) { observe(true); }
  Impl(tbb::task_arena& arena, Owner owner)
      : tbb::task_scheduler_observer(arena), fallback_(owner, "ArenaOwner"), scope_(owner) {
    observe(true);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() override {
    fallback_.end();
    observe(false);  // returns when no notification is under way
  }

  void on_scheduler_entry(bool /*is_worker*/) override { fallback_.enter(); }
  void on_scheduler_exit(bool /*is_worker*/) override { fallback_.leave(); }

 private:
  FallbackOwner fallback_;
  OwnerScope scope_;
};

ArenaOwner::ArenaOwner(Owner owner) : impl_(std::make_unique<Impl>(owner)) {}

ArenaOwner::ArenaOwner(tbb::task_arena& arena, Owner owner)
    : impl_(std::make_unique<Impl>(arena, owner)) {}

ArenaOwner::~ArenaOwner() = default;

}  // namespace ebb::inline v0
