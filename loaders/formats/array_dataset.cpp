// SPDX-License-Identifier: Apache-2.0
// The data set of arrays: rows are copied, or read from the file, into the slot. [load.formats]
#include "array_dataset.h"

#include "array_elements.h"
#include "content_hash.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

// One array. elements is set where they are in memory, as the tensor has them.
struct Rows {
  explicit Rows(ArrayField its_field) : field(std::move(its_field)) {}

  ArrayField field;
  std::shared_ptr<const std::byte> elements;
  Shape shape;            // of a row
  std::size_t row = 0;    // elements of a row
  std::size_t bytes = 0;  // of a row in the slot

  void read(std::uint64_t index, std::byte* out, const StageContext& context) const {
    if (elements != nullptr) {
      std::memcpy(out, elements.get() + index * bytes, bytes);
      return;
    }
    const ArrayForm& form = field.form;
    const std::size_t file_bytes = row * form.format.unit;
    const std::uint64_t offset = form.data + index * file_bytes;
    if (form.format.is_plain()) {
      field.range.read_at(offset, {out, file_bytes});
      return;
    }
    const std::span<std::byte> raw = context.scratch(Bytes{file_bytes});
    field.range.read_at(offset, raw);
    if (const auto bad = convert_elements(form.format, raw.data(), out, row)) {
      field.range.fail(LoadErrorKind::shape, "load", offset + *bad * form.format.unit,
                       too_large_text(index * row + *bad));
    }
  }
};

// Returns the place of a field in the slot, whatever its elements are.
std::byte* place_of(const SampleWriter& writer, std::size_t field, DType dtype) {
  const auto place = [&]<class T>(T /*element*/) {
    return reinterpret_cast<std::byte*>(writer.field<T>(field).data());
  };
  switch (dtype) {
    case DType::f16:
      return place(Half{});
    case DType::f64:
      return place(double{});
    case DType::i8:
      return place(std::int8_t{});
    case DType::u8:
      return place(std::uint8_t{});
    case DType::i16:
      return place(std::int16_t{});
    case DType::i32:
      return place(std::int32_t{});
    case DType::i64:
      return place(std::int64_t{});
    case DType::boolean:
      return place(bool{});
    default:
      return place(float{});
  }
}

class ArrayDataset {
 public:
  struct Local {};

  ArrayDataset(std::vector<Rows> arrays, std::uint64_t size, const ArraySet& set)
      : arrays_(std::move(arrays)), size_(size), fingerprint_(set.fingerprint), name_(set.name) {
    for (const Rows& array : arrays_) {
      fingerprint_ = hash_bytes(array.field.name, fingerprint_);
    }
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  // Empty where a sample comes from several files: an error of one of them names it.
  std::string source(std::uint64_t /*index*/) const {
    const std::string& first = arrays_.front().field.range.file().source();
    for (const Rows& array : arrays_) {
      if (array.field.range.file().source() != first) {
        return {};
      }
    }
    return first;
  }
  Schema schema() const {
    Schema schema;
    for (const Rows& array : arrays_) {
      schema.fields.push_back({array.field.name, array.field.form.format.dtype, array.shape});
    }
    return schema;
  }

  void load(std::uint64_t index, Local& /*local*/, const SampleContext& context,
            SampleWriter& writer) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      std::byte* const place = place_of(writer, i, arrays_[i].field.form.format.dtype);
      arrays_[i].read(index, place, context);
    }
  }

 private:
  std::vector<Rows> arrays_;
  std::uint64_t size_;
  std::uint64_t fingerprint_;
  std::string name_;
};

// Returns an array's rows, in memory where they are short or lie the other way round.
Rows make_rows(ArrayField field, Bytes memory_max) {
  Rows rows(std::move(field));
  const ArrayForm& form = rows.field.form;
  const std::size_t unit = size_of(form.format.dtype);
  if (form.elements * unit <= memory_max.count() || rows.field.range.memory() != nullptr ||
      (form.fortran_order && form.shape.dims() > 1)) {
    rows.elements = array_elements(rows.field.range, form);
    rows.field.range.drop_memory();
  }
  rows.shape = Shape(std::span(form.shape.begin() + 1, form.shape.end()));
  rows.row = static_cast<std::size_t>(rows.shape.elements());
  rows.bytes = rows.row * unit;
  return rows;
}

}  // namespace

AnyDataset make_array_dataset(std::vector<ArrayField> fields, const ArraySet& set) {
  const ArrayField& first = fields.front();
  for (const ArrayField& field : fields) {
    const Shape& shape = field.form.shape;
    if (shape.dims() == 0 || shape.elements() == 0) {
      field.range.fail(LoadErrorKind::shape, "header", 0,
                       "the shape is " + to_string(shape) + ": there is no sample in it");
    }
    if (shape[0] != first.form.shape[0]) {
      field.range.fail(LoadErrorKind::shape, "header", 0,
                       "the shape is " + to_string(shape) + ", but " + first.name + " has " +
                           std::to_string(first.form.shape[0]) +
                           " samples: take arrays of one set");
    }
  }
  const auto size = static_cast<std::uint64_t>(first.form.shape[0]);
  std::vector<Rows> arrays;
  arrays.reserve(fields.size());
  for (ArrayField& field : fields) {
    arrays.push_back(make_rows(std::move(field), set.memory_max));
  }
  return ArrayDataset(std::move(arrays), size, set);
}

void check_field_names(const char* function, const std::vector<std::string>& names) {
  EBB_REQUIRE(!names.empty(), function, "no field is named");
  for (std::size_t i = 0; i < names.size(); ++i) {
    EBB_REQUIRE(std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i),
                          names[i]) == names.begin() + static_cast<std::ptrdiff_t>(i),
                function, "two fields are called \"", names[i], "\"");
  }
}

}  // namespace ebb::inline v0::detail
