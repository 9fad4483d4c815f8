// SPDX-License-Identifier: Apache-2.0
// Random programs of streams, events, copies, fills and graphs on two simulated devices, against a
// model that knows what each cell holds when all that comes before is done. EBB_TEST_SEED repeats a
// run. [alloc.sim]
#include "sim_fixture.h"
#include "support/test_settings.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

using ebb::Event;
using ebb::Stream;
using ebb::test::SimFixture;

namespace {

constexpr std::size_t streams = 5;
constexpr std::size_t cells = 24;
constexpr std::size_t width = 33;  // ints of a cell

// Each cell is used by one stream after the other, with an event between where they differ: so the
// order of calls is the one order that there is.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < streams; ++i) {
      streams_[i] = sim_.stream(static_cast<unsigned>(i % 2));
      events_[i] = sim_.backend->make_event(streams_[i].device);
    }
    int* const homes[] = {sim_.ints(cells * width, 0), sim_.ints(cells * width, 1),
                          sim_.pinned_ints(cells * width)};
    for (std::size_t i = 0; i < cells; ++i) {
      cells_[i] = {homes[i % 3] + i * width, 0, 0};
      sim_.fill_ints(cells_[i].data, 0, width, streams_[0]);
    }
    sim_.machine.set_event_lag_all(std::chrono::microseconds(300));
  }

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      step();
    }
    sim_.machine.resume_all();
    for (std::size_t i = 0; i < streams; ++i) {
      sim_.backend->record(events_[i], streams_[i]);
      REQUIRE(sim_.comes(events_[i]));
    }
    for (const Cell& cell : cells_) {
      check(cell);
    }
    CHECK(sim_.machine.violations().empty());
  }

 private:
  struct Cell {
    int* data;
    int value;           // of all its ints
    std::size_t stream;  // that used it last
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  Cell& any_cell() { return cells_[below(cells)]; }

  // Makes the stream come after who used the cell last.
  void take(Cell& cell, std::size_t stream) {
    if (cell.stream != stream) {
      sim_.backend->record(events_[cell.stream], streams_[cell.stream]);
      sim_.backend->wait(streams_[stream], events_[cell.stream]);
      cell.stream = stream;
    }
  }

  void step() {
    const std::size_t stream = below(streams);
    const std::uint64_t what = below(100);
    if (what < 35) {
      Cell& cell = any_cell();
      take(cell, stream);
      fill(cell, stream);
    } else if (what < 75) {
      copy(any_cell(), any_cell(), stream);
    } else if (what < 85) {
      copy_from_host(any_cell(), stream);
    } else if (what < 90) {
      launch(stream);
    } else if (what < 95) {
      look(any_cell());
    } else if (what < 97) {
      sim_.machine.hold(streams_[stream]);
    } else {
      sim_.machine.resume_all();
    }
  }

  void fill(Cell& cell, std::size_t stream) {
    cell.value = ++last_value_;
    sim_.fill_ints(cell.data, static_cast<std::uint32_t>(cell.value), width, streams_[stream]);
  }

  void copy(Cell& to, Cell& from, std::size_t stream) {
    if (&to == &from) {
      return;
    }
    take(to, stream);
    take(from, stream);
    sim_.copy_ints(to.data, from.data, width, streams_[stream]);
    to.value = from.value;
  }

  void copy_from_host(Cell& cell, std::size_t stream) {
    take(cell, stream);
    cell.value = ++last_value_;
    const std::vector<int> pageable(width, cell.value);
    sim_.copy_ints(cell.data, pageable.data(), width, streams_[stream]);
  }

  // A fork and a join within a capture.
  void launch(std::size_t stream) {
    Cell& cell = any_cell();
    Cell& other = any_cell();
    take(cell, stream);
    take(other, stream);
    const std::size_t side = (stream + 2) % streams;  // of the same device, or the first one
    if (&cell == &other || streams_[side].device != streams_[stream].device) {
      return;
    }
    sim_.backend->begin_capture(streams_[stream]);
    fill(cell, stream);
    const Event fork = sim_.recorded(streams_[stream]);
    sim_.backend->wait(streams_[side], fork);
    fill(other, side);
    const Event join = sim_.recorded(streams_[side]);
    sim_.backend->wait(streams_[stream], join);
    const ebb::GraphExec graph = sim_.backend->end_capture(streams_[stream], graph_);
    if (graph != graph_) {
      sim_.backend->destroy_graph(graph_);
    }
    graph_ = graph;
    sim_.backend->launch(graph, streams_[stream]);
    sim_.backend->destroy_event(fork);
    sim_.backend->destroy_event(join);
  }

  // Waits for who used a cell last, as a host does.
  void look(const Cell& cell) {
    sim_.machine.resume_all();
    sim_.backend->record(events_[cell.stream], streams_[cell.stream]);
    REQUIRE(sim_.comes(events_[cell.stream]));
    check(cell);
  }

  static void check(const Cell& cell) {
    REQUIRE(std::all_of(cell.data, cell.data + width, [&](int i) { return i == cell.value; }));
  }

  SimFixture sim_{2};
  std::mt19937_64 random_;
  std::array<Stream, streams> streams_;
  std::array<Event, streams> events_;
  std::array<Cell, cells> cells_{};
  ebb::GraphExec graph_;
  int last_value_ = 0;
};

}  // namespace

TEST_CASE("simulated devices: random programs end as if their work had run in the order of calls") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  for (std::uint64_t round = 0; round < 4; ++round) {
    Program(seed + round).run(ebb::test::stress(20000) / 8);
  }
}
