// SPDX-License-Identifier: Apache-2.0
#include "trace_file.h"

#include "fields.h"
#include "line_reader.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ebb::world {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;  // of a block
constexpr std::uint64_t most_together = std::uint64_t{1} << 62;
constexpr std::size_t most_threads = 256;  // each has a heap

class TraceFileReader {
 public:
  explicit TraceFileReader(const std::string& path) : reader_(path) {}

  Trace read() {
    while (reader_.next()) {
      if (reader_.line().front() != '#') {
        take_line();
      }
    }
    trace_.threads = static_cast<std::uint32_t>(threads_.size());
    return std::move(trace_);
  }

 private:
  struct Known {
    std::uint32_t block = 0;
    bool freed = false;
  };

  void take_line() {
    fields_ = split_fields(reader_.line());
    const std::string_view op = fields_[0];
    if (op != "a" && op != "f" && op != "i") {
      reader_.fail("unknown operation \"" + std::string(op) + "\": a, f and i there are");
    }
    const std::size_t fields = op == "a" ? 4 : 3;
    if (fields_.size() != fields) {
      reader_.fail(std::to_string(fields_.size()) + " fields, where " + std::string(op) + " has " +
                   std::to_string(fields));
    }
    if (op == "a") {
      take_allocation();
    } else if (op == "f") {
      take_free();
    } else {
      take_mark();
    }
  }

  void take_allocation() {
    const std::uint32_t thread = take_thread();
    const std::uint64_t id = number(2, "id");
    const std::uint64_t bytes = number(3, "bytes");
    if (bytes > most_bytes) {
      reader_.fail("bytes is " + std::to_string(bytes) + ", above 2^40");
    }
    total_ += bytes;
    if (total_ >= most_together ||
        trace_.bytes.size() == std::numeric_limits<std::uint32_t>::max()) {
      reader_.fail("too much: 2^62 bytes, or 2^32 blocks, up to here");
    }
    const auto block = static_cast<std::uint32_t>(trace_.bytes.size());
    const auto [known, is_new] = known_.try_emplace(id, Known{block});
    if (!is_new) {
      reader_.fail("id " + std::to_string(id) + " is allocated twice" +
                   (known->second.freed ? ", if freed in between" : ""));
    }
    trace_.bytes.push_back(bytes);
    trace_.events.push_back({.block = block, .thread = thread, .is_free = false});
  }

  void take_free() {
    const std::uint32_t thread = take_thread();
    const std::uint64_t id = number(2, "id");
    const auto known = known_.find(id);
    if (known == known_.end()) {
      reader_.fail("id " + std::to_string(id) + " is freed, and was not allocated");
    }
    if (known->second.freed) {
      reader_.fail("id " + std::to_string(id) + " is freed twice");
    }
    known->second.freed = true;
    trace_.events.push_back({.block = known->second.block, .thread = thread, .is_free = true});
  }

  void take_mark() {
    const std::uint32_t thread = take_thread();
    const std::uint64_t count = number(2, "the iteration");
    if (last_ && count <= *last_) {
      reader_.fail("iteration " + std::to_string(count) + " comes after iteration " +
                   std::to_string(*last_));
    }
    if (last_ && thread != trace_.loop_thread) {
      reader_.fail("this iteration is another thread's than the one before");
    }
    last_ = count;
    trace_.loop_thread = thread;
    trace_.marks.push_back(trace_.events.size());
  }

  std::uint32_t take_thread() {
    const std::uint64_t thread = number(1, "thread");
    const auto found =
        threads_.try_emplace(thread, static_cast<std::uint32_t>(threads_.size())).first;
    if (threads_.size() > most_threads) {
      reader_.fail("more than " + std::to_string(most_threads) + " threads");
    }
    return found->second;
  }

  std::uint64_t number(std::size_t field, const char* name) const {
    const std::optional<std::uint64_t> value = whole_number(fields_[field]);
    if (!value) {
      reader_.fail(std::string(name) + " is \"" + std::string(fields_[field]) +
                   "\", no whole number from 0 to 2^64 - 1");
    }
    return *value;
  }

  LineReader reader_;
  std::vector<std::string_view> fields_;
  std::unordered_map<std::uint64_t, Known> known_;  // by id
  std::unordered_map<std::uint64_t, std::uint32_t> threads_;
  std::optional<std::uint64_t> last_;  // iteration
  std::uint64_t total_ = 0;
  Trace trace_;
};

}  // namespace

Trace read_trace_file(const std::string& path) {
  return TraceFileReader(path).read();
}

}  // namespace ebb::world
