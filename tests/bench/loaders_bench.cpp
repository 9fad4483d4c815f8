// SPDX-License-Identifier: Apache-2.0
// What loaders cost beside the loading itself. Orders: an index, by kind and size, and the first
// index of an epoch; against a list that is shuffled whole.
#include "order_times.h"

#include <nlohmann/json.hpp>

namespace {

void add_entries(nlohmann::json& result) {
  ebb::bench::lift_figures(result, "ebb");
  result["method"] = {
      {"shuffled_ns",
       "an index, filled in batches of 64 one after the other; of the list: all "
       "of the shuffle"},
      {"first_index_ns", "from nothing to the first index of an epoch"},
      {"resume_ns", "the same at 90 % of 100,000,000 samples"},
      {"bucketed_ns", "with the sorting of its windows of 64 batches"},
  };
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ebb::bench;
  return run(
      {.name = "loaders",
       .sides = {{.name = "ebb", .measure = measure_orders, .part = "orders"},
                 {.name = "std-shuffle", .measure = measure_shuffled_list, .part = "orders"}},
       .report = add_entries},
      argc, argv);
}
