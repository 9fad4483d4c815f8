// SPDX-License-Identifier: Apache-2.0
// Random programs on several streams of a slow device: every block is written by its stream, and
// looked at by all that use it, in their order. Whoever has memory too early is seen by that, and
// by a thread sanitizer. [alloc.cuda]
#include "content.h"
#include "device_fixture.h"
#include "support/test_settings.h"

#include <cstdint>
#include <random>
#include <vector>

using ebb::Block;
using ebb::Bytes;
using ebb::Stream;
using ebb::test::DeviceRig;
using ebb::test::mib;

namespace {

struct Live {
  Block block;
  unsigned char byte;
};

class Program : public DeviceRig {
 public:
  explicit Program(std::uint64_t seed) : DeviceRig({.memory = mib(48)}), random_(seed) {
    for (int i = 0; i < 3; ++i) {
      streams_.push_back(context->make_stream());
    }
    machine.set_delay_all(std::chrono::microseconds(5));
    machine.set_event_lag_all(std::chrono::microseconds(200));
  }
  ~Program() {
    while (!live_.empty()) {
      free_one();
    }
    CHECK(content.is_right());
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;
  Program& operator=(Program&&) = delete;

  void step() {
    const std::uint64_t what = random_() % 100;
    if (what < 45 && live_.size() < 40) {
      make_one();
    } else if (what < 60 && !live_.empty()) {
      use_one();
    } else if (what < 65) {
      context->wait(some_stream(), some_stream());
    } else if (what < 68) {
      context->record(some_stream());
    } else if (what < 69) {
      context->destroy_stream(std::exchange(some_stream(), context->make_stream()));
    } else if (what < 70) {
      heap.trim();
    } else if (!live_.empty()) {
      free_one();
    }
  }
  ebb::test::Content content{*context};

 private:
  Stream& some_stream() { return streams_[random_() % streams_.size()]; }

  void make_one() {
    const std::size_t bytes = 1 + random_() % (random_() % 3 == 0 ? mib(2).count() : 20000);
    const Block block = take(Bytes{bytes}, some_stream());
    const Live made{block, static_cast<unsigned char>(random_())};
    content.write(block, made.byte);
    live_.push_back(made);
  }
  void use_one() {
    const Live& used = live_[random_() % live_.size()];
    const Stream on = some_stream();
    if (context->knows(used.block.stream)) {
      context->wait(on, used.block.stream);
      heap.note_use(*used.block.record, on);
      content.look_at(used.block, used.byte, on);
    }
  }
  void free_one() {
    std::swap(live_[random_() % live_.size()], live_.back());
    const Live freed = live_.back();
    live_.pop_back();
    if (context->knows(freed.block.stream)) {
      content.look_at(freed.block, freed.byte, freed.block.stream);
    }
    heap.deallocate(freed.block);
  }
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<Live> live_;
};

}  // namespace

TEST_CASE("device heap: no stream has memory that another one still uses") {
  const std::uint64_t seed = ebb::test::test_seed();
  MESSAGE("EBB_TEST_SEED=" << seed);
  Program program(seed);
  for (std::uint64_t i = 0; i < ebb::test::stress(5000); ++i) {
    program.step();
  }
  CHECK(program.content.is_right());
}
