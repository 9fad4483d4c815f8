// SPDX-License-Identifier: Apache-2.0
// npz files: zip archives of npy files. [load.formats] Any thread.
#include "array_dataset.h"
#include "array_elements.h"
#include "content_hash.h"
#include "npy_header.h"
#include "printable.h"
#include "zip_file.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/npy.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace ebb::inline v0 {

namespace {

using detail::ArrayForm;
using detail::ByteRange;
using detail::PositionedFile;
using detail::ZipFile;

constexpr std::string_view suffix = ".npy";

ZipFile open_zip(const char* function, const std::filesystem::path& path) {
  return ZipFile(std::make_shared<const PositionedFile>(function, path));
}

// Returns the names of the arrays; an archive may hold other files too.
std::vector<std::string> array_names(const ZipFile& zip) {
  std::vector<std::string> names;
  for (const detail::ZipMember& member : zip.members()) {
    if (member.name.ends_with(suffix)) {
      names.push_back(member.name.substr(0, member.name.size() - suffix.size()));
    }
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string line;
  for (std::size_t i = 0; i < names.size() && i < 10; ++i) {
    line += (i == 0 ? "" : ", ") + detail::printable(names[i]);
  }
  return line + (names.size() > 10 ? ", ..." : "");
}

// Returns the npy file of an array.
ByteRange open_array(const ZipFile& zip, const std::string& name) {
  const detail::ZipMember* const member = zip.find(name + std::string(suffix));
  if (member == nullptr) {
    zip.file().fail(LoadErrorKind::shape, "directory", 0,
                    "there is no array \"" + detail::printable(name) + "\" in it: it has " +
                        joined(array_names(zip)));
  }
  return zip.open(*member);
}

}  // namespace

std::vector<std::string> npz_names(const std::filesystem::path& path) {
  return array_names(open_zip("npz_names", path));
}

NpyArray read_npz(const std::filesystem::path& path, const std::string& name) {
  const ByteRange range = open_array(open_zip("read_npz", path), name);
  const ArrayForm form = detail::read_npy_header(range);
  return {form.format.dtype, form.shape, detail::array_elements(range, form)};
}

Tensor read_npz(Owner owner, const std::filesystem::path& path, const std::string& name, Place at) {
  return read_npz(path, name).tensor(owner, at);
}

AnyDataset open_npz(const std::filesystem::path& path, const std::vector<std::string>& names,
                    const ArraySetOptions& options) {
  constexpr const char* function = "open_npz";
  const ZipFile zip = open_zip(function, path);
  const std::vector<std::string> chosen = names.empty() ? array_names(zip) : names;
  if (chosen.empty()) {
    zip.file().fail(LoadErrorKind::shape, "directory", 0, "there is no array in it");
  }
  detail::check_field_names(function, chosen);
  std::vector<detail::ArrayField> arrays;
  std::uint64_t fingerprint = 0;
  for (const std::string& name : chosen) {
    ByteRange range = open_array(zip, name);
    const ArrayForm form = detail::read_npy_header(range);
    fingerprint = detail::hash_number(zip.find(name + std::string(suffix))->crc, fingerprint);
    arrays.push_back({name, std::move(range), form});
  }
  const std::string set_name = options.name.empty() ? path.filename().string() : options.name;
  return detail::make_array_dataset(std::move(arrays), {set_name, fingerprint, options.memory_max});
}

}  // namespace ebb::inline v0
