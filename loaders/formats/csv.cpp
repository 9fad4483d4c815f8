// SPDX-License-Identifier: Apache-2.0
// The data set of CSV files: fetch reads a record, decode its cells, finish writes them.
// [load.formats]
#include "content_hash.h"
#include "csv_table.h"
#include "file_bytes.h"
#include "record_index.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/csv.h>

#include <limits>
#include <new>
#include <utility>

namespace ebb::inline v0 {

namespace {

using detail::CsvProblem;
using detail::CsvTable;
using detail::FileBytes;
using detail::RecordFiles;

constexpr const char* function = "open_csv";

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class CsvDataset {
 public:
  struct Local {
    std::string unquoted;
  };

  CsvDataset(std::string name, CsvTable table, RecordFiles records, std::uint64_t contents)
      : name_(std::move(name)),
        table_(std::move(table)),
        records_(std::move(records)),
        fingerprint_(table_.hash(contents)) {}

  std::uint64_t size() const { return records_.size(); }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  std::string source(std::uint64_t index) const {
    return records_.file(records_[index].file).source();
  }
  Schema schema() const { return table_.schema(); }

  void fetch(std::uint64_t index, const StageContext& context, SampleBytes& out) const {
    const RecordFiles::Record record = records_[index];
    records_.file(record.file).read(record.offset, out.allocate(Bytes{record.bytes}), context);
  }
  void decode(std::uint64_t index, Local& local, const StageContext& context,
              std::span<const std::byte> bytes, SampleBytes& out) const {
    const RecordFiles::Record record = records_[index];
    const auto sample = out.allocate(Bytes{table_.sample_bytes()});
    if (const auto problem = table_.parse(record.file, as_text(bytes), local.unquoted, sample))
        [[unlikely]] {
      const std::uint64_t at = record.offset + problem->offset;
      const std::uint64_t line = records_.file(record.file).line_at(at);
      context.fail(problem->kind, "decode", at,
                   "line " + std::to_string(line) + ": " + problem->text);
    }
  }
  void finish(std::uint64_t /*index*/, Local& /*local*/, const SampleContext& /*context*/,
              std::span<const std::byte> bytes, const SampleWriter& writer) const {
    table_.write(bytes, writer);
  }

 private:
  std::string name_;
  CsvTable table_;
  RecordFiles records_;
  std::uint64_t fingerprint_;
};

// Opens files one after the other.
class CsvOpening {
 public:
  explicit CsvOpening(const CsvOptions& options) : table_(options), max_bytes_(options.max_bytes) {}

  void add(const std::filesystem::path& path) {
    FileBytes file(function, path, max_bytes_);
    refuse_utf16(file);
    std::optional<RecordFiles::Record> first;
    const auto found = [&](std::uint64_t offset, std::uint64_t bytes) {
      if (bytes > std::numeric_limits<std::uint32_t>::max()) {
        file.fail(LoadErrorKind::corrupt, "records", offset, "a record of more than 4 GiB");
      }
      const auto size = static_cast<std::uint32_t>(bytes);
      if (!first.has_value()) {
        first = RecordFiles::Record{0, offset, size};
        if (table_.has_header()) {
          return;
        }
      }
      records_.add_record(offset, size);
    };
    records_.begin_file();
    const std::uint64_t begin = begins_with(file, "\xef\xbb\xbf") ? 3 : 0;
    detail::CsvRecords ends(table_.dialect(), begin);
    file.for_each_part([&](std::uint64_t offset, std::string_view text) {
      contents_ = detail::hash_bytes(text, contents_);
      const std::size_t skipped = offset == 0 ? static_cast<std::size_t>(begin) : 0;
      ends.add(offset + skipped, text.substr(skipped), found);
    });
    contents_ = detail::hash_number(file.size(), contents_);
    if (const auto quote = ends.open_quote()) {
      fail(file, {LoadErrorKind::corrupt, 0, "a quote that nothing closes"}, *quote);
    }
    ends.finish(file.size(), found);
    if (!first.has_value()) {
      file.fail(LoadErrorKind::corrupt, "records", 0, "there is no record in it");
    }
    const std::string record = read(file, *first);
    if (const auto problem = table_.add_file(record)) {
      fail(file, *problem, first->offset + problem->offset);
    }
    records_.end_file(std::move(file));
  }

  CsvSet finish(std::string name) && {
    if (records_.size() == 0) {
      records_.file(0).fail(LoadErrorKind::shape, "records", 0, "no record follows the header");
    }
    if (table_.wants_names()) {
      add_names();
      table_.finish_names();
    }
    records_.shrink_to_fit();
    auto vocabularies = table_.vocabularies();
    return {CsvDataset(std::move(name), std::move(table_), std::move(records_), contents_),
            std::move(vocabularies)};
  }

 private:
  static bool begins_with(const FileBytes& file, std::string_view mark) {
    std::string begin(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), mark.size())),
                      '\0');
    file.read(0, std::as_writable_bytes(std::span(begin)));
    return begin == mark;
  }
  static void refuse_utf16(const FileBytes& file) {
    if (begins_with(file, "\xff\xfe") || begins_with(file, "\xfe\xff")) {
      file.fail(LoadErrorKind::corrupt, "header", 0, "it is UTF-16: convert it to UTF-8");
    }
  }
  static std::string read(const FileBytes& file, const RecordFiles::Record& record) {
    std::string text(record.bytes, '\0');
    file.read(record.offset, std::as_writable_bytes(std::span(text)));
    return text;
  }
  [[noreturn]] static void fail(const FileBytes& file, const CsvProblem& problem,
                                std::uint64_t offset) {
    file.fail(problem.kind, "records", offset,
              "line " + std::to_string(file.line_at(offset)) + ": " + problem.text);
  }

  void add_names() {
    for (std::uint64_t i = 0; i < records_.size(); ++i) {
      const RecordFiles::Record record = records_[i];
      const FileBytes& file = records_.file(record.file);
      if (const auto problem = table_.add_names(record.file, read(file, record))) {
        fail(file, *problem, record.offset + problem->offset);
      }
    }
  }

  CsvTable table_;
  Bytes max_bytes_;
  RecordFiles records_;
  std::uint64_t contents_ = 0;
};

}  // namespace

CsvSet open_csv(const FilePaths& paths, const CsvOptions& options) {
  EBB_REQUIRE(!paths.empty(), function, "there are no files");
  std::filesystem::path opened = paths.front();
  try {
    CsvOpening opening(options);
    for (const std::filesystem::path& path : paths) {
      opened = path;
      opening.add(path);
    }
    return std::move(opening).finish(options.name.empty() ? paths.front().filename().string()
                                                          : options.name);
  } catch (const std::bad_alloc&) {
    throw LoadError(function, {.kind = LoadErrorKind::memory,
                               .stage = "records",
                               .source = opened.string(),
                               .text = "there is no memory for the places of its records"});
  }
}

}  // namespace ebb::inline v0
