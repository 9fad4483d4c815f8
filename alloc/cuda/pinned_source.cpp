// SPDX-License-Identifier: Apache-2.0
// Anonymous pages of the system, registered with the driver. Refusals are values. Any thread.
#include "cuda/pinned_source.h"

#include "system_memory.h"

#include <cstdint>

#include <sys/mman.h>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + PinnedSource::page_bytes - 1) / PinnedSource::page_bytes *
         PinnedSource::page_bytes;
}

}  // namespace

// One page more than is wanted, so that the rest can begin at one.
Range PinnedSource::reserve(Bytes bytes) noexcept {
  const std::size_t wanted = round_up(bytes.count());
  void* const mapped = ::mmap(nullptr, wanted + page_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return {};
  }
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = round_up(address) - address;
  const Range range{begin + before, Bytes{wanted}};
  if (before != 0) {
    ::munmap(begin, before);
  }
  ::munmap(range.end(), page_bytes - before);
  if (!pages_.add(range)) {
    ::munmap(range.begin, wanted);
    return {};
  }
  return range;
}

void PinnedSource::release(Range range) noexcept {
  decommit(range);
  pages_.remove(range);
  ::munmap(range.begin, range.bytes.count());
}

// Registering touches the pages, and the kernel would end processes rather than refuse that.
bool PinnedSource::commit(Range range) noexcept {
  const CurrentContext current(context_, std::nothrow);
  if (!current.is_set() || range.bytes.count() > detail::available_memory_bytes()) {
    return false;
  }
  for (std::byte* begin = range.begin; begin != range.end(); begin += page_bytes) {
    if (!succeeded(cudaHostRegister(begin, page_bytes,
                                    cudaHostRegisterPortable | cudaHostRegisterMapped))) {
      decommit({range.begin, Bytes{static_cast<std::size_t>(begin - range.begin)}});
      return false;
    }
    pages_.mark({begin, Bytes{page_bytes}});
  }
  return true;
}

// Where the driver is gone the registration is too; the pages are the system's in any case.
void PinnedSource::decommit(Range range) noexcept {
  const CurrentContext current(context_, std::nothrow);
  pages_.take(range, [&current](Range page) {
    if (current.is_set()) {
      static_cast<void>(succeeded(cudaHostUnregister(page.begin)));
    }
    static_cast<void>(::madvise(page.begin, page.bytes.count(), MADV_DONTNEED));
  });
}

}  // namespace ebb::inline v0
