// SPDX-License-Identifier: Apache-2.0
// Lines are formatted on the stack. A block's line is written while nobody else can have its
// address: after it was handed out, before it is given back. Any thread.
#include "layer.h"

#include <ebb/alloc/log.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>

#include <unistd.h>

namespace ebb::inline v0 {

namespace {

constexpr char header[] = "Thread,Time,Action,Pointer,Size,Stream\n";

void write_to_fd(void* context, const char* line, std::size_t length) noexcept {
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(context));
  while (length > 0) {
    const ::ssize_t written = ::write(fd, line, length);
    if (written < 0 && errno != EINTR) {
      return;
    }
    const std::size_t done = static_cast<std::size_t>(std::max<::ssize_t>(written, 0));
    line += done;
    length -= done;
  }
}

}  // namespace

LogSink fd_sink(int fd) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the number itself is the context
  return {write_to_fd, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd))};
}

Log::Log(Resource& upstream, LogSink sink) : upstream_(upstream), sink_(sink) {
  EBB_REQUIRE(sink.write != nullptr, "Log", "the sink has no function");
  sink_.write(sink_.context, header, sizeof header - 1);
}

void Log::write(const char* action, const void* data, Bytes bytes, Stream stream) const noexcept {
  using std::chrono::duration_cast;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto of_day = duration_cast<std::chrono::microseconds>(now % std::chrono::hours(24));
  const auto seconds = static_cast<unsigned>(duration_cast<std::chrono::seconds>(of_day).count());
  char line[160];
  const int length = std::snprintf(
      line, sizeof line, "%ld,%02u:%02u:%02u.%06u,%s,0x%" PRIxPTR ",%zu,0x%x\n",
      static_cast<long>(::gettid()), seconds / 3600, seconds / 60 % 60, seconds % 60,
      static_cast<unsigned>(of_day.count() % 1000000), action,
      reinterpret_cast<std::uintptr_t>(data), bytes.count(), static_cast<unsigned>(stream.id));
  if (length > 0) {
    sink_.write(sink_.context, line, std::min(static_cast<std::size_t>(length), sizeof line - 1));
  }
}

Block Log::try_allocate(Bytes bytes, Align align, Stream stream) noexcept {
  const Block block = upstream_.try_allocate(bytes, align, stream);
  write(block ? "allocate" : "allocate failure", block.data, bytes, stream);
  return detail::take_over(block, *this);
}

void Log::deallocate(const Block& block) noexcept {
  EBB_ASSERT(detail::is_from(block, *this));  // else freed twice, or another's
  write("free", block.data, block.bytes, block.stream);
  detail::hand_down(block, upstream_);
}

OutOfMemoryInfo Log::explain(Bytes asked) const {
  return detail::explain_through(*this, upstream_, asked);
}

}  // namespace ebb::inline v0
