// SPDX-License-Identifier: Apache-2.0
// Copies as the CUDA driver takes them. Used by the CUDA backend. Any thread.
#pragma once

#include "backend.h"
#include "cuda/device_table.h"

namespace ebb::inline v0 {

// Where a copy is queued; the device's context is current.
struct CopyQueue {
  const DeviceTable& devices;
  Stream stream;
  cudaStream_t handle;
};

// Queue what Backend::copy and copy_rows promise. Throw DeviceError. What spans pinned pages is
// more than one piece: the driver refuses a copy from or to several registrations at once.
void queue_copy(const CopyQueue& queue, void* to, const void* from, std::size_t bytes);
void queue_copy_rows(const CopyQueue& queue, void* to, const void* from, const CopyRows& rows);

}  // namespace ebb::inline v0
