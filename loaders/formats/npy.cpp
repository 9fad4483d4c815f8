// SPDX-License-Identifier: Apache-2.0
// npy files as arrays, as tensors, and as data sets. [load.formats] Any thread.
#include "array_dataset.h"
#include "array_elements.h"
#include "file_map.h"
#include "npy_header.h"

#include <ebb/loaders/npy.h>
#include <ebb/runtime/tensor_from.h>

#include <utility>

namespace ebb::inline v0 {

namespace {

using detail::ArrayForm;
using detail::ByteRange;

}  // namespace

Tensor NpyArray::tensor(Owner owner, Place at) const {
  auto* const data = const_cast<std::byte*>(data_.get());  // the tensor is read-only
  return detail::protect(detail::from_shared(owner, data_, data, shape_, dtype_, at), true);
}

NpyArray read_npy(const std::filesystem::path& path, const ArrayReadOptions& options) {
  const ByteRange range("read_npy", path);
  const ArrayForm form = detail::read_npy_header(range);
  const bool can_map =
      detail::is_as_in_memory(form) && form.elements != 0 && form.data % form.format.unit == 0;
  return {form.format.dtype, form.shape,
          can_map && !options.copy
              ? detail::map_part(range.file(), form.data, form.elements * form.format.unit)
              : detail::array_elements(range, form)};
}

Tensor read_npy(Owner owner, const std::filesystem::path& path, const ArrayReadOptions& options,
                Place at) {
  return read_npy(path, options).tensor(owner, at);
}

AnyDataset open_npy(const std::vector<NpyField>& fields, const ArraySetOptions& options) {
  constexpr const char* function = "open_npy";
  std::vector<std::string> names;
  names.reserve(fields.size());
  for (const NpyField& field : fields) {
    names.push_back(field.name);
  }
  detail::check_field_names(function, names);
  std::vector<detail::ArrayField> arrays;
  std::uint64_t fingerprint = 0;
  for (const NpyField& field : fields) {
    ByteRange range(function, field.path);
    const ArrayForm form = detail::read_npy_header(range);
    fingerprint = detail::hash_sparsely(range.file(), fingerprint);
    arrays.push_back({field.name, std::move(range), form});
  }
  const std::string name =
      options.name.empty() ? fields.front().path.filename().string() : options.name;
  return detail::make_array_dataset(std::move(arrays), {name, fingerprint, options.memory_max});
}

}  // namespace ebb::inline v0
