// SPDX-License-Identifier: Apache-2.0
// Named tensors in a safetensors file: a JSON header, then the elements, little-endian, row by row.
// https://github.com/huggingface/safetensors#format. In libebb-formats.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/array_options.h>
#include <ebb/loaders/dataset.h>
#include <ebb/runtime/tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ebb::inline v0 {

struct SafetensorsEntry {
  std::string name;
  std::string type;            // as the file says: "F32", "BF16", "U16", "F8_E4M3", ...
  std::optional<DType> dtype;  // of its tensor; none where tensors have no such elements
  Shape shape;
  std::uint64_t offset = 0;  // of the first element in the file
  Bytes bytes;               // in the file
};

// A file whose header was read. Copies share it; any thread.
//
//   const ebb::Safetensors file = ebb::read_safetensors("model.safetensors");
//   ebb::Tensor w = file.tensor(rt, "fc1.weight");
class Safetensors {
 public:
  // In the order of the file.
  const std::vector<SafetensorsEntry>& entries() const noexcept;
  // Returns the entry of that name, or null.
  const SafetensorsEntry* find(const std::string& name) const noexcept;
  // What the file says of itself under "__metadata__".
  const std::map<std::string, std::string>& metadata() const noexcept;

  // Returns a read-only tensor: of the mapped file, or a copy where that was asked for, where
  // the elements are not aligned in the file, and for bools. Unsigned integers of 16 and 32 bits
  // become i32 and i64, those of 64 bits i64 where they fit. Throws LoadError when there is none of
  // that name, and for elements that tensors do not have.
  Tensor tensor(Owner owner, const std::string& name, Place at = Place::here()) const;

 private:
  friend Safetensors read_safetensors(const std::filesystem::path& path,
                                      const ArrayReadOptions& options);
  struct File;
  explicit Safetensors(std::shared_ptr<const File> file);

  std::shared_ptr<const File> file_;
};

// Reads the header, and checks that the tensors fill the rest of the file without hole or overlap,
// each as long as its type and shape say. Maps the file; no element is read before it is used.
// Throws LoadError, with file and byte offset, for whatever is no such file.
Safetensors read_safetensors(const std::filesystem::path& path,
                             const ArrayReadOptions& options = {});

// Opens tensors of a file with equal first sizes as a data set, as open_npy does
// (ebb/loaders/npy.h) and with the same errors: sample i has of each its [i], as the field of that
// name.
AnyDataset open_safetensors(const std::filesystem::path& path,
                            const std::vector<std::string>& names,
                            const ArraySetOptions& options = {});

}  // namespace ebb::inline v0
