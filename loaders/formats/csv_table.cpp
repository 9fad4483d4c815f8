// SPDX-License-Identifier: Apache-2.0
// From cells to elements: which columns, which numbers, which classes. [load.error]
#include "csv_table.h"

#include "content_hash.h"

#include <ebb/alloc/check.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <unordered_map>
#include <utility>

namespace ebb::inline v0::detail {

namespace {

constexpr const char* function = "open_csv";

bool is_whole_number(std::string_view name) noexcept {
  return !name.empty() && name.size() < 10 &&
         name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool wants_header(const CsvOptions& options) {
  if (options.header != CsvHeader::automatic) {
    return options.header == CsvHeader::yes;
  }
  return std::any_of(options.fields.begin(), options.fields.end(), [](const CsvField& field) {
    return !std::all_of(field.columns.begin(), field.columns.end(), is_whole_number);
  });
}

// For messages: in quotes, in one line, and not long.
std::string shown(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string out = "\"" + std::string(text.substr(0, most)) + "\"";
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.size() > most ? out + "..." : out;
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    out += (i == 0 ? "" : ", ") + shown(names[i]);
  }
  return names.size() > most ? out + " and " + std::to_string(names.size() - most) + " more" : out;
}

bool has_whole_numbers(DType dtype) noexcept {
  return dtype == DType::i8 || dtype == DType::u8 || dtype == DType::i16 || dtype == DType::i32 ||
         dtype == DType::i64;
}

}  // namespace

CsvTable::CsvTable(const CsvOptions& options)
    : dialect_{options.delimiter, options.quote},
      has_header_(wants_header(options)),
      missing_(options.missing),
      missing_cells_(options.missing_cells) {
  const auto is_line_end = [](char c) { return c == '\n' || c == '\r'; };
  EBB_REQUIRE(!is_line_end(options.delimiter) && options.delimiter != options.quote &&
                  options.delimiter != '\0',
              function, "the delimiter must be a character other than the quote and lines' ends");
  EBB_REQUIRE(!is_line_end(options.quote), function, "a line's end cannot be the quote");
  EBB_REQUIRE(!options.fields.empty(), function, "there are no fields: say which columns to read");
  for (const CsvField& field : options.fields) {
    add_field(field);
  }
}

void CsvTable::add_field(const CsvField& field) {
  const std::string named = "field \"" + field.name + "\"";
  EBB_REQUIRE(!field.columns.empty(), function, named, " has no columns");
  FieldPlan plan{field, csv_element(field.dtype), sample_bytes_};
  EBB_REQUIRE(plan.element != nullptr, function, named, " cannot be of strings: use classes");
  EBB_REQUIRE(!field.shape.has_value() ||
                  field.shape->elements() == static_cast<std::int64_t>(field.columns.size()),
              function, named, " has ", std::to_string(field.columns.size()),
              " columns, which are not ", to_string(plan.shape()));
  EBB_REQUIRE(!plan.has_classes() || has_whole_numbers(field.dtype), function, named,
              " has numbers of classes: its dtype must be a whole-number one");
  if (!field.vocabulary.empty()) {
    set_classes(plan, field.vocabulary);
  }
  for (std::size_t i = 0; i < field.columns.size(); ++i) {
    EBB_REQUIRE(has_header_ || is_whole_number(field.columns[i]), function, named, ": column ",
                shown(field.columns[i]),
                " is no number, and without a header columns have no names");
  }
  constexpr std::size_t unit = 8;
  sample_bytes_ += (field.columns.size() * plan.element->bytes + unit - 1) / unit * unit;
  fields_.push_back(std::move(plan));
}

void CsvTable::set_classes(FieldPlan& plan, std::vector<std::string> names) {
  std::byte last[8];
  EBB_REQUIRE(plan.element->store(static_cast<double>(names.size()) - 1, last) == CellResult::read,
              function, "field \"", plan.options.name, "\" has ", std::to_string(names.size()),
              " classes, more than ", to_string(plan.options.dtype), " can number");
  plan.classes.emplace(function, std::move(names));
}

Shape CsvTable::FieldPlan::shape() const {
  if (options.shape.has_value()) {
    return *options.shape;
  }
  const auto columns = static_cast<std::int64_t>(options.columns.size());
  return columns == 1 ? Shape{} : Shape{columns};
}

Schema CsvTable::schema() const {
  Schema schema;
  for (const FieldPlan& plan : fields_) {
    schema.fields.push_back({plan.options.name, plan.options.dtype, plan.shape()});
  }
  return schema;
}

std::uint64_t CsvTable::hash(std::uint64_t before) const {
  std::uint64_t hash = before;
  const auto add = [&hash](std::uint64_t number) { hash = hash_number(number, hash); };
  const auto add_texts = [&hash, &add](const std::vector<std::string>& texts) {
    add(texts.size());
    for (const std::string& text : texts) {
      hash = hash_bytes(text, hash);
      add(text.size());
    }
  };
  add(static_cast<unsigned char>(dialect_.delimiter));
  add(static_cast<unsigned char>(dialect_.quote));
  add(has_header_ ? 1 : 0);
  add(missing_.has_value() ? std::bit_cast<std::uint64_t>(*missing_) : 1);
  add_texts(missing_cells_);
  for (const FieldPlan& plan : fields_) {
    add_texts({plan.options.name});
    add_texts(plan.options.columns);
    add(static_cast<std::uint64_t>(plan.options.dtype));
    const Shape shape = plan.shape();
    add(static_cast<std::uint64_t>(shape.dims()));
    for (const std::int64_t size : shape) {
      add(static_cast<std::uint64_t>(size));
    }
    add_texts(plan.classes.has_value() ? plan.classes->names() : std::vector<std::string>{});
  }
  return hash;
}

std::optional<CsvProblem> CsvTable::add_file(std::string_view first_record) {
  std::vector<std::string> cells;
  std::string unquoted;
  CsvCells cell(first_record, dialect_, unquoted);
  while (cell.next()) {
    cells.emplace_back(has_header_ ? std::string(cell.text()) : std::to_string(cells.size()));
  }
  if (cell.problem() != nullptr) {
    return CsvProblem{LoadErrorKind::corrupt, cell.offset(), cell.problem()};
  }
  constexpr std::size_t twice = ~std::size_t{0};
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const auto [place, is_new] = places.emplace(cells[column], column);
    place->second = is_new ? column : twice;
  }
  FilePlan plan{cells.size()};
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    const std::vector<std::string>& wanted = fields_[field].options.columns;
    for (std::size_t element = 0; element < wanted.size(); ++element) {
      const auto found = places.find(wanted[element]);
      if (found == places.end()) {
        return CsvProblem{
            LoadErrorKind::shape, 0,
            "there is no column " + shown(wanted[element]) +
                (has_header_ ? ": the header has " + list(cells)
                             : ": there are " + std::to_string(cells.size()) + ", counted from 0")};
      }
      if (found->second == twice) {
        return CsvProblem{LoadErrorKind::shape, 0,
                          "the header has " + shown(wanted[element]) + " twice"};
      }
      plan.targets.push_back({found->second, field, element});
    }
  }
  std::stable_sort(plan.targets.begin(), plan.targets.end(),
                   [](const Target& a, const Target& b) { return a.column < b.column; });
  files_.push_back(std::move(plan));
  return {};
}

bool CsvTable::wants_names() const noexcept {
  return std::any_of(fields_.begin(), fields_.end(), [](const FieldPlan& plan) {
    return plan.has_classes() && !plan.classes.has_value();
  });
}

template <class Take>
std::optional<CsvProblem> CsvTable::for_each_target(const FilePlan& plan, std::string_view record,
                                                    std::string& unquoted, Take take) const {
  CsvCells cell(record, dialect_, unquoted);
  std::size_t column = 0;
  auto target = plan.targets.begin();
  for (; cell.next(); ++column) {
    for (; target != plan.targets.end() && target->column == column; ++target) {
      if (auto problem = take(*target, cell)) [[unlikely]] {
        return problem;
      }
    }
  }
  if (cell.problem() != nullptr) [[unlikely]] {
    return CsvProblem{LoadErrorKind::corrupt, cell.offset(), cell.problem()};
  }
  if (column != plan.columns) [[unlikely]] {
    return CsvProblem{LoadErrorKind::corrupt, 0,
                      std::to_string(column) + (column == 1 ? " cell" : " cells") + " where " +
                          (has_header_ ? "the header has " : "the first record has ") +
                          std::to_string(plan.columns)};
  }
  return {};
}

std::optional<CsvProblem> CsvTable::add_names(std::size_t file, std::string_view record) {
  std::string unquoted;
  return for_each_target(
      files_[file], record, unquoted,
      [this](const Target& target, const CsvCells& cell) -> std::optional<CsvProblem> {
        FieldPlan& plan = fields_[target.field];
        if (plan.has_classes() && !plan.classes.has_value() && !is_missing(cell.text()) &&
            plan.names.find(cell.text()) == plan.names.end()) {
          plan.names.emplace(cell.text());
        }
        return {};
      });
}

void CsvTable::finish_names() {
  for (FieldPlan& plan : fields_) {
    if (plan.has_classes() && !plan.classes.has_value()) {
      set_classes(plan, {plan.names.begin(), plan.names.end()});
      plan.names.clear();
    }
  }
}

std::optional<CsvProblem> CsvTable::parse(std::size_t file, std::string_view record,
                                          std::string& unquoted, std::span<std::byte> out) const {
  return for_each_target(files_[file], record, unquoted,
                         [this, out](const Target& target, const CsvCells& cell) {
                           return parse_cell(target, cell, out);
                         });
}

std::optional<CsvProblem> CsvTable::parse_cell(const Target& target, const CsvCells& cell,
                                               std::span<std::byte> out) const {
  const FieldPlan& plan = fields_[target.field];
  const CsvElement& element = *plan.element;
  std::byte* const place = out.data() + plan.offset + target.element * element.bytes;
  if (plan.classes.has_value()) {
    if (const auto number = plan.classes->find(cell.text())) {
      element.store(static_cast<double>(*number), place);
      return {};
    }
  }
  if (is_missing(cell.text())) {
    if (!missing_.has_value()) {
      return problem_of(target, cell, "is missing: say what missing is to be");
    }
    if (element.store(*missing_, place) != CellResult::read) {
      return problem_of(target, cell,
                        "is missing, and " + std::string(to_string(plan.options.dtype)) +
                            " has not the number that missing is to be");
    }
    return {};
  }
  if (plan.classes.has_value()) {
    return problem_of(target, cell, "is no class of the vocabulary");
  }
  switch (element.parse(cell.text(), place)) {
    case CellResult::read:
      return {};
    case CellResult::out_of_range:
      return problem_of(target, cell,
                        "does not fit into " + std::string(to_string(plan.options.dtype)));
    case CellResult::no_number:
      break;
  }
  return problem_of(target, cell,
                    "is no " + std::string(to_string(plan.options.dtype)) +
                        (has_header_ ? "" : ": if the file begins with a header, say so"));
}

CsvProblem CsvTable::problem_of(const Target& target, const CsvCells& cell,
                                const std::string& text) const {
  return {LoadErrorKind::corrupt, cell.offset(),
          "column " + shown(fields_[target.field].options.columns[target.element]) + ": " +
              shown(cell.text()) + " " + text};
}

bool CsvTable::is_missing(std::string_view cell) const noexcept {
  return std::find(missing_cells_.begin(), missing_cells_.end(), cell) != missing_cells_.end();
}

void CsvTable::write(std::span<const std::byte> sample, const SampleWriter& writer) const {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    const FieldPlan& plan = fields_[field];
    const std::size_t bytes = plan.options.columns.size() * plan.element->bytes;
    plan.element->write(sample.subspan(plan.offset, bytes), writer, field);
  }
}

std::map<std::string, std::vector<std::string>> CsvTable::vocabularies() const {
  std::map<std::string, std::vector<std::string>> all;
  for (const FieldPlan& plan : fields_) {
    if (plan.classes.has_value()) {
      all.emplace(plan.options.name, plan.classes->names());
    }
  }
  return all;
}

}  // namespace ebb::inline v0::detail
