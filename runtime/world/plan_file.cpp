// SPDX-License-Identifier: Apache-2.0
#include "plan_file.h"

#include "fields.h"
#include "line_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

namespace ebb::world {

namespace {

constexpr std::array<std::string_view, 4> column_names = {"id", "lower", "upper", "size"};
enum Column : std::size_t { id, lower, upper, size };

class PlanFileReader {
 public:
  explicit PlanFileReader(const std::string& path) : reader_(path) {}

  PlanFile read() {
    if (!reader_.next()) {
      reader_.fail("the file is empty: it begins with id,lower,upper,size");
    }
    take_header();
    while (reader_.next()) {
      take_row();
    }
    return std::move(file_);
  }

 private:
  void take_header() {
    const std::vector<std::string_view> header = split_fields(reader_.line());
    columns_ = header.size();
    for (std::size_t i = 0; i < column_names.size(); ++i) {
      const auto found = std::find(header.begin(), header.end(), column_names[i]);
      if (found == header.end()) {
        reader_.fail("the header has no column " + std::string(column_names[i]));
      }
      if (std::find(found + 1, header.end(), column_names[i]) != header.end()) {
        reader_.fail("the header has two columns " + std::string(column_names[i]));
      }
      places_[i] = static_cast<std::size_t>(found - header.begin());
    }
  }

  void take_row() {
    fields_ = split_fields(reader_.line());
    if (fields_.size() != columns_) {
      reader_.fail(std::to_string(fields_.size()) + " fields, where the header has " +
                   std::to_string(columns_));
    }
    std::string name(fields_[places_[Column::id]]);
    if (name.empty()) {
      reader_.fail("the id is empty");
    }
    PlanInterval interval;
    interval.id = file_.names.size();
    interval.lower = number(Column::lower);
    interval.upper = number(Column::upper);
    interval.size = Bytes{number(Column::size)};
    if (interval.upper <= interval.lower) {
      reader_.fail("upper is " + std::to_string(interval.upper) + ", which is not above lower, " +
                   std::to_string(interval.lower));
    }
    if (interval.size.count() == 0) {
      reader_.fail("the size is 0");
    }
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    if (interval.size.count() >= most - total_) {
      reader_.fail("the sizes up to here add up to 2^62 bytes or more");
    }
    total_ += interval.size.count();
    if (!seen_.insert(name).second) {
      reader_.fail("the id " + name + " comes twice");
    }
    file_.names.push_back(std::move(name));
    file_.intervals.push_back(interval);
  }

  std::uint64_t number(Column column) const {
    const std::string_view text = fields_[places_[column]];
    const std::optional<std::uint64_t> value = whole_number(text);
    if (!value) {
      reader_.fail(std::string(column_names[column]) + " is \"" + std::string(text) +
                   "\", no whole number from 0 to 2^64 - 1");
    }
    return *value;
  }

  LineReader reader_;
  std::size_t columns_ = 0;
  std::array<std::size_t, column_names.size()> places_{};
  std::vector<std::string_view> fields_;
  std::unordered_set<std::string> seen_;
  std::uint64_t total_ = 0;
  PlanFile file_;
};

}  // namespace

PlanFile read_plan_file(const std::string& path) {
  return PlanFileReader(path).read();
}

void write_plan_file(const std::string& path, const PlanFile& file, const Plan& plan) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < file.intervals.size(); ++i) {
    const PlanInterval& interval = file.intervals[i];
    out << file.names[i] << ',' << interval.lower << ',' << interval.upper << ','
        << interval.size.count() << ',' << plan.offsets[i].count() << '\n';
  }
  out.close();
  if (!out) {
    throw std::runtime_error(path + ": cannot be written");
  }
}

}  // namespace ebb::world
