// SPDX-License-Identifier: Apache-2.0
// An adaptor that writes a line of CSV per event, in the columns of RMM's logs, so that tools for
// those read them. [alloc.adaptor]
// Allocation as the upstream's thread rule says; deallocate on any thread.
#pragma once

#include <ebb/alloc/resource.h>

#include <cstddef>

namespace ebb::inline v0 {

// Where lines go. write gets one whole line with its newline, possibly from several threads at
// once; it must not throw, and must not allocate from the resource that it logs.
struct LogSink {
  void (*write)(void* context, const char* line, std::size_t length) noexcept = nullptr;
  void* context = nullptr;
};

// Returns a sink that writes to a file descriptor, one system call a line, so that lines stay whole
// in a file opened for appending. The descriptor stays the caller's. What cannot be written is
// lost: a program does not stop because its log is full.
LogSink fd_sink(int fd) noexcept;

// Columns: Thread (the system's number), Time (UTC, with microseconds), Action ("allocate",
// "allocate failure" or "free"), Pointer, Size (bytes as asked for), Stream (ebb's number).
// Writes the line of their names when made. No heap call.
class Log final : public Resource {
 public:
  // upstream, and what the sink writes to, must outlive this. Throws std::invalid_argument when the
  // sink has no function.
  Log(Resource& upstream, LogSink sink);

  [[nodiscard]] Block try_allocate(Bytes bytes, Align align = default_align_cpu,
                                   Stream stream = {}) noexcept override;
  void deallocate(const Block& block) noexcept override;
  OutOfMemoryInfo explain(Bytes asked) const override;
  const char* name() const noexcept override { return "log"; }

 private:
  void write(const char* action, const void* data, Bytes bytes, Stream stream) const noexcept;

  Resource& upstream_;
  LogSink sink_;
};

}  // namespace ebb::inline v0
