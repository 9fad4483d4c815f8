// SPDX-License-Identifier: Apache-2.0
// Copies and fills that a device does. Private to runtime. On a thread that holds the tensors, of
// which at least one is on a device. [rt.stream] [rt.tensor]
#pragma once

#include <ebb/runtime/tensor.h>

namespace ebb::inline v0::detail {

// Queues a copy of from's elements, of the same shape, to to's: on the stream of to, or where that
// is on the host, of from. To host memory that is not pinned it waits for the copy, and between
// devices for both; else it does not block. Throws std::invalid_argument for what only the host
// could do, DeviceError and OutOfMemory.
void copy_by_device(const Tensor& to, const Tensor& from, const char* function);

// Queues the writing of an element, given by its bytes, to all of a contiguous tensor.
void fill_by_device(const Tensor& tensor, const std::byte* element, const char* function);

// Throws std::invalid_argument where a copy of from to memory of a device, or of the host, would
// wait, or read memory that is not pinned, while this thread captures.
void require_no_capture(const Storage& from, Device to, const char* function);

// Returns a copy in host memory that is charged to the runtime; waits for it. Throws
// std::invalid_argument, with function in brackets, once the runtime has been destroyed.
Tensor host_copy(const Tensor& tensor, const char* function);

}  // namespace ebb::inline v0::detail
