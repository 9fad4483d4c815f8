// SPDX-License-Identifier: Apache-2.0
// Runs a piece of a test in a forked child, for what ends a process or limits it. Call while the
// test has one thread only, but for tests of what a child may do that lacks its parent's threads.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace ebb::test {

// Returns the child's wait status; a child that takes longer than deadline_s, if any, is ended by
// SIGALRM. What body returns is the exit status, through std::exit, so that
// static objects are destroyed and sanitizers look at what is left.
inline int run_in_child(const std::function<int()>& body, unsigned deadline_s = 0) {
  std::fflush(nullptr);  // else the child writes what the parent has buffered as well
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(deadline_s);
    std::exit(body());  // NOLINT(concurrency-mt-unsafe): the child has one thread
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

inline bool exited_with_0(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace ebb::test
