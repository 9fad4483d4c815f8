// SPDX-License-Identifier: Apache-2.0
// The data set of lines of text. [load.formats]
#include "content_hash.h"
#include "file_bytes.h"
#include "record_index.h"
#include "utf8.h"

#include <ebb/alloc/check.h>
#include <ebb/loaders/text.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace ebb::inline v0 {

namespace {

using detail::FileBytes;
using detail::RecordFiles;

constexpr const char* function = "open_lines";

class LineDataset {
 public:
  struct Local {};

  LineDataset(std::string name, RecordFiles lines, const LineOptions& options,
              std::uint64_t contents)
      : name_(std::move(name)), lines_(std::move(lines)), max_length_(options.max_length) {
    fingerprint_ = detail::hash_number(static_cast<std::uint64_t>(max_length_), contents);
    for (const bool option : {options.cut_long, options.keep_invalid, options.keep_empty}) {
      fingerprint_ = detail::hash_number(option ? 1 : 0, fingerprint_);
    }
  }

  std::uint64_t size() const { return lines_.size(); }
  std::uint64_t fingerprint() const { return fingerprint_; }
  std::string name() const { return name_; }
  std::string source(std::uint64_t index) const { return lines_.file(lines_[index].file).source(); }
  std::int64_t length(std::uint64_t index) const { return lines_.bytes(index); }
  Schema schema() const {
    return {{{.name = "text", .dtype = DType::u8, .sample_shape = {max_length_}, .varies = true},
             {.name = "length", .dtype = DType::i64}}};
  }

  void fetch(std::uint64_t index, const StageContext& context, SampleBytes& out) const {
    const RecordFiles::Record line = lines_[index];
    lines_.file(line.file).read(line.offset, out.allocate(Bytes{line.bytes}), context);
  }
  void decode(std::uint64_t /*index*/, Local& /*local*/, const StageContext& /*context*/,
              std::span<const std::byte> bytes, SampleBytes& out) const {
    std::copy(bytes.begin(), bytes.end(), out.allocate(Bytes{bytes.size()}).begin());
  }
  void finish(std::uint64_t /*index*/, Local& /*local*/, const SampleContext& /*context*/,
              std::span<const std::byte> bytes, const SampleWriter& writer) const {
    const std::span<std::byte> text = std::as_writable_bytes(writer.field<std::uint8_t>(0));
    std::copy(bytes.begin(), bytes.end(), text.begin());
    writer.field<std::int64_t>(1)[0] = static_cast<std::int64_t>(bytes.size());
  }

 private:
  std::string name_;
  RecordFiles lines_;
  std::int64_t max_length_;
  std::uint64_t fingerprint_;
};

// Finds and judges the lines of one file, which comes part by part.
class LineScan {
 public:
  LineScan(const FileBytes& file, const LineOptions& options, RecordFiles& lines)
      : file_(file), options_(options), lines_(lines) {}

  void add(std::uint64_t offset, std::string_view text) {
    constexpr std::string_view mark = "\xef\xbb\xbf";
    if (offset == 0 && text.starts_with(mark)) {
      begin_ = offset = mark.size();
      text.remove_prefix(mark.size());
    }
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      take(offset, text.substr(0, end));
      if (end == text.size()) {
        return;
      }
      end_line();
      text.remove_prefix(end + 1);
      offset += end + 1;
      begin_ = offset;
    }
  }
  void finish() {
    if (length_ > 0) {
      end_line();
    }
  }

 private:
  // A piece of a line.
  void take(std::uint64_t offset, std::string_view piece) {
    if (piece.empty()) {
      return;
    }
    if (!options_.keep_invalid) {
      if (const std::size_t bad = utf8_.add(piece); bad < piece.size()) {
        fail(offset + bad,
             "no UTF-8: convert the file, or take its bytes as they are "
             "(keep_invalid)");
      }
    }
    length_ += piece.size();
    ends_in_return_ = piece.back() == '\r';
  }

  void end_line() {
    if (!options_.keep_invalid && !utf8_.complete()) {
      fail(begin_ + length_, "no UTF-8: a character is cut short");
    }
    std::uint64_t length = length_ - (ends_in_return_ ? 1 : 0);
    const auto most = static_cast<std::uint64_t>(options_.max_length);
    if (length > most) {
      if (!options_.cut_long) {
        fail(begin_, std::to_string(length) + " bytes, more than max_length, " +
                         std::to_string(most) + ": raise that, or have long lines cut (cut_long)");
      }
      length = cut(most);
    }
    if (length > 0 || options_.keep_empty) {
      lines_.add_record(begin_, static_cast<std::uint32_t>(length));
    }
    length_ = 0;
    ends_in_return_ = false;
  }

  // Returns where a line that is longer than most is cut: at most there, between characters.
  std::uint64_t cut(std::uint64_t most) const {
    constexpr std::uint64_t character_max = 4;
    char around[character_max] = {};
    const std::uint64_t first = most - std::min(most, character_max - 1);
    const auto bytes = static_cast<std::size_t>(most + 1 - first);
    file_.read(begin_ + first, std::as_writable_bytes(std::span(around).first(bytes)));
    std::size_t at = bytes - 1;
    while (at > 0 && detail::is_utf8_rest(around[at])) {
      --at;
    }
    return detail::is_utf8_rest(around[at]) ? most : first + at;
  }

  [[noreturn]] void fail(std::uint64_t offset, const std::string& text) const {
    file_.fail(LoadErrorKind::corrupt, "lines", offset,
               "line " + std::to_string(file_.line_at(offset)) + ": " + text);
  }

  const FileBytes& file_;
  const LineOptions& options_;
  RecordFiles& lines_;
  detail::Utf8Check utf8_;
  std::uint64_t begin_ = 0;   // of the line
  std::uint64_t length_ = 0;  // so far
  bool ends_in_return_ = false;
};

}  // namespace

AnyDataset open_lines(const FilePaths& paths, const LineOptions& options) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  EBB_REQUIRE(!paths.empty(), function, "there are no files");
  EBB_REQUIRE(options.max_length > 0 && options.max_length <= most, function,
              "max_length must be 1 to ", std::to_string(most), ", not ",
              std::to_string(options.max_length));
  RecordFiles lines;
  std::uint64_t contents = 0;
  std::string source;
  try {
    for (const std::filesystem::path& path : paths) {
      source = path.string();
      FileBytes file(function, path, options.max_bytes);
      lines.begin_file();
      LineScan scan(file, options, lines);
      file.for_each_part([&](std::uint64_t offset, std::string_view text) {
        contents = detail::hash_bytes(text, contents);
        scan.add(offset, text);
      });
      scan.finish();
      contents = detail::hash_number(file.size(), contents);
      lines.end_file(std::move(file));
    }
    if (lines.size() == 0) {
      lines.file(0).fail(LoadErrorKind::shape, "lines", 0, "there is no line in it");
    }
    lines.shrink_to_fit();
  } catch (const std::bad_alloc&) {
    throw LoadError(function, {.kind = LoadErrorKind::memory,
                               .stage = "lines",
                               .source = source,
                               .text = "there is no memory for the places of its lines"});
  }
  const std::string name = options.name.empty() ? paths.front().filename().string() : options.name;
  return LineDataset(name, std::move(lines), options, contents);
}

}  // namespace ebb::inline v0
