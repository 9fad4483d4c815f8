// SPDX-License-Identifier: Apache-2.0
// A typed, strided view of a storage, and the factories that make one. A value: copying shares the
// storage. A tensor may be handed to another thread; one tensor object is not for two at once.
#pragma once

#include <ebb/alloc/place.h>
#include <ebb/gc/owner.h>
#include <ebb/gc/storage.h>
#include <ebb/runtime/dtype.h>
#include <ebb/runtime/element_view.h>
#include <ebb/runtime/shape.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace ebb::inline v0 {

// Strides are in elements. Views share the storage and keep it alive. An undefined tensor (the
// default) has no storage: dtype and shape are a scalar's, it can be assigned, named and printed,
// and everything else throws on it.
//
//   ebb::Tensor x = ebb::zeros(it, {64, 784});
//   ebb::Tensor first = x.narrow(0, 0, 1);   // [1, 784], same storage
class Tensor {
 public:
  Tensor() = default;
  // A view of storage that begins offset elements in, contiguous. Throws std::invalid_argument
  // when the storage is too small for it, not aligned for the dtype, or when only one of the two
  // has to do with strings.
  Tensor(Storage storage, DType dtype, const Shape& shape, std::int64_t offset = 0);
  // As above with a stride for each dimension, which may be 0 or negative.
  static Tensor strided(Storage storage, DType dtype, const Shape& shape,
                        std::span<const std::int64_t> strides, std::int64_t offset = 0);

  bool defined() const noexcept { return static_cast<bool>(storage_); }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int dims() const noexcept { return shape_.dims(); }
  // Returns the size of a dimension; negative counts from the end. Throws when there is none.
  std::int64_t size(int dim) const;
  std::int64_t stride(int dim) const;
  std::int64_t elements() const {
    require_defined("Tensor::elements");
    return shape_.elements();
  }
  // Returns the bytes of the elements, each counted as often as expand() repeats it.
  Bytes bytes() const { return Bytes{size_of(dtype_)} * static_cast<std::size_t>(elements()); }
  Device device() const {
    require_defined("Tensor::device");
    return storage_.device();
  }
  // Returns the stream that its memory was made on: what the library does with it is queued there.
  Stream stream() const {
    require_defined("Tensor::stream");
    return storage_.stream();
  }
  std::int64_t offset() const noexcept { return offset_; }
  bool is_contiguous() const noexcept;
  // Returns whether every element lies in the storage. It does, unless the storage was resized or
  // swapped after this view was made: then access throws std::invalid_argument.
  bool in_storage() const noexcept;
  const Storage& storage() const noexcept { return storage_; }

  // Returns the first element's address. T must be the dtype's type; data<T>() also demands that
  // the tensor is writable, data<const T>() reads. Throws std::invalid_argument otherwise, and
  // RevokedError when its memory was given up (Policy::revoke), as all access to elements does.
  template <class T>
  T* data(Place at = Place::here()) const {
    return static_cast<T*>(checked_data(dtype_of<std::remove_const_t<T>>, !std::is_const_v<T>, at));
  }
  // Returns the elements of a contiguous CPU tensor as a span.
  template <class T>
  std::span<T> span() const {
    require_contiguous("Tensor::span");
    require_host("Tensor::span");
    return {data<T>(), static_cast<std::size_t>(elements())};
  }
  // Returns the elements of a CPU tensor of rank dimensions by index.
  template <class T, std::size_t rank>
  auto view() const {
    require_host("Tensor::view");
    require_dims(rank, "Tensor::view");
    std::array<std::int64_t, rank> sizes{};
    std::array<std::int64_t, rank> strides{};
    for (std::size_t d = 0; d < rank; ++d) {
      sizes[d] = shape_[static_cast<int>(d)];
      strides[d] = strides_[d];
    }
    return ElementView<T, rank>(data<T>(), sizes, strides);
  }
  // Returns the only element, converted to T (a dtype's type) as copy_ does. Throws when there are
  // more or none.
  template <class T>
  T item() const {
    T value{};
    read_item(&value, dtype_of<T>);
    return value;
  }

  // Views: the same storage, other sizes and strides. Each throws std::invalid_argument when the
  // sizes do not fit.
  Tensor narrow(int dim, std::int64_t start, std::int64_t length) const;
  Tensor reshape(const Shape& shape) const;  // of a contiguous tensor
  Tensor transpose(int a, int b) const;
  Tensor squeeze(int dim) const;
  Tensor unsqueeze(int dim) const;
  Tensor expand(const Shape& shape) const;  // repeats dimensions of size 1 with stride 0

  // Writes other's elements into this tensor, as if all were read before the first is written.
  // Shapes must be equal. Dtypes are converted: numbers out of range become the nearest that fits,
  // fractions are cut off, NaN becomes 0 in integers, all but 0 is true, f16 and bf16 round to
  // nearest. Strings are copied to strings only. Views that overlap without both being contiguous
  // go through a temporary from the system's heap. Throws std::invalid_argument when this tensor
  // repeats elements, by expand(), and between strings and numbers.
  //
  // To and on a device it is queued on this tensor's stream; from a device on other's stream. When
  // it returns, other has been read, or is kept: pinned host memory is kept, so do not write it, or
  // read what is copied into it, before synchronise(). It blocks only to host memory that is not
  // pinned, until the elements are there, and between two devices; it throws DeviceError when that
  // takes longer than RuntimeOptions::device_deadline. A device converts no dtypes, and copies
  // layouts that are no evenly spaced rows in many pieces; views that overlap there are refused.
  const Tensor& copy_(const Tensor& other) const;
  // Writes value, converted as above, into every element; on a device, of a contiguous tensor.
  const Tensor& fill_(double value) const;
  // Writes value into every element of a tensor of strings.
  const Tensor& fill_(std::string_view value) const;
  // Returns a contiguous copy on the same device that is charged to owner, or to the current owner:
  // on its stream where that is on the device, else on this tensor's.
  Tensor clone(Owner owner, Place at = Place::here()) const;
  Tensor clone(Place at = Place::here()) const;

  // Returns a contiguous copy of the elements that is charged to owner, on the device of owner's
  // stream. Blocks as copy_ does: to the CPU only, and between devices.
  Tensor to(Owner owner, Place at = Place::here()) const;
  // Returns this tensor when it is on device, else a copy there, charged to the current owner: on
  // its stream where that is on the device, else on the default one.
  Tensor to(Device device, Place at = Place::here()) const;
  // Returns this tensor when it was made on stream, else a copy there, charged to the current
  // owner.
  Tensor to(Stream stream, Place at = Place::here()) const;
  // Returns this tensor when it has that dtype, else a converted copy, in host memory too, charged
  // to the current owner.
  Tensor to(DType dtype, Place at = Place::here()) const;

  // Gives the tensor another shape, and its storage another size: the first elements stay, in
  // order; new ones are uninitialised, or empty strings. The tensor must be contiguous and all of
  // its storage, of which other views see the new size too; nobody else may use it meanwhile. On
  // failure nothing has changed. Throws OutOfMemory and std::invalid_argument.
  Tensor& resize_(const Shape& shape);

  // Says that stream is used with this tensor too, see Storage::used_on; the launch helpers and
  // copies say it themselves. Returns this tensor.
  const Tensor& used_on(Stream stream) const {
    require_defined("Tensor::used_on");
    storage_.used_on(stream);
    return *this;
  }

  // Names the storage for reports; name must be a literal. Returns this tensor.
  const Tensor& named(const char* name) const noexcept;

 private:
  void* checked_data(DType wanted, bool writable, Place at) const;
  void require_contiguous(const char* function) const;
  void require_defined(const char* function) const {
    if (!defined()) [[unlikely]] {
      fail_undefined(function);
    }
  }
  // Throws unless the elements can be touched here: on the CPU, and in the storage.
  void require_host(const char* function) const;
  void require_dims(std::size_t wanted, const char* function) const;
  void require_in_storage(const char* function) const {
    if (storage_.suspect()) [[unlikely]] {
      check_in_storage(function);
    }
  }
  void check_in_storage(const char* function) const;
  void require_writable(const char* function) const;
  [[noreturn]] static void fail_undefined(const char* function);
  void read_item(void* out, DType as) const;
  void copy_by_device(const Tensor& other) const;
  std::byte* raw() const noexcept;

  Storage storage_;
  std::int64_t offset_ = 0;
  Shape shape_;
  std::array<std::int64_t, max_dims> strides_{};
  DType dtype_ = DType::f32;
};

// Factories. Each takes the owner first (a Runtime or an Iteration converts to one), or uses the
// current owner; on a thread without one that throws std::invalid_argument and says the remedy.
// All throw OutOfMemory. Numbers of empty are uninitialised; strings are constructed and empty.
Tensor empty(Owner owner, const Shape& shape, DType dtype = DType::f32, Place at = Place::here());
Tensor empty(const Shape& shape, DType dtype = DType::f32, Place at = Place::here());
Tensor zeros(Owner owner, const Shape& shape, DType dtype = DType::f32, Place at = Place::here());
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Place at = Place::here());
Tensor full(Owner owner, const Shape& shape, double value, DType dtype = DType::f32,
            Place at = Place::here());
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Place at = Place::here());

// Wraps foreign memory of shape.elements() elements as a contiguous tensor; data is released with
// the last view, and at once when this throws. Strings must be constructed, and are destroyed by
// data's release. Throws std::invalid_argument for null data and for data that is not aligned for
// dtype. More forms are in tensor_from.h.
Tensor from_blob(Owner owner, DataPtr data, const Shape& shape, DType dtype,
                 Place at = Place::here());

// Returns the birth note that reports print as "f32[64, 512] cpu".
BirthNote birth_note(DType dtype, const Shape& shape, Device device) noexcept;

// Prints dtype, shape, and the elements, in full up to 1000 of them. Waits for a device as copy_
// does.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
std::string to_string(const Tensor& tensor);

}  // namespace ebb::inline v0
