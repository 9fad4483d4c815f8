// SPDX-License-Identifier: Apache-2.0
// Arrays as NumPy saves them: one in an npy file, several in an npz, which is a zip archive of npy
// files. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
// Read are arrays of numbers and bools, whatever their byte order. Unsigned integers of 16 and 32
// bits, which tensors do not have, become i32 and i64; those of 64 bits become i64 where they fit.
// Fortran order (the first dimension fastest) is copied into C order. Refused by LoadError, with
// what to save instead: objects, strings, records, complex numbers, dates; more than 8 dimensions.
// In libebb-formats.
#pragma once

#include <ebb/loaders/array_options.h>
#include <ebb/loaders/dataset.h>
#include <ebb/runtime/tensor.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ebb::inline v0 {

// An array, in C order, as its elements lie in memory or in the mapped file. Copies share it;
// any thread.
class NpyArray {
 public:
  // data holds the elements of shape.
  NpyArray(DType dtype, const Shape& shape, std::shared_ptr<const std::byte> data)
      : dtype_(dtype), shape_(shape), data_(std::move(data)) {}

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::span<const std::byte> bytes() const noexcept {
    return {data_.get(), size_of(dtype_) * static_cast<std::size_t>(shape_.elements())};
  }
  // Returns a read-only tensor of it, which keeps it alive. No copy.
  Tensor tensor(Owner owner, Place at = Place::here()) const;

 private:
  DType dtype_;
  Shape shape_;
  std::shared_ptr<const std::byte> data_;
};

// Reads an npy file: maps it where its elements are as they are in memory, else copies them. Throws
// LoadError, with file and byte offset, for whatever is not exactly one array.
//
//   ebb::Tensor w = ebb::read_npy(rt, "w.npy");
NpyArray read_npy(const std::filesystem::path& path, const ArrayReadOptions& options = {});
Tensor read_npy(Owner owner, const std::filesystem::path& path,
                const ArrayReadOptions& options = {}, Place at = Place::here());

// Returns the names of the arrays in an npz file, in its order, without ".npy".
std::vector<std::string> npz_names(const std::filesystem::path& path);

// Reads one array of an npz file into memory, and checks its CRC.
NpyArray read_npz(const std::filesystem::path& path, const std::string& name);
Tensor read_npz(Owner owner, const std::filesystem::path& path, const std::string& name,
                Place at = Place::here());

// A field of a data set, and the file that its array is in.
struct NpyField {
  std::string name;
  std::filesystem::path path;
};

// Opens arrays with equal first sizes as a data set: sample i has of each its [i], as the field of
// that name. Longer arrays stay open files; Fortran order is copied into memory whatever its size.
// The fingerprint is of names and contents, of which, beyond 64 MiB a file, only sizes and samples
// are read. Throws LoadError as above and for first sizes that differ or are 0;
// std::invalid_argument for no field or two of one name.
//
//   auto data = ebb::open_npy({{"x", "x.npy"}, {"y", "y.npy"}});
AnyDataset open_npy(const std::vector<NpyField>& fields, const ArraySetOptions& options = {});

// The same of the arrays of an npz file, all of them where none is named. What is packed is
// unpacked into memory; what is not, and is longer than memory_max, stays in the file. Every byte
// of the arrays is read, for their CRCs.
//
//   auto data = ebb::open_npz("mnist.npz", {"x_train", "y_train"});
AnyDataset open_npz(const std::filesystem::path& path, const std::vector<std::string>& names = {},
                    const ArraySetOptions& options = {});

}  // namespace ebb::inline v0
