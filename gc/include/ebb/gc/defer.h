// SPDX-License-Identifier: Apache-2.0
// Where releasing must not happen: inside a device's callback, under a lock of the host's. Belongs
// to the thread that makes it. [gc.defer]
#pragma once

namespace ebb::inline v0 {

// While it lives, last references that this thread drops only enqueue the storage: no memory is
// released and no finalizer runs. Who releases them is said at Storage::defer_release. Takes one
// short lock per storage. Nor does what the thread makes or opens meanwhile release anything; only
// an iteration that it closes runs its own.
class DeferReleases {
 public:
  DeferReleases() noexcept;
  DeferReleases(const DeferReleases&) = delete;
  DeferReleases& operator=(const DeferReleases&) = delete;
  DeferReleases(DeferReleases&&) = delete;
  DeferReleases& operator=(DeferReleases&&) = delete;
  ~DeferReleases();

 private:
  bool saved_;
};

}  // namespace ebb::inline v0
