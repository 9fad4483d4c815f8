// SPDX-License-Identifier: Apache-2.0
// A domain with a clock and a log that the test reads. For the tests of gc.
#pragma once

#include <ebb/gc/close.h>
#include <ebb/gc/domain.h>
#include <ebb/gc/job.h>
#include <ebb/gc/manual_clock.h>
#include <ebb/gc/storage.h>

#include <mutex>
#include <string>
#include <vector>

namespace ebb::test {

using namespace ebb::literals;

class DomainFixture {
 public:
  explicit DomainFixture(Source* source = nullptr, Bytes limit = 0_B)
      : domain(Domain::make({.log =
                                 [this](LogLevel, std::string_view text) {
                                   const std::lock_guard lock(mutex_);
                                   lines_.emplace_back(text);
                                 },
                             .clock = &clock,
                             .memory_limit = limit,
                             .source = source})) {}
  DomainFixture(const DomainFixture&) = delete;
  DomainFixture& operator=(const DomainFixture&) = delete;
  DomainFixture(DomainFixture&&) = delete;
  DomainFixture& operator=(DomainFixture&&) = delete;
  ~DomainFixture() { domain->shutdown(); }  // again, where the test has done so

  // A storage of the current owner, made at the caller's line.
  static Storage make(Bytes bytes = 64_B, Place at = Place::here()) {
    return Storage::make(Owner::current("make"), bytes, default_align_cpu, {at});
  }

  std::vector<std::string> log() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  bool logged(std::string_view part) const {
    for (const std::string& line : log()) {
      if (line.find(part) != std::string::npos) {
        return true;
      }
    }
    return false;
  }

  ManualClock clock;
  std::shared_ptr<Domain> domain;

 private:
  mutable std::mutex mutex_;  // guards lines_
  std::vector<std::string> lines_;
};

}  // namespace ebb::test
