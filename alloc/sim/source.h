// SPDX-License-Identifier: Apache-2.0
// Pages of a simulated device, and host pages pinned for it, with a hard limit each. Used by heaps.
// Any thread: one lock for committing. [alloc.sim]
#pragma once

#include "sim/call_gate.h"
#include "sim/capture.h"
#include "sim/pages.h"

#include <ebb/alloc/source.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace ebb::inline v0 {

// What all sources of a machine share; it outlives them.
struct SimMemoryParts {
  CallGate& gate;
  SimCaptures& captures;
  SimAddresses& addresses;
};

class SimSource final : public Source {
 public:
  SimSource(const SimMemoryParts& parts, const SimRange::Use& use, Bytes capacity);

  Range reserve(Bytes bytes) noexcept override;
  void release(Range range) noexcept override;
  bool commit(Range range) noexcept override;
  void decommit(Range range) noexcept override;

  Bytes page_size() const noexcept override { return Bytes{use_.page_bytes}; }
  Device device() const noexcept override { return use_.is_pinned ? cpu : use_.device; }
  const char* name() const noexcept override { return name_.c_str(); }

  void set_capacity(Bytes capacity);
  SimMemory memory() const;

 private:
  struct Calls {
    SimCall reserve, commit, decommit, release;
  };

  static Calls calls_of(bool is_pinned) noexcept;
  bool admit(SimCall call) noexcept;
  // Returns where the range lies, or null where the call is refused.
  SimRange* admit(SimCall call, Range range) noexcept;
  bool commit_pages(SimRange& range, const std::vector<std::size_t>& pages) noexcept;
  void decommit_pages(SimRange& range, std::size_t first, std::size_t count, SimCall call) noexcept;

  const SimMemoryParts parts_;
  const SimRange::Use use_;
  const Calls calls_;
  const std::string name_;
  mutable std::mutex mutex_;  // guards memory_ and what pages are committed
  SimMemory memory_;
};

}  // namespace ebb::inline v0
