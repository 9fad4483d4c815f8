// SPDX-License-Identifier: Apache-2.0
// Which executor a test run asks for by EBB_TEST_EXECUTOR=tbb|jthread. ThreadSanitizer cannot see
// into TBB, so its runs say jthread, and tests that need TBB leave themselves out. Any thread.
#pragma once

#include <ebb/runtime/runtime.h>

#include <cstdlib>
#include <string_view>

namespace ebb::test {

inline ExecutorKind executor_choice() {
  const char* const name = std::getenv("EBB_TEST_EXECUTOR");
  return name != nullptr && std::string_view(name) == "jthread" ? ExecutorKind::jthread
                                                                : ExecutorKind::tbb;
}

}  // namespace ebb::test
