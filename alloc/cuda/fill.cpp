// SPDX-License-Identifier: Apache-2.0
// Patterns of up to four bytes are the driver's; eight are two columns of four. Any thread.
#include "cuda/fill.h"

#include <ebb/alloc/check.h>

namespace ebb::inline v0 {

namespace {

void fill_64(const CudaContext& context, cudaStream_t handle, CUdeviceptr to, std::uint64_t bits,
             std::size_t count) {
  const Driver& driver = context.driver();
  const auto low = static_cast<std::uint32_t>(bits);
  const auto high = static_cast<std::uint32_t>(bits >> 32);
  if (low == high) {
    check(driver.fill_32(to, low, 2 * count, handle), "cuMemsetD32Async", context.device());
    return;
  }
  for (const std::uint32_t half : {low, high}) {
    check(driver.fill_rows_32(to, sizeof bits, half, 1, count, handle), "cuMemsetD2D32Async",
          context.device());
    to += sizeof half;
  }
}

}  // namespace

void queue_fill(const CudaContext& context, cudaStream_t handle, void* to, FillPattern pattern,
                std::size_t count) {
  if (count == 0) {
    return;
  }
  const Driver& driver = context.driver();
  const CUdeviceptr address = driver_address(to);
  const std::uint64_t bits = pattern.bits;
  switch (pattern.width) {
    case 1:
      check(driver.fill_8(address, static_cast<unsigned char>(bits), count, handle),
            "cuMemsetD8Async", context.device());
      return;
    case 2:
      check(driver.fill_16(address, static_cast<unsigned short>(bits), count, handle),
            "cuMemsetD16Async", context.device());
      return;
    case 4:
      check(driver.fill_32(address, static_cast<unsigned>(bits), count, handle), "cuMemsetD32Async",
            context.device());
      return;
    case 8:
      fill_64(context, handle, address, bits, count);
      return;
    default:
      detail::require_failed("Backend::fill", "a pattern has 1, 2, 4 or 8 bytes, not ",
                             std::to_string(pattern.width));
  }
}

}  // namespace ebb::inline v0
