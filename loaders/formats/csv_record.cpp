// SPDX-License-Identifier: Apache-2.0
// Records and cells of CSV. A quote means something where a cell begins and in a quoted cell only;
// elsewhere it is a character like others, as in what spreadsheets write.
#include "csv_record.h"

#include <algorithm>

namespace ebb::inline v0::detail {

std::size_t CsvRecords::walk(std::uint64_t offset, std::string_view text) noexcept {
  // A record without quotes, as most are, ends with its line.
  const std::size_t line = std::min(text.find('\n'), text.size());
  std::size_t i = 0;
  if (state_ == State::cell_begins || state_ == State::plain) {
    if (dialect_.quote == 0 ||
        text.substr(0, line).find(dialect_.quote) == std::string_view::npos) {
      i = line;
      if (line > 0) {
        state_ = after(text[line - 1]);
      }
    }
  }
  for (; i < text.size(); ++i) {
    if (state_ == State::quoted) {
      i = std::min(text.find(dialect_.quote, i), text.size());
      if (i == text.size()) {
        break;
      }
    } else if (text[i] == '\n') {
      ended_ = true;
      break;
    }
    const State next = after(text[i]);
    if (next == State::quoted && state_ == State::cell_begins) {
      quote_at_ = offset + i;
    }
    state_ = next;
  }
  if (i > 0) {
    last_is_return_ = text[i - 1] == '\r';
  }
  return ended_ ? i + 1 : i;
}

CsvRecords::State CsvRecords::after(char c) const noexcept {
  const bool is_quote = c == dialect_.quote && dialect_.quote != 0;
  if (state_ == State::quoted) {
    return is_quote ? State::quote_in_quoted : State::quoted;
  }
  if (is_quote && state_ != State::plain) {
    return State::quoted;
  }
  return c == dialect_.delimiter ? State::cell_begins : State::plain;
}

bool CsvCells::next() {
  if (problem_ != nullptr || next_ > record_.size()) {
    return false;
  }
  offset_ = next_;
  if (dialect_.quote != 0 && offset_ < record_.size() && record_[offset_] == dialect_.quote) {
    take_quoted();
  } else {
    take_plain();
  }
  return problem_ == nullptr;
}

void CsvCells::take_plain() noexcept {
  const std::size_t end = std::min(record_.find(dialect_.delimiter, offset_), record_.size());
  text_ = record_.substr(offset_, end - offset_);
  next_ = end + 1;
}

void CsvCells::take_quoted() {
  std::size_t begin = offset_ + 1;
  unquoted_.clear();
  for (;;) {
    const std::size_t end = record_.find(dialect_.quote, begin);
    if (end == std::string_view::npos) {
      fail(offset_, "a quote that nothing closes");
      return;
    }
    const std::string_view piece = record_.substr(begin, end - begin);
    const bool is_doubled = end + 1 < record_.size() && record_[end + 1] == dialect_.quote;
    begin = end + 1;
    if (!is_doubled && unquoted_.empty()) {
      text_ = piece;
      break;
    }
    unquoted_ += piece;
    if (!is_doubled) {
      text_ = unquoted_;
      break;
    }
    unquoted_ += dialect_.quote;
    ++begin;
  }
  if (begin < record_.size() && record_[begin] != dialect_.delimiter) {
    fail(begin, "text follows a closing quote: within quotes, a quote is written twice");
    return;
  }
  next_ = begin + 1;
}

void CsvCells::fail(std::size_t offset, const char* problem) noexcept {
  offset_ = offset;
  problem_ = problem;
}

}  // namespace ebb::inline v0::detail
