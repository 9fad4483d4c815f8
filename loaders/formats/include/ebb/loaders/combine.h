// SPDX-License-Identifier: Apache-2.0
// Data sets made of others: a part of one, several one after the other, one with its samples
// changed. They share what they are made of, and its stages: what could be fetched and cached still
// can. A sample that does not load is told as that of the data set that it came from. Any thread.
#pragma once

#include <ebb/loaders/dataset.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace ebb::inline v0 {

// Returns the samples [begin, end) of data. Throws std::invalid_argument when those are none, or
// are not in it.
//
//   const auto train = ebb::subset(data, 0, 50000);
//   const auto test = ebb::subset(data, 50000, data.size());
AnyDataset subset(AnyDataset data, std::uint64_t begin, std::uint64_t end);

// Returns the samples of data with these indices, in their order, 8 bytes for each. One may be
// there several times, and gets other random numbers each time. Throws std::invalid_argument when
// there is none, or an index is not in data.
AnyDataset subset(AnyDataset data, std::vector<std::uint64_t> indices);

// Returns the samples of all parts, one part after the other. Each worker makes a Local of each.
// Throws std::invalid_argument when there is no part, or one has another schema than the first,
// naming what differs.
AnyDataset concat(std::vector<AnyDataset> parts);

// Changes what data has written of a sample. Called by several threads at once; its random numbers
// must be those of the context, under names that data does not use.
using SampleTransform = std::function<void(const SampleContext&, SampleWriter&)>;

// Returns data with each sample changed by transform, as the last thing that is done to it: never
// cached, so it may be random. revision says which transform it is and with what options: it goes
// into the fingerprint, and a saved position is refused when it has changed.
//
//   auto noisy = ebb::transformed(data, "noise 0.1", [](const auto& context, auto& out) {
//     ebb::Random random = context.random("noise");
//     for (float& x : out.template field<float>(0)) x += 0.1f * random.normal();
//   });
AnyDataset transformed(const AnyDataset& data, std::string_view revision,
                       SampleTransform transform);

}  // namespace ebb::inline v0
