// SPDX-License-Identifier: Apache-2.0
// Storages by key, kept by others: what maps a segment's name to the one mapping of it in this
// process. Any thread. [gc.storage]
#pragma once

#include <ebb/gc/storage.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

namespace ebb::inline v0 {

// Remembers storages by weak references: an entry ends with the last strong reference elsewhere,
// and no storage comes back. Key needs operator<. What it remembers may outlive the runtime.
//
//   ebb::WeakCache<std::string> mappings;
//   const ebb::Storage segment = mappings.get(id, [&] { return map_segment(id); });
template <class Key>
class WeakCache {
 public:
  WeakCache() = default;
  WeakCache(const WeakCache&) = delete;
  WeakCache& operator=(const WeakCache&) = delete;
  WeakCache(WeakCache&&) = delete;
  WeakCache& operator=(WeakCache&&) = delete;
  ~WeakCache() = default;

  // Returns a strong reference to the living storage of key, else an empty one: also while a first
  // one is being made.
  [[nodiscard]] Storage find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? Storage() : entry->second.storage.lock();
  }

  // Returns the living storage of key, or what make() returns, which is remembered: threads that
  // ask meanwhile wait for it, and get the same one while it lives. make runs without a lock and
  // may use the cache, for other keys only and without a circle among threads. What it throws comes
  // out here and leaves nothing, and who waited tries with its own make; an empty storage is
  // returned and not remembered. Throws std::invalid_argument when make asks for its own key.
  template <class Make>
    requires std::is_invocable_r_v<Storage, Make&> Storage get(const Key& key, Make&& make) {
      Entries expired;  // ends after the lock: releases may run the code of hosts
      std::unique_lock lock(mutex_);
      auto entry = entries_.find(key);
      while (entry != entries_.end()) {
        if (Storage living = entry->second.storage.lock()) {
          return living;
        }
        if (!entry->second.in_making()) {
          break;
        }
        if (entry->second.maker == std::this_thread::get_id()) {
          throw std::invalid_argument("[WeakCache::get] make asks for the key that it makes");
        }
        // No deadline: make is the caller's, and ends by returning or throwing.
        made_.wait(lock);
        entry = entries_.find(key);
      }
      if (entry == entries_.end()) {
        if (entries_.size() >= sweep_at_) {
          sweep(expired);
        }
        entry = entries_.try_emplace(key).first;
      }
      Making making(*this, entry);
      lock.unlock();
      expired.clear();
      Storage storage = make();
      making.storage = WeakStorage(storage);
      return storage;
    }

  // Returns how many keys are remembered, expired ones that were not swept out yet included: at
  // most twice as many as have been alive at once, or 16.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

  // Forgets every storage; those that live go on living. What is just being made is kept.
  void clear() {
    Entries forgotten;
    const std::lock_guard lock(mutex_);
    take_if(forgotten, [](const Entry&) { return true; });
    sweep_at_ = sweep_min;
  }

 private:
  struct Entry {
    WeakStorage storage;
    std::thread::id maker{};  // none: it is not being made

    bool in_making() const noexcept { return maker != std::thread::id(); }
  };
  using Entries = std::map<Key, Entry>;  // entries can be moved out of it without allocating

  // The time in which this thread makes an entry's storage: nobody else removes the entry.
  class Making {
   public:
    // With the lock held.
    Making(WeakCache& cache, typename Entries::iterator entry) noexcept
        : cache_(cache), entry_(entry) {
      entry_->second.maker = std::this_thread::get_id();
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
    Making(Making&&) = delete;
    Making& operator=(Making&&) = delete;
    ~Making() {
      typename Entries::node_type failed;  // ends after the lock
      {
        const std::lock_guard lock(cache_.mutex_);
        std::swap(entry_->second.storage, storage);
        entry_->second.maker = {};
        if (entry_->second.storage.expired()) {
          failed = cache_.entries_.extract(entry_);
        }
      }
      cache_.made_.notify_all();
    }

    WeakStorage storage;  // what was made, set before the end unless make has failed

   private:
    WeakCache& cache_;
    typename Entries::iterator entry_;
  };

  static constexpr std::size_t sweep_min = 16;

  // Moves entries that are not being made to taken. With the lock held.
  template <class Condition>
  void take_if(Entries& taken, Condition condition) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (!entry->second.in_making() && condition(entry->second)) {
        taken.insert(taken.end(), entries_.extract(entry));
      }
      entry = next;
    }
  }
  // With the lock held.
  void sweep(Entries& expired) {
    take_if(expired, [](const Entry& entry) { return entry.storage.expired(); });
    sweep_at_ = std::max(sweep_min, 2 * entries_.size());
  }

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable made_;
  Entries entries_;
  std::size_t sweep_at_ = sweep_min;
};

}  // namespace ebb::inline v0
