// SPDX-License-Identifier: Apache-2.0
// Canaries and quarantine. A guarded block is [padding | canary | bytes | canary]; padding and
// front canary together are as long as the alignment, or the canary where that is longer, so that a
// block tells the upstream's block without anything stored. In quarantine a record's top is null,
// which is how a second free is found. Any thread.
#include "layer.h"

#include <ebb/alloc/guard.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t canary_bytes = 32;

std::size_t front_bytes(Align align) noexcept {
  return std::max(align.value(), canary_bytes);
}

bool is_guarded(Stream stream) noexcept {
  return stream.device.kind == DeviceKind::cpu;
}

// Depends on the address, so that a canary copied from elsewhere does not pass.
unsigned char canary_at(const unsigned char* at) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  return static_cast<unsigned char>(0xa5U ^ (address * 31U) ^ (address >> 12U));
}

void write_canary(unsigned char* at) noexcept {
  for (unsigned char* byte = at; byte != at + canary_bytes; ++byte) {
    *byte = canary_at(byte);
  }
}

// Returns the first damaged byte, or null.
const unsigned char* damage_in(const unsigned char* at) noexcept {
  for (const unsigned char* byte = at; byte != at + canary_bytes; ++byte) {
    if (*byte != canary_at(byte)) {
      return byte;
    }
  }
  return nullptr;
}

const char* text_of(GuardFault fault) noexcept {
  switch (fault) {
    case GuardFault::damaged_before:
      return "bytes before the block were written";
    case GuardFault::damaged_after:
      return "bytes after the block were written";
    case GuardFault::written_after_free:
      return "the block was written after it was given back";
    case GuardFault::freed_twice:
      return "the block was given back twice";
    case GuardFault::foreign:
      return "the block given back is not from here";
  }
  return "?";
}

void print_and_abort(void* /*context*/, const GuardReport& report) noexcept {
  std::fprintf(stderr, "ebb: [Guard] %s: block %p of %zu B in \"%s\", at offset %td\n",
               text_of(report.fault), report.data, report.bytes.count(), report.resource,
               report.offset);
  std::abort();
}

unsigned char* begin_of(const Block& block) noexcept {
  return static_cast<unsigned char*>(block.data);
}

GuardOptions checked(GuardOptions options) {
  EBB_REQUIRE(options.quarantine <= Guard::quarantine_max, "Guard", "the quarantine holds at most ",
              std::to_string(Guard::quarantine_max), " blocks");
  if (options.report == nullptr) {
    options.report = print_and_abort;
  }
  return options;
}

}  // namespace

Guard::Guard(Resource& upstream, GuardOptions options)
    : upstream_(upstream), options_(checked(options)) {}

Guard::~Guard() {
  flush();
}

void Guard::report(GuardFault fault, const Block& block, std::ptrdiff_t offset) const noexcept {
  options_.report(options_.context, {fault, block.data, block.bytes, offset, upstream_.name()});
}

Block Guard::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  const bool guarded = is_guarded(stream);
  const std::size_t front = guarded ? front_bytes(align) : 0;
  const std::size_t around = guarded ? front + canary_bytes : 0;
  if (bytes.count() > std::numeric_limits<std::size_t>::max() - around) {
    return {};
  }
  const Bytes whole{bytes.count() + around};
  Block block = upstream_.try_allocate(whole, align, stream);
  if (!block && flush() != 0) {
    block = upstream_.try_allocate(whole, align, stream);
  }
  if (!block || !guarded) {
    return detail::take_over(block, *this);
  }
  block.data = begin_of(block) + front;
  block.bytes = bytes;
  block.record->bytes = bytes;
  write_canary(begin_of(block) - canary_bytes);
  std::memset(block.data, fresh_byte, bytes.count());
  write_canary(begin_of(block) + bytes.count());
  return detail::take_over(block, *this);
}

void Guard::deallocate(const Block& block) noexcept {
  if (!detail::is_from(block, *this)) [[unlikely]] {
    const bool twice = block.record != nullptr && block.record->top == nullptr;
    report(twice ? GuardFault::freed_twice : GuardFault::foreign, block, 0);
    return;
  }
  if (!is_guarded(block.stream)) {
    detail::hand_down(block, upstream_);
    return;
  }
  check_canaries(block);
  if (options_.quarantine == 0 || block.bytes > options_.quarantine_bytes) {
    give_down(block);
    return;
  }
  std::memset(block.data, freed_byte, block.bytes.count());
  block.record->top = nullptr;
  hold(block);
  Block oldest;
  while (take_oldest(oldest, options_.quarantine, options_.quarantine_bytes.count())) {
    release_checked(oldest);
  }
}

std::size_t Guard::flush() noexcept {
  std::size_t blocks = 0;
  Block oldest;
  while (take_oldest(oldest, 0, 0)) {
    release_checked(oldest);
    ++blocks;
  }
  return blocks;
}

OutOfMemoryInfo Guard::explain(Bytes asked) const {
  return detail::explain_through(*this, upstream_, asked);
}

// There is always room: of threads that come at once each puts one and takes the excess.
void Guard::hold(const Block& block) noexcept {
  Block evicted;
  {
    const std::lock_guard lock(mutex_);
    if (count_ == held_.size()) {
      evicted = pop_oldest();
    }
    held_[(first_ + count_) % held_.size()] = block;
    ++count_;
    held_bytes_ += block.bytes.count();
  }
  if (evicted) {
    release_checked(evicted);
  }
}

// Takes the oldest block while there are more than blocks_max of them, or more bytes.
bool Guard::take_oldest(Block& block, std::size_t blocks_max, std::size_t bytes_max) noexcept {
  const std::lock_guard lock(mutex_);
  if (count_ == 0 || (count_ <= blocks_max && held_bytes_ <= bytes_max)) {
    return false;
  }
  block = pop_oldest();
  return true;
}

Block Guard::pop_oldest() noexcept {
  const Block oldest = std::exchange(held_[first_], Block{});
  first_ = (first_ + 1) % held_.size();
  --count_;
  held_bytes_ -= oldest.bytes.count();
  return oldest;
}

void Guard::release_checked(const Block& block) noexcept {
  const unsigned char* begin = begin_of(block);
  const unsigned char* end = begin + block.bytes.count();
  const unsigned char* written =
      std::find_if(begin, end, [](unsigned char byte) { return byte != freed_byte; });
  if (written != end) {
    report(GuardFault::written_after_free, block, written - begin);
  }
  check_canaries(block);
  give_down(block);
}

void Guard::give_down(const Block& block) noexcept {
  const std::size_t front = front_bytes(block.align);
  Block whole = block;
  whole.data = begin_of(block) - front;
  whole.bytes = Bytes{front + block.bytes.count() + canary_bytes};
  detail::hand_down(whole, upstream_);
}

void Guard::check_canaries(const Block& block) const noexcept {
  const unsigned char* begin = begin_of(block);
  if (const unsigned char* byte = damage_in(begin - canary_bytes)) {
    report(GuardFault::damaged_before, block, byte - begin);
  }
  if (const unsigned char* byte = damage_in(begin + block.bytes.count())) {
    report(GuardFault::damaged_after, block, byte - begin);
  }
}

}  // namespace ebb::inline v0
