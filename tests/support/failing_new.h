// SPDX-License-Identifier: Apache-2.0
// operator new that fails at the n-th call on this thread. Used by tests that demand that what
// failed left nothing behind; a program gets it by linking failing_new.cpp.
#pragma once

#include <cstdint>

namespace ebb::test {

// Within its life, the calls number at, counted from 1, and times - 1 after it throw. Not nested.
class FailingNew {
 public:
  explicit FailingNew(std::uint64_t at, std::uint64_t times = 1) noexcept;
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  FailingNew(FailingNew&&) = delete;
  FailingNew& operator=(FailingNew&&) = delete;
  ~FailingNew();

  // Calls of this thread so far.
  std::uint64_t calls() const noexcept;
};

}  // namespace ebb::test
