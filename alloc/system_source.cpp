// SPDX-License-Identifier: Apache-2.0
// Anonymous pages of the operating system. Stateless, so two for the process; any thread.
#include "file_pages.h"
#include "system_memory.h"

#include <ebb/alloc/source.h>

#include <cstring>
#include <new>

#include <sys/mman.h>

namespace ebb::inline v0 {

namespace {

class SystemSource final : public Source {
 public:
  // advice: MADV_HUGEPAGE or MADV_NOHUGEPAGE.
  SystemSource(int advice, const char* name) noexcept : advice_(advice), name_(name) {}

  // MAP_NORESERVE: address space is not charged before pages are touched, so that reserving much
  // more than is used works under the default overcommit rule.
  Range reserve(Bytes bytes) noexcept override {
    void* begin = ::mmap(nullptr, bytes.count(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) {
      return {};
    }
    // A refusal means a kernel without huge pages.
    static_cast<void>(::madvise(begin, bytes.count(), advice_));
    return {static_cast<std::byte*>(begin), bytes};
  }
  void release(Range range) noexcept override { ::munmap(range.begin, range.bytes.count()); }
  // Nothing to do but to refuse what the whole machine does not have, as the system itself does
  // without MAP_NORESERVE: else the process ends where it touches the pages.
  bool commit(Range range) noexcept override {
    return range.bytes.count() <= detail::machine_memory_bytes();
  }
  void decommit(Range range) noexcept override {
    // Refused where the host has locked its memory; newer kernels know a form that is not. Where
    // they do not the pages stay, but read as zeros like others that went back.
    constexpr int dontneed_locked = 24;
    if (::madvise(range.begin, range.bytes.count(), MADV_DONTNEED) != 0 &&
        ::madvise(range.begin, range.bytes.count(), dontneed_locked) != 0) {
      std::memset(range.begin, 0, range.bytes.count());
    }
  }

  Bytes page_size() const noexcept override { return Bytes{detail::system_page_bytes()}; }
  Device device() const noexcept override { return cpu; }
  const char* name() const noexcept override { return name_; }

 private:
  int advice_;
  const char* name_;
};

// Never destroyed: blocks may outlive static destructors.
template <int advice>
Source& immortal(const char* name) noexcept {
  alignas(SystemSource) static std::byte storage[sizeof(SystemSource)];
  static Source* const source = new (storage) SystemSource(advice, name);
  return *source;
}

}  // namespace

Source& system_source() noexcept {
  return immortal<MADV_NOHUGEPAGE>("system");
}

Source& huge_page_source() noexcept {
  return immortal<MADV_HUGEPAGE>("huge pages");
}

}  // namespace ebb::inline v0
