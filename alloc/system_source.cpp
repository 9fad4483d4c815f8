// SPDX-License-Identifier: Apache-2.0
// Anonymous pages of the operating system. Stateless, so one for the process; any thread.
#include <ebb/alloc/source.h>

#include <sys/mman.h>
#include <unistd.h>

namespace ebb::inline v0 {

namespace {

class SystemSource final : public Source {
 public:
  // MAP_NORESERVE: address space is not charged before pages are touched, so that reserving much
  // more than is used works under the default overcommit rule.
  Range reserve(Bytes bytes) noexcept override {
    void* begin = ::mmap(nullptr, bytes.count(), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) {
      return {};
    }
    return {static_cast<std::byte*>(begin), bytes};
  }
  void release(Range range) noexcept override { ::munmap(range.begin, range.bytes.count()); }
  bool commit(Range /*range*/) noexcept override { return true; }
  void decommit(Range range) noexcept override {
    ::madvise(range.begin, range.bytes.count(), MADV_DONTNEED);
  }

  Bytes page_size() const noexcept override {
    return Bytes{static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))};
  }
  Device device() const noexcept override { return cpu; }
  const char* name() const noexcept override { return "system"; }
};

}  // namespace

Source& system_source() noexcept {
  // Never destroyed: blocks may outlive static destructors.
  alignas(SystemSource) static std::byte storage[sizeof(SystemSource)];
  static Source* const source = new (storage) SystemSource;
  return *source;
}

}  // namespace ebb::inline v0
