// SPDX-License-Identifier: Apache-2.0
// What tests of tensors need of a runtime: an owner that keeps what is made. One thread.
#pragma once

#include <ebb/gc/domain.h>
#include <ebb/runtime/tensor.h>

#include <cstdint>
#include <memory>
#include <numeric>

namespace ebb::test {

struct TensorFixture {
  std::shared_ptr<ebb::Domain> domain = ebb::Domain::make({});
  ebb::Owner owner = domain->long_lived();

  TensorFixture() = default;
  TensorFixture(const TensorFixture&) = delete;
  TensorFixture& operator=(const TensorFixture&) = delete;
  TensorFixture(TensorFixture&&) = delete;
  TensorFixture& operator=(TensorFixture&&) = delete;
  ~TensorFixture() { domain->shutdown(); }

  // Returns an i32 tensor of 1, 2, 3 and so on.
  ebb::Tensor counting(const ebb::Shape& shape) const {
    ebb::Tensor x = ebb::empty(owner, shape, ebb::DType::i32);
    const auto elements = x.span<std::int32_t>();
    std::iota(elements.begin(), elements.end(), 1);
    return x;
  }
};

}  // namespace ebb::test
