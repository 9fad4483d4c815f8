// SPDX-License-Identifier: Apache-2.0
// CSV as RFC 4180 has it: where records end, and what their cells say. Used by open_csv. One thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ebb::inline v0::detail {

struct CsvDialect {
  char delimiter = ',';
  char quote = '"';  // 0: none
};

// Finds the ends of records in a file that comes part by part. Lines' ends within quotes are part
// of a cell; lines without anything are no records.
class CsvRecords {
 public:
  // begin: where the first record does, behind a byte order mark.
  CsvRecords(CsvDialect dialect, std::uint64_t begin) noexcept : dialect_(dialect), begin_(begin) {}

  // Calls found(offset, bytes) for each record that ends in text, a part that begins at offset.
  template <class Found>
  void add(std::uint64_t offset, std::string_view text, Found found) {
    std::size_t done = 0;
    while (done < text.size()) {
      done += walk(offset + done, text.substr(done));
      if (ended_) {
        end(offset + done - 1, found);
        begin_ = offset + done;
      }
    }
  }
  // Calls found for the last record, when no line's end closes it.
  template <class Found>
  void finish(std::uint64_t size, Found found) {
    end(size, found);
  }
  // Returns where the quote lies that nothing closes; after the last part.
  std::optional<std::uint64_t> open_quote() const noexcept {
    return state_ == State::quoted ? std::optional(quote_at_) : std::nullopt;
  }

 private:
  enum class State : std::uint8_t { cell_begins, plain, quoted, quote_in_quoted };

  // Walks to the end of the record or of text. Returns how far; ended_ says which it was.
  std::size_t walk(std::uint64_t offset, std::string_view text) noexcept;
  State after(char c) const noexcept;
  template <class Found>
  void end(std::uint64_t at, Found found) {
    const std::uint64_t bytes = at - begin_ - (last_is_return_ && at > begin_ ? 1 : 0);
    if (bytes > 0) {
      found(begin_, bytes);
    }
    ended_ = false;
    last_is_return_ = false;
    if (state_ != State::quoted) {
      state_ = State::cell_begins;
    }
  }

  CsvDialect dialect_;
  State state_ = State::cell_begins;
  bool ended_ = false;
  bool last_is_return_ = false;  // the record's last character so far
  std::uint64_t begin_;          // of the record
  std::uint64_t quote_at_ = 0;   // the last that opened
};

// The cells of one record, in turn.
class CsvCells {
 public:
  // unquoted keeps the text of a cell with quotes in it, until the next call of next.
  CsvCells(std::string_view record, CsvDialect dialect, std::string& unquoted) noexcept
      : record_(record), dialect_(dialect), unquoted_(unquoted) {}

  // Goes to the next cell. Returns false after the last one, or at a problem.
  bool next();
  std::string_view text() const noexcept { return text_; }
  // Where the cell begins in the record; or the problem lies.
  std::size_t offset() const noexcept { return offset_; }
  // What keeps the record from being read; null: nothing.
  const char* problem() const noexcept { return problem_; }

 private:
  void take_plain() noexcept;
  void take_quoted();
  void fail(std::size_t offset, const char* problem) noexcept;

  std::string_view record_;
  CsvDialect dialect_;
  std::string& unquoted_;
  std::string_view text_;
  std::size_t offset_ = 0;
  std::size_t next_ = 0;  // where the next cell begins; past the end: there is none
  const char* problem_ = nullptr;
};

}  // namespace ebb::inline v0::detail
