// SPDX-License-Identifier: Apache-2.0
#include "support/failing_new.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace ebb::test {

namespace {

struct Fault {
  std::uint64_t calls = 0;
  std::uint64_t first = 0;
  std::uint64_t times = 0;
};
thread_local constinit Fault fault;

bool fails() noexcept {
  const std::uint64_t call = ++fault.calls;
  return call >= fault.first && call - fault.first < fault.times;
}

}  // namespace

FailingNew::FailingNew(std::uint64_t at, std::uint64_t times) noexcept {
  fault = {.calls = 0, .first = at, .times = times};
}

FailingNew::~FailingNew() {
  fault = {};
}

std::uint64_t FailingNew::calls() const noexcept {
  return fault.calls;
}

}  // namespace ebb::test

// The library's other forms end up in these. Those for over-aligned types stay its own.
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return ebb::test::fails() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}

void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
