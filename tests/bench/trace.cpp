// SPDX-License-Identifier: Apache-2.0
// Reading traces. Ids become slots that are used again, so that whoever replays needs few.
#include "trace.h"

#include "harness.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ebb::bench {
namespace {

class Reader {
 public:
  explicit Reader(ebb::Align align) : align_(align.value()) {}

  std::uint64_t iterations() const { return iterations_; }  // that have begun

  // Returns false for what is no line of a trace.
  bool line(const char* text) {
    std::uint64_t id = 0;
    std::uint64_t bytes = 0;
    if (text[0] == '#') {
      return true;
    }
    if (text[0] == 'i') {
      iterations_ += 1;
      ops_.push_back({OpKind::iteration, 0, 0});
      return true;
    }
    if (text[0] == 'a' && std::sscanf(text, "a,%*u,%" SCNu64 ",%" SCNu64, &id, &bytes) == 2) {
      return allocate(id, bytes);
    }
    return text[0] == 'f' && std::sscanf(text, "f,%*u,%" SCNu64, &id) == 1 && free(id);
  }

  // Frees the rest and copies everything to where the parent finds it.
  void finish(Trace& out, std::size_t ops_max) {
    while (!slots_.empty()) {
      free(slots_.begin()->first);
    }
    if (ops_.size() > ops_max) {
      throw std::runtime_error("[read_trace] the trace is too long");
    }
    trace_.iterations = iterations_ > 0 ? iterations_ - 1 : 0;
    trace_.op_count = ops_.size();
    std::copy(ops_.begin(), ops_.end(), reinterpret_cast<Op*>(&out + 1));
    out = trace_;
  }

 private:
  std::uint64_t rounded(std::uint64_t bytes) const {
    return std::max((bytes + align_ - 1) / align_ * align_, align_);
  }
  bool allocate(std::uint64_t id, std::uint64_t bytes) {
    auto slot = static_cast<std::uint32_t>(trace_.slots);
    if (free_slots_.empty()) {
      ++trace_.slots;
      sizes_.push_back(0);
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    sizes_[slot] = bytes;
    live_ += rounded(bytes);
    trace_.live_peak = std::max(trace_.live_peak, live_);
    ops_.push_back({OpKind::allocate, slot, bytes});
    return slots_.emplace(id, slot).second;
  }

  bool free(std::uint64_t id) {
    const auto found = slots_.find(id);
    if (found == slots_.end()) {
      return false;
    }
    live_ -= rounded(sizes_[found->second]);
    ops_.push_back({OpKind::free, found->second, 0});
    free_slots_.push_back(found->second);
    slots_.erase(found);
    return true;
  }

  const std::uint64_t align_;
  Trace trace_;
  std::vector<Op> ops_;
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;  // of those alive, by id
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint64_t> sizes_;  // by slot
  std::uint64_t live_ = 0;
  std::uint64_t iterations_ = 0;
};

void read_into(Trace& out, std::size_t ops_max, const std::string& path,
               std::uint64_t iterations_max, ebb::Align align) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  if (file == nullptr) {
    throw std::runtime_error("[read_trace] cannot open " + path);
  }
  Reader reader(align);
  std::array<char, 256> text;
  for (int number = 1; reader.iterations() <= iterations_max &&
                       ::gzgets(file.get(), text.data(), text.size()) != nullptr;
       ++number) {
    if (!reader.line(text.data())) {
      throw std::runtime_error("[read_trace] " + path + ", line " + std::to_string(number) + ": " +
                               text.data());
    }
  }
  int error = Z_OK;
  const char* const message = ::gzerror(file.get(), &error);
  if (error != Z_OK && error != Z_STREAM_END) {
    throw std::runtime_error("[read_trace] " + path + ": " + message);
  }
  reader.finish(out, ops_max);
}

// Returns whether read() returned normally in a child process.
template <class Read>
bool run_apart(Read read) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      read();
      ::_exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(1);
    }
  }
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

std::shared_ptr<const Trace> read_trace(const std::string& path, std::uint64_t iterations_max,
                                        ebb::Align align) {
  constexpr std::size_t bytes = std::size_t{256} << 20;  // address space; what is used is resident
  void* const map =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) {
    throw std::runtime_error("[read_trace] the system refuses a mapping");
  }
  std::shared_ptr<Trace> trace(new (map) Trace, [](Trace* it) { ::munmap(it, bytes); });
  constexpr std::size_t ops_max = (bytes - sizeof(Trace)) / sizeof(Op);
  if (!run_apart([&] { read_into(*trace, ops_max, path, iterations_max, align); })) {
    throw std::runtime_error("[read_trace] could not read " + path);
  }
  return trace;
}

std::string trace_path(const std::string& name) {
  const char* const data = std::getenv("EBB_TEST_DATA");
  return data == nullptr ? "" : first_existing({std::string(data) + "/traces/" + name + ".csv.gz"});
}

std::string trace_remedy(const std::string& name) {
  return "set EBB_TEST_DATA to a folder that has traces/" + name + ".csv.gz";
}

}  // namespace ebb::bench
