// SPDX-License-Identifier: Apache-2.0
// Plans of iterations as text, for the next run of the same program. Used by PlanSet::save and
// load. Pure functions: any thread. [alloc.replay]
//
//   ebb-plans 1                              the version
//   granule 64                               what offsets are multiples of
//   plan 1 3                                 how many files' names and entries follow
//   file train.cpp                           bytes that do not print, and '\', as \xHH
//   entry 1000 0 12 2 block 0 0              bytes, file (from 0), line, when it dies, kind, log2
//   of entry 640 0 13 3 outliving 0 -           the alignment, and the offset, or where there is
//   none, entry 4096 0 14 3 iteration 6 1024       '-'. More plans may follow checksum
//   af63bd4c8601b7df                FNV-1a of all bytes before this line
#pragma once

#include "iteration_plan.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

// Throws std::invalid_argument as PlanSet::save does.
std::string write_plans(std::span<const std::shared_ptr<const IterationPlan>> plans,
                        std::size_t granule);

// keep_name returns a copy of a file's name that outlives the plans, and everything recorded while
// they are followed; it is asked for names of a text with a right checksum only. Trusts no number
// of the text. Throws std::invalid_argument as PlanSet::load does.
std::vector<std::shared_ptr<const IterationPlan>> read_plans(
    std::string_view text, std::size_t granule,
    const std::function<const char*(std::string_view)>& keep_name);

}  // namespace ebb::inline v0::detail
