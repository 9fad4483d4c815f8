// SPDX-License-Identifier: Apache-2.0
// Whether something ends the program, and with which words: it is done in a forked child. Used by
// tests of what aborts. Single-threaded tests only.
#pragma once

#include <csignal>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace ebb::test {

// Returns what body printed to stderr when it aborted, else an empty string.
template <class Body>
std::string abort_message(Body body) {
  int ends[2];
  if (::pipe(ends) != 0) {
    return {};
  }
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    std::signal(SIGABRT, SIG_DFL);  // else doctest's handler reports a failure
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char part[256];
  for (::ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  return aborted ? "aborted: " + text : std::string();
}

}  // namespace ebb::test
