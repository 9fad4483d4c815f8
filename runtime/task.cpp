// SPDX-License-Identifier: Apache-2.0
// How a task runs: under its owner, with the thread's own state restored afterwards. [gc.owner]
#include <ebb/runtime/executor.h>

#include <utility>

namespace ebb::inline v0 {

void Task::execute() noexcept {
  // Moved out first: run() may end the task's life, and the job ends only after the scope.
  const Job job = std::move(job_);
  const OwnerScope scope(job.owner(), HeapStay::with_scope);
  run();
}

}  // namespace ebb::inline v0
