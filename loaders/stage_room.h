// SPDX-License-Identifier: Apache-2.0
// Where the bytes that a stage makes of a sample go: scratch memory while the sample is worked on
// by one thread, a block of its own where another one goes on. One thread at a time.
#pragma once

#include "scratch.h"

#include <ebb/alloc/bytes.h>
#include <ebb/gc/birth.h>
#include <ebb/gc/storage.h>

#include <cstddef>
#include <span>
#include <utility>

namespace ebb::inline v0::detail {

class StageRoom {
 public:
  StageRoom() = default;
  StageRoom(const StageRoom&) = delete;
  StageRoom& operator=(const StageRoom&) = delete;
  StageRoom(StageRoom&&) = delete;
  StageRoom& operator=(StageRoom&&) = delete;
  virtual ~StageRoom() = default;

  // Throws OutOfMemory.
  virtual std::span<std::byte> make(Bytes bytes) = 0;
};

class ScratchRoom final : public StageRoom {
 public:
  explicit ScratchRoom(Scratch& scratch) noexcept : scratch_(scratch) {}
  std::span<std::byte> make(Bytes bytes) override { return scratch_.take(bytes); }

 private:
  Scratch& scratch_;
};

class BlockRoom final : public StageRoom {
 public:
  BlockRoom(Owner owner, const Birth& birth) noexcept : owner_(owner), birth_(birth) {}
  std::span<std::byte> make(Bytes bytes) override {
    block_ = Storage::make(owner_, bytes, default_align_cpu, birth_);
    return {static_cast<std::byte*>(block_.data()), bytes.count()};
  }
  Storage take() noexcept { return std::move(block_); }

 private:
  Owner owner_;
  const Birth& birth_;
  Storage block_;
};

}  // namespace ebb::inline v0::detail
