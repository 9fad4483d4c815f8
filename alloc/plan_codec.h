// SPDX-License-Identifier: Apache-2.0
// Plans of iterations as text, for the next run of the same program. Used by PlanSet::save and
// load. Pure functions: any thread. [alloc.replay]
//
//   ebb-plans 1
//   granule 64
//   place 20 train.cpp
//   plan 1 3
//   file model.cpp
//   entry 1000 0 12 2 block 0 0
//   entry 640 0 13 3 outliving 0 -
//   entry 4096 0 14 3 iteration 6 1024
//   checksum af63bd4c8601b7df
//
// - The version.
// - What offsets are multiples of.
// - The line and file where the iterations are opened.
// - A plan: how many files' names, and how many entries follow. More plans may come after it.
// - A name: bytes that do not print, and '\', as \xHH.
// - An entry: bytes, the file by its number from 0, the line, when it dies, the kind, log2 of the
//   alignment, and the offset, or '-' where there is none.
// - FNV-1a of all bytes before this line.
#pragma once

#include "iteration_plan.h"

#include <ebb/alloc/place.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

// Throws std::invalid_argument as PlanSet::save does.
std::string write_plans(const Place& place,
                        std::span<const std::shared_ptr<const IterationPlan>> plans,
                        std::size_t granule);

// What a text is to be the plans of, and where it begins.
struct PlanTextSpec {
  Place place;
  std::size_t granule = 0;
  std::size_t first_line = 1;  // its number in messages
};

// keep_name returns a copy of a file's name that outlives the plans, and everything recorded while
// they are followed; it is asked for names of a text with a right checksum only. Trusts no number
// of the text. Throws std::invalid_argument as PlanSet::load does.
std::vector<std::shared_ptr<const IterationPlan>> read_plans(
    std::string_view text, const PlanTextSpec& spec,
    const std::function<const char*(std::string_view)>& keep_name);

}  // namespace ebb::inline v0::detail
