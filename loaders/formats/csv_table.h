// SPDX-License-Identifier: Apache-2.0
// What cells of which columns become which elements of a sample. Used by open_csv. Filled by one
// thread, then read by any.
#pragma once

#include "class_numbers.h"
#include "csv_element.h"
#include "csv_record.h"

#include <ebb/loaders/csv.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ebb::inline v0::detail {

// Why a record cannot be a sample.
struct CsvProblem {
  LoadErrorKind kind;
  std::size_t offset;  // in the record
  std::string text;
};

class CsvTable {
 public:
  // Throws std::invalid_argument for options that cannot be.
  explicit CsvTable(const CsvOptions& options);

  CsvDialect dialect() const noexcept { return dialect_; }
  bool has_header() const noexcept { return has_header_; }
  Schema schema() const;
  // Of the elements of a sample, all fields one after the other.
  std::size_t sample_bytes() const noexcept { return sample_bytes_; }
  std::uint64_t hash(std::uint64_t before) const;

  // Adds a file by its first record: the names of its columns, where there is a header.
  std::optional<CsvProblem> add_file(std::string_view first_record);

  // Vocabularies that are made of the files: whether there are any; the names that a record adds;
  // and the end of adding. Afterwards records can be parsed.
  bool wants_names() const noexcept;
  std::optional<CsvProblem> add_names(std::size_t file, std::string_view record);
  void finish_names();

  // Reads the cells of a record of a file into out, which has sample_bytes. unquoted is room that
  // the caller keeps from call to call.
  std::optional<CsvProblem> parse(std::size_t file, std::string_view record, std::string& unquoted,
                                  std::span<std::byte> out) const;
  void write(std::span<const std::byte> sample, const SampleWriter& writer) const;
  std::map<std::string, std::vector<std::string>> vocabularies() const;

 private:
  struct FieldPlan {
    CsvField options;
    const CsvElement* element;
    std::size_t offset;  // in the sample
    std::optional<ClassNumbers> classes = {};
    std::set<std::string, std::less<>> names = {};  // until the vocabulary is made of them

    bool has_classes() const noexcept { return options.classes || !options.vocabulary.empty(); }
    Shape shape() const;
  };
  // A cell that is wanted.
  struct Target {
    std::size_t column;
    std::size_t field;
    std::size_t element;
  };
  struct FilePlan {
    std::size_t columns = 0;
    std::vector<Target> targets = {};  // by column
  };

  void add_field(const CsvField& field);
  static void set_classes(FieldPlan& plan, std::vector<std::string> names);
  // Calls take(target, cell) for each cell that is wanted, which returns its problem.
  template <class Take>
  std::optional<CsvProblem> for_each_target(const FilePlan& plan, std::string_view record,
                                            std::string& unquoted, Take take) const;
  std::optional<CsvProblem> parse_cell(const Target& target, const CsvCells& cell,
                                       std::span<std::byte> out) const;
  CsvProblem problem_of(const Target& target, const CsvCells& cell, const std::string& text) const;
  bool is_missing(std::string_view cell) const noexcept;

  CsvDialect dialect_;
  bool has_header_;
  std::optional<double> missing_;
  std::vector<std::string> missing_cells_;
  std::vector<FieldPlan> fields_;
  std::size_t sample_bytes_ = 0;
  std::vector<FilePlan> files_;
};

}  // namespace ebb::inline v0::detail
