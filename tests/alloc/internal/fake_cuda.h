// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime and driver on host memory in place of the real ones, for what the backend asks of
// them: which calls, with which context, and what is left when some fail. Work is done at once, or
// when its graph is launched. Linked by one test, with the backend's sources. One thread.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ebb::test {

using FakeWork = std::vector<std::function<void()>>;

struct FakeStream {
  int device = 0;
  FakeWork* capture = nullptr;
};

struct FakeCuda {
  static constexpr int devices = 2;
  static constexpr std::size_t page_bytes = std::size_t{2} << 20;

  std::map<std::string, int> calls;  // by name
  // The next call of that name after so many fails with that code.
  std::map<std::string, std::pair<int, int>> failures;
  bool is_gone = false;  // as when a process ends
  int last_error = 0;
  int current = -1;        // the thread's context, by device; -1: none
  std::set<int> contexts;  // of these devices
  int wrong_contexts = 0;  // calls with another device's context, or without one
  std::map<char*, std::size_t> reserved;
  std::set<char*> mapped;  // pages
  std::set<char*> registered;
  std::set<FakeStream*> streams;
  int events = 0;  // alive, and so on
  int graphs = 0;
  int execs = 0;

  int count(const char* name) const {
    const auto call = calls.find(name);
    return call == calls.end() ? 0 : call->second;
  }
  void fail(const char* name, int code, int after = 0) { failures[name] = {after, code}; }
};

// The one that the functions work on; each test begins with a new one.
extern FakeCuda fake;

}  // namespace ebb::test
