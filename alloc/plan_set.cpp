// SPDX-License-Identifier: Apache-2.0
#include "plan_set.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace ebb::inline v0 {

using detail::IterationPlan;
using detail::Plans;

namespace {

// How many iterations that follow no plan are tried before the next ones are left alone; and the
// most of those.
constexpr std::uint32_t tries = 8;
constexpr std::uint32_t rest_most = 64;

bool same(const AllocationSequence& a, const AllocationSequence& b) {
  return a.size() == b.size() && detail::count_common(a, b) == a.size();
}

// Each block lives as long as the longer-lived of the two.
void merge(AllocationSequence& into, const AllocationSequence& other) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i].outlast(other[i]);
  }
}

// Whether each block of an iteration died no later than the other says.
bool lives_no_longer(const AllocationSequence& sequence, const AllocationSequence& other) {
  const auto no_longer = [](const SequenceEntry& a, const SequenceEntry& b) {
    return b.kind == AllocationKind::outliving ||
           (a.kind != AllocationKind::outliving && a.dies <= b.dies);
  };
  return std::equal(sequence.begin(), sequence.end(), other.begin(), no_longer);
}

// What is planned anew keeps what was known of its deaths before, lest two ways in which they come
// take turns with each other.
void prolong(AllocationSequence& sequence, const AllocationSequence& before) {
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (before[i].kind != AllocationKind::outliving) {
      sequence[i].dies = std::max(sequence[i].dies, before[i].dies);
    }
  }
}

}  // namespace

PlanSet::Impl::Impl(PlanSetOptions its_options, Place its_place)
    : options(its_options), place(its_place) {}

void PlanSet::Impl::refresh(std::shared_ptr<const Plans>& plans) noexcept {
  if (plans == nullptr || plans->version != version_.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(mutex_);
    plans = plans_;
  }
}

std::shared_ptr<const Plans> PlanSet::Impl::plans() const {
  const std::lock_guard lock(mutex_);
  return plans_;
}

bool PlanSet::Impl::rests() noexcept {
  const std::uint32_t left = rest_.load(std::memory_order_relaxed);
  if (left != 0) {
    rest_.store(left - 1, std::memory_order_relaxed);
  }
  return left != 0;
}

void PlanSet::Impl::note_followed() noexcept {
  followed.fetch_add(1, std::memory_order_relaxed);
  note_repeating();
}

void PlanSet::Impl::note_repeating() noexcept {
  if (unlike_.load(std::memory_order_relaxed) != 0) {
    unlike_.store(0, std::memory_order_relaxed);
    rest_next_.store(4, std::memory_order_relaxed);
  }
}

// What does not repeat is looked at now and then only: twice each time, since it takes two.
void PlanSet::Impl::note_unlike() noexcept {
  if (unlike_.fetch_add(1, std::memory_order_relaxed) + 1 >= tries) {
    const std::uint32_t rest = rest_next_.load(std::memory_order_relaxed);
    unlike_.store(tries - 2, std::memory_order_relaxed);
    rest_.store(rest, std::memory_order_relaxed);
    rest_next_.store(std::min(2 * rest, rest_most), std::memory_order_relaxed);
  }
}

bool PlanSet::Impl::take(AllocationSequence recorded, bool unlike) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (is_known(recorded)) {
      note_repeating();
      return false;
    }
    const auto twin = std::find_if(seen_.begin(), seen_.end(),
                                   [&](const AllocationSequence& s) { return same(s, recorded); });
    if (twin == seen_.end()) {
      seen_.push_front(std::move(recorded));
      if (seen_.size() > seen_most) {
        seen_.pop_back();
      }
      if (unlike) {
        note_unlike();
      }
      return false;
    }
    note_repeating();
    merge(recorded, *twin);
    seen_.erase(twin);
    return want(std::move(recorded));
  } catch (const std::bad_alloc&) {
    return false;  // not recorded
  }
}

// Of an iteration that began before its plan was there.
bool PlanSet::Impl::is_known(const AllocationSequence& recorded) const {
  const auto is_same = [&](const AllocationSequence& other) { return same(other, recorded); };
  const auto holds = [&](const auto& plan) {
    return plan->repeats(recorded) && lives_no_longer(recorded, plan->sequence());
  };
  return std::any_of(jobs_.begin(), jobs_.end(), is_same) ||
         std::any_of(working_.begin(), working_.end(), is_same) ||
         std::any_of(plans_->list.begin(), plans_->list.end(), holds);
}

bool PlanSet::Impl::learn_outliving(const IterationPlan& plan,
                                    const std::vector<std::uint32_t>& entries) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    AllocationSequence learned = plan.sequence();
    for (const std::uint32_t entry : entries) {
      learned[entry].kind = AllocationKind::outliving;
    }
    return want(std::move(learned));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool PlanSet::Impl::want(AllocationSequence sequence) {
  const auto is_same = [&](const AllocationSequence& job) { return same(job, sequence); };
  if (const auto queued = std::find_if(jobs_.begin(), jobs_.end(), is_same);
      queued != jobs_.end()) {
    merge(*queued, sequence);
    return false;
  }
  for (const auto& plan : plans_->list) {
    if (plan->repeats(sequence)) {
      prolong(sequence, plan->sequence());
      if (lives_no_longer(sequence, plan->sequence()) &&
          lives_no_longer(plan->sequence(), sequence)) {
        return false;  // its addresses were not free, which no other plan would change
      }
    }
  }
  jobs_.push_back(std::move(sequence));
  wanted_.store(true, std::memory_order_relaxed);
  return true;
}

const AllocationSequence* PlanSet::Impl::take_job() {
  const std::lock_guard lock(mutex_);
  if (jobs_.empty()) {
    return nullptr;
  }
  working_.push_back(std::move(jobs_.front()));
  jobs_.pop_front();
  wanted_.store(!jobs_.empty(), std::memory_order_relaxed);
  return &working_.back();
}

void PlanSet::Impl::end_job(const AllocationSequence& job,
                            const std::shared_ptr<const IterationPlan>& made) noexcept {
  {
    const std::lock_guard lock(mutex_);
    working_.remove_if([&job](const AllocationSequence& other) { return &other == &job; });
    try {
      if (made != nullptr) {
        put(made);
        planned.fetch_add(1, std::memory_order_relaxed);
      }
    } catch (const std::bad_alloc&) {
    }
  }
  done_.notify_all();
}

void PlanSet::Impl::give_back_job(const AllocationSequence& job) noexcept {
  {
    const std::lock_guard lock(mutex_);
    try {
      jobs_.push_front(job);
      wanted_.store(true, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {  // it is planned when it was seen twice again
    }
    working_.remove_if([&job](const AllocationSequence& other) { return &other == &job; });
  }
  done_.notify_all();
}

// The plan that has most in common with a sequence, but for one that has all of it.
const IterationPlan* PlanSet::Impl::relative_of(const AllocationSequence& sequence,
                                                const Plans& from) const {
  const IterationPlan* relative = nullptr;
  std::size_t most = 0;
  for (const auto& plan : from.list) {
    const std::size_t common = detail::count_common(plan->sequence(), sequence);
    if (common > most && common < sequence.size()) {
      most = common;
      relative = plan.get();
    }
  }
  return relative;
}

void PlanSet::Impl::work(const std::function<bool()>& cancel) noexcept {
  unclaim_work();  // what comes from now on needs telling, unless it is found below
  const auto cancelled = [&cancel] { return cancel && cancel(); };
  try {
    while (!cancelled()) {
      const AllocationSequence* const job = take_job();
      if (job == nullptr) {
        return;
      }
      std::shared_ptr<const IterationPlan> made;
      try {
        const std::shared_ptr<const Plans> now = plans();
        made = IterationPlan::make(*job, granule(), options, relative_of(*job, *now), cancel);
      } catch (const std::exception&) {  // without memory there is no plan
      }
      if (cancelled()) {
        give_back_job(*job);
      } else {
        end_job(*job, made);
      }
    }
  } catch (const std::bad_alloc&) {  // the jobs wait for the next one who works
  }
}

// With the lock held. A new plan of the same allocations takes the old one's place, since it knows
// more of when they die.
void PlanSet::Impl::put(const std::shared_ptr<const IterationPlan>& made) {
  auto next = std::make_shared<Plans>();
  next->version = plans_->version + 1;
  next->list.push_back(made);
  for (const auto& plan : plans_->list) {
    if (!plan->repeats(made->sequence()) && next->list.size() < plans_most) {
      next->list.push_back(plan);
    }
  }
  for (const auto& plan : next->list) {
    next->height = std::max(next->height, plan->height());
  }
  plans_ = std::move(next);
  version_.store(plans_->version, std::memory_order_relaxed);
  unlike_.store(0, std::memory_order_relaxed);
  rest_.store(0, std::memory_order_relaxed);
}

void PlanSet::Impl::add(std::vector<std::shared_ptr<const IterationPlan>> loaded) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const Plans> before = plans_;
  try {
    for (auto plan = loaded.rbegin(); plan != loaded.rend(); ++plan) {
      put(*plan);
    }
  } catch (...) {
    plans_ = before;
    version_.store(before->version, std::memory_order_relaxed);
    throw;
  }
}

const char* PlanSet::Impl::keep_name(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find(name);
  return (known != names_.end() ? known : names_.emplace(name).first)->c_str();
}

bool PlanSet::Impl::wait(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24);
  const auto deadline = std::chrono::steady_clock::now() + std::min(patience, longest);
  work([deadline] { return std::chrono::steady_clock::now() >= deadline; });
  std::unique_lock lock(mutex_);
  return done_.wait_until(lock, deadline, [this] { return working_.empty() && jobs_.empty(); });
}

Align PlanSet::granule() const noexcept {
  return impl_->options.granule;
}

PlanSet::PlanSet(PlanSetOptions options, Place place)
    : impl_(std::make_shared<Impl>(options, place)) {}

PlanSet::~PlanSet() = default;

bool PlanSet::has_work() const noexcept {
  return impl_->has_work();
}

bool PlanSet::claim_work() noexcept {
  return impl_->claim_work();
}

void PlanSet::unclaim_work() noexcept {
  impl_->unclaim_work();
}

void PlanSet::work(const std::function<bool()>& cancel) noexcept {
  impl_->work(cancel);
}

bool PlanSet::wait(std::chrono::milliseconds patience) {
  return impl_->wait(patience);
}

PlanSetStats PlanSet::stats() const {
  const auto read = [](const std::atomic<std::uint64_t>& figure) {
    return figure.load(std::memory_order_relaxed);
  };
  return {.iterations = read(impl_->iterations),
          .followed = read(impl_->followed),
          .deviated = read(impl_->deviated),
          .displaced = read(impl_->displaced),
          .planned = read(impl_->planned),
          .height = Bytes{impl_->plans()->height}};
}

std::vector<PlanInfo> PlanSet::plans() const {
  std::vector<PlanInfo> infos;
  const std::shared_ptr<const Plans> now = impl_->plans();
  for (const auto& plan : now->list) {
    infos.push_back(plan->info());
  }
  return infos;
}

std::vector<AllocationSequence> PlanSet::sequences() const {
  std::vector<AllocationSequence> sequences;
  const std::shared_ptr<const Plans> now = impl_->plans();
  for (const auto& plan : now->list) {
    sequences.push_back(plan->sequence());
  }
  return sequences;
}

const Place& PlanSet::place() const noexcept {
  return impl_->place;
}

}  // namespace ebb::inline v0
