// SPDX-License-Identifier: Apache-2.0
// npy files as arrays, as tensors, and as data sets. [load.formats] Any thread.
#include "array_dataset.h"
#include "npy_elements.h"

#include <ebb/alloc/check.h>
#include <ebb/alloc/mapped.h>
#include <ebb/loaders/npy.h>
#include <ebb/runtime/tensor_from.h>

#include <stdexcept>
#include <system_error>
#include <utility>

namespace ebb::inline v0 {

namespace {

using detail::ByteRange;
using detail::NpyHeader;
using detail::PositionedFile;

// Returns all of a file.
ByteRange whole_file(const char* function, const std::filesystem::path& path) {
  auto file = std::make_shared<const PositionedFile>(function, path);
  const std::uint64_t bytes = file->bytes();
  return {std::move(file), "", 0, bytes};
}

// Returns the elements where they lie in the file, read-only.
std::shared_ptr<const std::byte> map_elements(const ByteRange& range, const NpyHeader& header) {
  const std::uint64_t bytes = header.elements * header.format.unit;
  try {
    auto mapped = std::make_shared<Mapped>(
        map_file(range.file().source(), {.offset = header.data, .bytes = Bytes{bytes}}));
    const auto* const data = static_cast<const std::byte*>(mapped->data.get());
    return {std::move(mapped), data};
  } catch (const std::system_error& error) {
    range.fail(LoadErrorKind::io, "map", header.data, error.what());
  } catch (const std::invalid_argument& error) {  // the file is another one by now
    range.fail(LoadErrorKind::corrupt, "map", header.data, error.what());
  }
}

}  // namespace

Tensor NpyArray::tensor(Owner owner, Place at) const {
  auto* const data = const_cast<std::byte*>(data_.get());  // the tensor is read-only
  return detail::protect(detail::from_shared(owner, data_, data, shape_, dtype_, at), true);
}

NpyArray read_npy(const std::filesystem::path& path, const NpyReadOptions& options) {
  const ByteRange range = whole_file("read_npy", path);
  const NpyHeader header = detail::read_npy_header(range);
  const bool can_map = detail::is_as_in_memory(header) && header.elements != 0 &&
                       header.data % header.format.unit == 0;
  return {
      header.format.dtype, header.shape,
      can_map && !options.copy ? map_elements(range, header) : detail::npy_elements(range, header)};
}

Tensor read_npy(Owner owner, const std::filesystem::path& path, const NpyReadOptions& options,
                Place at) {
  return read_npy(path, options).tensor(owner, at);
}

AnyDataset open_npy(const std::vector<NpyField>& fields, const NpyOptions& options) {
  constexpr const char* function = "open_npy";
  std::vector<std::string> names;
  for (const NpyField& field : fields) {
    names.push_back(field.name);
  }
  detail::check_field_names(function, names);
  std::vector<detail::ArrayField> arrays;
  std::uint64_t fingerprint = 0;
  for (const NpyField& field : fields) {
    ByteRange range = whole_file(function, field.path);
    const NpyHeader header = detail::read_npy_header(range);
    fingerprint = detail::hash_file(range.file(), fingerprint);
    arrays.push_back({field.name, std::move(range), header});
  }
  const std::string name =
      options.name.empty() ? fields.front().path.filename().string() : options.name;
  return detail::make_array_dataset(std::move(arrays), {name, fingerprint, options.memory_max});
}

}  // namespace ebb::inline v0
