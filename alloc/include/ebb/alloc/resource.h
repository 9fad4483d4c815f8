// SPDX-License-Identifier: Apache-2.0
// The interface of everything that allocates and frees blocks: heaps, and adaptors around them.
// Each implementation states its own thread rule; deallocate is safe on any thread for all.
#pragma once

#include <ebb/alloc/block.h>
#include <ebb/alloc/error.h>

#include <optional>

namespace ebb::inline v0 {

// Sizes may be zero: the block is then valid, distinct and holds no bytes. [alloc.resource]
class Resource {
 public:
  Resource() = default;
  Resource(const Resource&) = delete;
  Resource& operator=(const Resource&) = delete;
  Resource(Resource&&) = delete;
  Resource& operator=(Resource&&) = delete;
  virtual ~Resource() = default;

  // Returns a block of at least bytes, aligned to align. Throws OutOfMemory; a failure changes
  // nothing.
  Block allocate(Bytes bytes, Align align = default_align_cpu, Stream stream = {});

  // As allocate, but a refusal is a false block.
  [[nodiscard]] virtual Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                           Stream stream = {}) noexcept = 0;

  // Takes back a block that this resource handed out. Any thread, exactly once.
  virtual void deallocate(const Block& block) noexcept = 0;

  // Gives up the memory under a live block that this resource handed out, but not its addresses: it
  // reads as zeros from now on, its range stays reserved until deallocate, and what is written to
  // it may come back or not. Whoever calls it holds the block, on any thread. Returns how many
  // bytes of whole pages went back, or nothing where the resource cannot do this. [gc.policy]
  virtual std::optional<Bytes> try_revoke(const Block& block) noexcept;

  // Returns what the exception for a refused request says. Called after the refusal, on the
  // thread that asked.
  virtual OutOfMemoryInfo explain(Bytes asked) const = 0;

  // Returns a short name for messages; valid as long as the resource.
  virtual const char* name() const noexcept = 0;
};

}  // namespace ebb::inline v0
