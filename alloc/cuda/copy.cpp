// SPDX-License-Identifier: Apache-2.0
// Copies cut where a registration ends, and told apart by whether they lie between two devices. Any
// thread.
#include "cuda/copy.h"

#include <algorithm>
#include <cstdint>

namespace ebb::inline v0 {

namespace {

constexpr std::size_t page_bytes = PinnedSource::page_bytes;

// Returns how many of bytes from address on may be copied at once. What ends before the next page
// does is asked of nobody.
std::size_t at_once(const DeviceTable& devices, const void* address, std::size_t bytes) {
  const std::size_t room = page_bytes - reinterpret_cast<std::uintptr_t>(address) % page_bytes;
  return bytes > room && devices.is_pinned(address) ? room : bytes;
}

// Returns how many rows from address on may be copied at once, 0 where the first may not.
std::size_t rows_at_once(const DeviceTable& devices, const void* address, std::size_t pitch,
                         const CopyRows& rows) {
  const std::size_t width = rows.width.count();
  const std::size_t span = (rows.rows - 1) * pitch + width;
  const std::size_t bytes = at_once(devices, address, span);
  return bytes < width ? 0 : (bytes - width) / pitch + 1;
}

// Our pages are mapped for their own device, so that a plain copy cannot reach two of them.
struct Between {
  const CudaDevice* to = nullptr;
  const CudaDevice* from = nullptr;

  Between(const DeviceTable& devices, const void* to_address, const void* from_address) {
    if (devices.has_several()) {
      to = devices.holder_of(to_address);
      from = devices.holder_of(from_address);
    }
  }
  bool devices_differ() const { return to != nullptr && from != nullptr && to != from; }
};

int index_of(const CudaDevice& device) {
  return static_cast<int>(device.context.device().index);
}

void queue_piece(const CopyQueue& queue, void* to, const void* from, std::size_t bytes) {
  const Between between(queue.devices, to, from);
  if (between.devices_differ()) {
    check(cudaMemcpyPeerAsync(to, index_of(*between.to), from, index_of(*between.from), bytes,
                              queue.handle),
          "cudaMemcpyPeerAsync", queue.stream.device);
  } else {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue.handle), "cudaMemcpyAsync",
          queue.stream.device);
  }
}

void queue_rows_piece(const CopyQueue& queue, void* to, const void* from, const CopyRows& rows) {
  const std::size_t width = rows.width.count();
  const Between between(queue.devices, to, from);
  if (between.devices_differ()) {
    cudaMemcpy3DPeerParms parms{};
    // The driver takes sources that are not const; it reads them.
    parms.srcPtr = {const_cast<void*>(from), rows.from_pitch, width, rows.rows};
    parms.srcDevice = index_of(*between.from);
    parms.dstPtr = {to, rows.to_pitch, width, rows.rows};
    parms.dstDevice = index_of(*between.to);
    parms.extent = {width, rows.rows, 1};
    check(cudaMemcpy3DPeerAsync(&parms, queue.handle), "cudaMemcpy3DPeerAsync",
          queue.stream.device);
  } else {
    check(cudaMemcpy2DAsync(to, rows.to_pitch, from, rows.from_pitch, width, rows.rows,
                            cudaMemcpyDefault, queue.handle),
          "cudaMemcpy2DAsync", queue.stream.device);
  }
}

}  // namespace

void queue_copy(const CopyQueue& queue, void* to, const void* from, std::size_t bytes) {
  auto* to_next = static_cast<std::byte*>(to);
  const auto* from_next = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const std::size_t piece =
        std::min(at_once(queue.devices, to_next, bytes), at_once(queue.devices, from_next, bytes));
    queue_piece(queue, to_next, from_next, piece);
    to_next += piece;
    from_next += piece;
    bytes -= piece;
  }
}

void queue_copy_rows(const CopyQueue& queue, void* to, const void* from, const CopyRows& rows) {
  auto* to_next = static_cast<std::byte*>(to);
  const auto* from_next = static_cast<const std::byte*>(from);
  CopyRows left = rows;
  while (left.rows > 0 && left.width > Bytes{0}) {
    CopyRows piece = left;
    piece.rows = std::min(rows_at_once(queue.devices, to_next, left.to_pitch, left),
                          rows_at_once(queue.devices, from_next, left.from_pitch, left));
    if (piece.rows == 0) {
      queue_copy(queue, to_next, from_next, left.width.count());
      piece.rows = 1;
    } else {
      queue_rows_piece(queue, to_next, from_next, piece);
    }
    to_next += piece.rows * left.to_pitch;
    from_next += piece.rows * left.from_pitch;
    left.rows -= piece.rows;
  }
}

}  // namespace ebb::inline v0
