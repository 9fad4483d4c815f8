// SPDX-License-Identifier: Apache-2.0
// ebb's tensors for a Python process: C functions that dlpack_test.py calls by ctypes. Pointers go
// as void*; errors are kept as text. One thread at a time.
#include <ebb/runtime/interop/dlpack.h>
#include <ebb/runtime/loop.h>
#include <ebb/runtime/tensor_from.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

using ebb::DType;
using ebb::Tensor;

namespace {

std::unique_ptr<ebb::Runtime> rt;
std::string error;

Tensor* hold(Tensor tensor) {
  return new Tensor(std::move(tensor));
}

DType dtype_called(std::string_view name) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::u8,
                            DType::i16, DType::i32, DType::i64, DType::boolean}) {
    if (to_string(dtype) == name) {
      return dtype;
    }
  }
  throw std::invalid_argument("no dtype is called so");
}

template <class F>
void* guarded(F function) noexcept {
  try {
    error.clear();
    return function();
  } catch (const std::exception& e) {
    error = e.what();
    return nullptr;
  }
}

}  // namespace

extern "C" {

void bridge_open() {
  rt = std::make_unique<ebb::Runtime>(
      ebb::RuntimeOptions{.log = [](ebb::LogLevel, std::string_view) {}});
}
void bridge_close() {
  rt.reset();
}
const char* bridge_error() {
  return error.c_str();
}
std::int64_t bridge_live() {
  return static_cast<std::int64_t>(rt->stats().storages_live);
}

// 0, 1, 2 and so on.
void* bridge_counting(const char* dtype, std::int64_t rows, std::int64_t columns) {
  return guarded([&] {
    const Tensor x = ebb::empty(*rt, {rows, columns}, dtype_called(dtype));
    const Tensor flat = x.reshape({rows * columns});
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      flat.narrow(0, i, 1).fill_(static_cast<double>(i));
    }
    return hold(x);
  });
}
void* bridge_transposed(void* tensor) {
  return guarded([&] { return hold(static_cast<Tensor*>(tensor)->transpose(0, 1)); });
}
void bridge_protect(void* tensor) {
  ebb::Storage(static_cast<Tensor*>(tensor)->storage()).set_read_only();
}
void bridge_drop(void* tensor) {
  delete static_cast<Tensor*>(tensor);
}
void bridge_set(void* tensor, std::int64_t row, std::int64_t column, double value) {
  static_cast<Tensor*>(tensor)->narrow(0, row, 1).narrow(1, column, 1).fill_(value);
}
const char* bridge_text(void* tensor) {
  static std::string text;
  text = to_string(*static_cast<Tensor*>(tensor));
  return text.c_str();
}
int bridge_read_only(void* tensor) {
  return static_cast<Tensor*>(tensor)->storage().read_only() ? 1 : 0;
}

void* bridge_export(void* tensor) {
  return guarded([&] { return ebb::to_dlpack(*static_cast<Tensor*>(tensor)); });
}
void* bridge_export_versioned(void* tensor) {
  return guarded([&] { return ebb::to_dlpack_versioned(*static_cast<Tensor*>(tensor)); });
}
void* bridge_import(void* managed) {
  return guarded(
      [&] { return hold(ebb::from_dlpack(*rt, static_cast<ebb::dlpack::Managed*>(managed))); });
}
void* bridge_import_versioned(void* managed) {
  return guarded([&] {
    return hold(ebb::from_dlpack(*rt, static_cast<ebb::dlpack::ManagedVersioned*>(managed)));
  });
}

// Calls the deleter of a struct that nobody took.
void bridge_refuse(void* managed) {
  auto* const m = static_cast<ebb::dlpack::Managed*>(managed);
  m->deleter(m);
}
void bridge_refuse_versioned(void* managed) {
  auto* const m = static_cast<ebb::dlpack::ManagedVersioned*>(managed);
  m->deleter(m);
}

}  // extern "C"
