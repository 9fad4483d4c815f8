// SPDX-License-Identifier: Apache-2.0
#include "trace_memory.h"

#include "fields.h"

#include <ebb/alloc/source.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

namespace ebb::world {

HeapMemory::HeapMemory(const Trace& trace, PlanSet* plans)
    : plans_(plans), pool_(system_source(), PoolOptions{.name = "replay"}) {
  heaps_.reserve(trace.threads);
  try {
    for (std::uint32_t thread = 0; thread < trace.threads; ++thread) {
      heaps_.push_back(&pool_.acquire());
    }
  } catch (...) {
    std::for_each(heaps_.begin(), heaps_.end(), [](Heap* heap) { Pool::park(*heap); });
    throw;
  }
  if (trace.loop_thread < heaps_.size()) {
    loop_heap_ = heaps_[trace.loop_thread];
  }
}

HeapMemory::~HeapMemory() {
  replay_.end();
  std::for_each(heaps_.begin(), heaps_.end(), [](Heap* heap) { Pool::park(*heap); });
}

std::uint64_t HeapMemory::reserved() const noexcept {
  std::uint64_t sum = 0;
  for (const Heap* const heap : heaps_) {
    sum += heap->stats().reserved.count();
  }
  return sum;
}

SystemMemory::SystemMemory() : file_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) {
    throw std::system_error(errno, std::system_category(), "/proc/self/statm");
  }
  ::malloc_trim(0);  // what was freed before would be used first, and not count
  before_ = resident();
}

SystemMemory::~SystemMemory() {
  ::close(file_);
}

SystemMemory::Block SystemMemory::take(std::uint64_t bytes, std::uint32_t /*thread*/) noexcept {
  void* block = nullptr;
  return ::posix_memalign(&block, default_align_cpu.value(), std::max<std::uint64_t>(bytes, 1)) == 0
             ? block
             : nullptr;
}

void SystemMemory::give(Block block, std::uint32_t /*thread*/) noexcept {
  std::free(block);
}

std::uint64_t SystemMemory::reserved() const noexcept {
  const std::uint64_t now = resident();
  return now - std::min(now, before_);
}

// The second number of the file, in pages.
std::uint64_t SystemMemory::resident() const noexcept {
  std::array<char, 128> text{};
  const ssize_t got = ::pread(file_, text.data(), text.size(), 0);
  const std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t begin = std::min(line.find(' '), line.size() - 1) + 1;
  const std::uint64_t pages =
      line.empty() ? 0
                   : whole_number(line.substr(begin, line.find(' ', begin) - begin)).value_or(0);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace ebb::world
