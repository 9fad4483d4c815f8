// SPDX-License-Identifier: Apache-2.0
// The scratch memory of one worker: grows to what a sample needs, then never allocates again; under
// a limit it goes back after each sample, so that other workers get on.
// Used by SampleContext::scratch. One thread at a time.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/gc/owner.h>
#include <ebb/gc/storage.h>

#include <cstddef>
#include <span>
#include <vector>

namespace ebb::inline v0::detail {

class Scratch {
 public:
  // Charged to owner: a loader. keeps: whether memory stays from one sample to the next.
  Scratch(Owner owner, bool keeps) : owner_(owner), keeps_(keeps) { blocks_.reserve(4); }

  // Returns bytes that stay valid until reset(), aligned to 64. Throws OutOfMemory.
  std::span<std::byte> take(Bytes bytes);
  // Takes back what was handed out.
  void reset() noexcept;

 private:
  Owner owner_;
  bool keeps_;
  std::vector<Storage> blocks_;
  std::size_t used_ = 0;    // of the last block
  std::size_t wanted_ = 0;  // by the sample that wanted most: the size of the next first block
};

}  // namespace ebb::inline v0::detail
