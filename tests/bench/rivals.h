// SPDX-License-Identifier: Apache-2.0
// The allocators that ebb is measured against, as one would deploy them: LD_PRELOAD for those that
// replace malloc, mallopt for a tuned glibc. Used by the mains of benchmarks.
#pragma once

#include "harness.h"

namespace ebb::bench {

using Measure = std::function<Figures(const Effort&)>;

// Returns one side per rival, each measuring the same through malloc and free: glibc-tuned (no
// mmap, no trimming), mimalloc, tcmalloc, jemalloc, tbbmalloc. A rival that is not installed is
// missing, with the name of Debian's package.
std::vector<Side> rivals(const std::string& part, const Measure& measure);

// Returns one of them.
Side rival(const std::string& name, const std::string& part, const Measure& measure);

// glibc as it comes.
Side default_glibc(const std::string& part, const Measure& measure);

}  // namespace ebb::bench
