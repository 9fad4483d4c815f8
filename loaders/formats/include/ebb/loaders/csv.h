// SPDX-License-Identifier: Apache-2.0
// Tables of comma-separated values (RFC 4180), plain or gzipped: a record is a sample.
#pragma once

#include <ebb/alloc/bytes.h>
#include <ebb/loaders/dataset.h>
#include <ebb/loaders/file_paths.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ebb::inline v0 {

enum class CsvHeader : std::uint8_t {
  automatic,  // there is one, unless columns are named by numbers only
  yes,        // the first record of each file has the names of its columns
  no,         // columns are named by their numbers: "0", "1", ...
};

// A field of the sample, made of one cell or several.
struct CsvField {
  std::string name;
  std::vector<std::string> columns;  // in the order of the field's elements
  DType dtype = DType::f32;
  // The cells are names of classes, and the field holds their places in the vocabulary: this one,
  // or, where it is empty, the names that are in the files, sorted. Of a whole-number dtype.
  bool classes = false;
  std::vector<std::string> vocabulary = {};
  // Of a sample, with as many elements as columns; else a scalar for one column, [columns] for
  // more.
  std::optional<Shape> shape = {};
};

struct CsvOptions {
  std::vector<CsvField> fields;
  char delimiter = ',';
  char quote = '"';  // '\0': quotes are characters like others
  CsvHeader header = CsvHeader::automatic;
  // What a missing number becomes, NaN for instance; without a value it is an error. Missing are
  // cells with exactly one of these texts.
  std::optional<double> missing = {};
  std::vector<std::string> missing_cells = std::vector<std::string>(1);  // {""}
  Bytes max_bytes{std::size_t{4} << 30};  // that a gzipped file may unpack to
  std::string name = {};                  // for messages; empty: the name of the first file
};

struct CsvSet {
  AnyDataset data;
  // By field, of those with classes. Keep it beside the model (save_vocabulary), and give it to the
  // data sets that the model is tested with: sorted anew, their names may have other numbers.
  std::map<std::string, std::vector<std::string>> vocabularies;

  operator AnyDataset() const { return data; }  // NOLINT(google-explicit-constructor): it is one
};

// Reads the files once, to find their records, and keeps 12 bytes for each. Records are then read
// where they lie, one pread each, so a file may be larger than memory; gzipped files are unpacked
// into memory. Several files are one data set, each with its own header and order of columns. Lines
// end in LF or CRLF; those without anything are skipped, as is a UTF-8 byte order mark. Numbers are
// read by std::from_chars, in any locale.
//
//   auto set = ebb::open_csv("iris.csv", {.fields = {
//       {.name = "x", .columns = {"sepal length", "sepal width"}},
//       {.name = "y", .columns = {"species"}, .dtype = ebb::DType::i64, .classes = true}}});
//   ebb::Loader loader(rt, set.data, {.batch = 32});
//
// What is wrong with the files themselves (missing, truncated, a column that is not there, a quote
// that nothing closes) throws LoadError here. What is wrong with a record (another number of cells,
// a cell that is no number, a class that is not in the vocabulary) does when the loader comes to
// it, with line, column and offset; when a vocabulary is made of the files, here too. Throws
// std::invalid_argument for options that cannot be. The fingerprint is of the contents and of all
// options but names of the set and max_bytes. The format: https://www.rfc-editor.org/rfc/rfc4180.
CsvSet open_csv(const FilePaths& paths, const CsvOptions& options);

}  // namespace ebb::inline v0
