// SPDX-License-Identifier: Apache-2.0
// Tensors of safetensors files, and data sets of them. [load.formats] Any thread.
#include "array_dataset.h"
#include "array_elements.h"
#include "file_map.h"
#include "printable.h"
#include "safetensors_header.h"

#include <ebb/loaders/npy.h>
#include <ebb/loaders/safetensors.h>

#include <algorithm>
#include <utility>

namespace ebb::inline v0 {

struct Safetensors::File {
  std::shared_ptr<const detail::PositionedFile> file;
  detail::SafetensorsHeader header;
  std::shared_ptr<const std::byte> mapped;  // all of it; null: tensors are copies
};

namespace {

// Returns the entry as an array that starts where its elements do.
detail::ArrayField array_of(const std::shared_ptr<const detail::PositionedFile>& file,
                            const detail::SafetensorsHeader& header, const std::string& name) {
  const auto entry =
      std::find_if(header.entries.begin(), header.entries.end(),
                   [&name](const SafetensorsEntry& candidate) { return candidate.name == name; });
  if (entry == header.entries.end()) {
    file->fail(LoadErrorKind::shape, "header", 8,
               "there is no tensor \"" + detail::printable(name) + "\" among the " +
                   std::to_string(header.entries.size()) + " in it");
  }
  const auto format = detail::safetensors_format(entry->type);
  if (!format.has_value()) {
    file->fail(LoadErrorKind::shape, "header", entry->offset,
               detail::printable(name) + " is " + detail::printable(entry->type) +
                   ", which tensors do not have: convert it to F32 or BF16");
  }
  return {name, detail::ByteRange(file, name, entry->offset, entry->bytes.count()),
          detail::ArrayForm{.format = *format,
                            .shape = entry->shape,
                            .elements = static_cast<std::uint64_t>(entry->shape.elements())}};
}

}  // namespace

Safetensors::Safetensors(std::shared_ptr<const File> file) : file_(std::move(file)) {}

const std::vector<SafetensorsEntry>& Safetensors::entries() const noexcept {
  return file_->header.entries;
}

const SafetensorsEntry* Safetensors::find(const std::string& name) const noexcept {
  const auto found =
      std::find_if(entries().begin(), entries().end(),
                   [&name](const SafetensorsEntry& entry) { return entry.name == name; });
  return found != entries().end() ? &*found : nullptr;
}

const std::map<std::string, std::string>& Safetensors::metadata() const noexcept {
  return file_->header.metadata;
}

Tensor Safetensors::tensor(Owner owner, const std::string& name, Place at) const {
  const detail::ArrayField array = array_of(file_->file, file_->header, name);
  const detail::ArrayForm& form = array.form;
  const bool can_map = file_->mapped != nullptr && form.format.is_plain() &&
                       array.range.begin() % form.format.unit == 0;
  const std::shared_ptr<const std::byte> elements =
      can_map ? std::shared_ptr<const std::byte>(file_->mapped,
                                                 file_->mapped.get() + array.range.begin())
              : detail::array_elements(array.range, form);
  return NpyArray(form.format.dtype, form.shape, elements).tensor(owner, at);
}

Safetensors read_safetensors(const std::filesystem::path& path, const ArrayReadOptions& options) {
  auto file = std::make_shared<const detail::PositionedFile>("read_safetensors", path);
  detail::SafetensorsHeader header = detail::read_safetensors_header(*file);
  auto mapped = options.copy ? nullptr : detail::map_part(*file, 0, file->bytes());
  return Safetensors(std::make_shared<const Safetensors::File>(
      Safetensors::File{std::move(file), std::move(header), std::move(mapped)}));
}

AnyDataset open_safetensors(const std::filesystem::path& path,
                            const std::vector<std::string>& names, const ArraySetOptions& options) {
  constexpr const char* function = "open_safetensors";
  detail::check_field_names(function, names);
  const auto file = std::make_shared<const detail::PositionedFile>(function, path);
  const detail::SafetensorsHeader header = detail::read_safetensors_header(*file);
  std::vector<detail::ArrayField> arrays;
  arrays.reserve(names.size());
  for (const std::string& name : names) {
    arrays.push_back(array_of(file, header, name));
  }
  return detail::make_array_dataset(std::move(arrays),
                                    {options.name.empty() ? path.filename().string() : options.name,
                                     detail::hash_sparsely(*file, 0), options.memory_max});
}

}  // namespace ebb::inline v0
