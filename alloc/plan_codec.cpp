// SPDX-License-Identifier: Apache-2.0
#include "plan_codec.h"

#include "plan_set.h"
#include "region.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace ebb::inline v0 {

namespace detail {

namespace {

constexpr std::string_view heading = "ebb-plans 1";
constexpr std::string_view checksum_word = "checksum ";
constexpr std::string_view load_name = "PlanSet::load";
constexpr std::string_view split_name = "split_plans";
constexpr std::string_view outside = "-";
constexpr std::size_t name_most = 4096;
constexpr std::array<std::string_view, 3> kinds = {"block", "outliving", "iteration"};
// Sums of sizes stay below it, as in plan().
constexpr std::uint64_t total_limit = std::uint64_t{1} << 63;

std::string checksum_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4) {
    *digit = "0123456789abcdef"[hash & 15];
  }
  return digits;
}

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\\') {
      out += {'\\', 'x', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

void check_name(std::string_view name) {
  if (name.size() > name_most) {
    throw std::invalid_argument(
        "[PlanSet::save] the name of a file has " + std::to_string(name.size()) + " bytes, " +
        std::to_string(name_most) + " are the most: " + std::string(name.substr(0, 80)) + "...");
  }
}

// By content: the compiler may keep a file's name several times.
class FileTable {
 public:
  std::size_t number_of(std::string_view name) {
    check_name(name);
    const auto [at, added] = numbers_.try_emplace(name, numbers_.size());
    if (added) {
      text_ += "file " + escaped(name) + "\n";
    }
    return at->second;
  }
  std::size_t size() const { return numbers_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::map<std::string_view, std::size_t> numbers_;
  std::string text_;
};

void write_plan(std::string& out, const IterationPlan& plan) {
  FileTable files;
  std::string entries;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const SequenceEntry& entry = plan.sequence()[i];
    // A block that outlives its iteration may have been learned from one with more allocations.
    const std::size_t dies = std::min<std::size_t>(entry.dies, plan.size());
    const std::uint64_t offset = plan.slots()[i].offset;
    entries += "entry " + std::to_string(entry.bytes.count()) + " " +
               std::to_string(files.number_of(entry.place.file)) + " " +
               std::to_string(entry.place.line) + " " + std::to_string(dies) + " ";
    entries += kinds[static_cast<std::size_t>(entry.kind)];
    entries += " " + std::to_string(entry.align_log2) + " ";
    entries += offset == PlannedSlot::nowhere ? std::string(outside) : std::to_string(offset);
    entries += "\n";
  }
  out += "plan " + std::to_string(files.size()) + " " + std::to_string(plan.size()) + "\n" +
         files.text() + entries;
}

// What is left of a text, line by line. Refuses on behalf of a function, by the number of the line
// read last.
class Lines {
 public:
  Lines(std::string_view text, std::string_view function, std::size_t first_line = 1)
      : left_(text), function_(function), number_(first_line - 1) {}

  bool is_at_end() const { return left_.empty(); }
  std::string_view left() const { return left_; }
  std::size_t number() const { return number_; }
  std::string_view next() {
    ++number_;
    const std::size_t end = left_.find('\n');
    if (end == std::string_view::npos) {
      refuse("the text is cut off");
    }
    const std::string_view line = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return line;
  }
  [[noreturn]] void refuse(const std::string& what) const { refuse(number_, what); }
  [[noreturn]] void refuse(std::size_t line, const std::string& what) const {
    throw std::invalid_argument("[" + std::string(function_) + "] line " + std::to_string(line) +
                                ": " + what);
  }

 private:
  std::string_view left_;
  std::string_view function_;
  std::size_t number_;
};

// What a message shows of a text that may hold anything.
std::string shown(std::string_view text) {
  return "'" + escaped(text.substr(0, 40)) + (text.size() > 40 ? "...'" : "'");
}

// The words of one line, parted by single spaces.
class Words {
 public:
  Words(const Lines& lines, std::string_view line, std::string_view first)
      : lines_(lines), left_(line) {
    if (const std::string_view found = next("word"); found != first) {
      lines_.refuse("'" + std::string(first) + "' should stand here, not " + shown(found));
    }
  }
  std::string_view next(const char* what) {
    if (ended_) {
      lines_.refuse("the " + std::string(what) + " is missing");
    }
    const std::size_t end = left_.find(' ');
    const std::string_view word = left_.substr(0, end);
    ended_ = end == std::string_view::npos;
    left_.remove_prefix(ended_ ? left_.size() : end + 1);
    return word;
  }
  std::uint64_t number(const char* what, std::uint64_t most) {
    return number_of(next(what), what, most);
  }
  std::uint64_t number_of(std::string_view word, const char* what, std::uint64_t most) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc::invalid_argument || end != word.data() + word.size()) {
      lines_.refuse("the " + std::string(what) + " is " + shown(word) + ", which is no number");
    }
    if (error == std::errc::result_out_of_range || value > most) {
      lines_.refuse("the " + std::string(what) + " is " + shown(word) + ", but " +
                    std::to_string(most) + " at most");
    }
    return value;
  }
  // Returns all that is left of the line.
  std::string_view rest(const char* what) {
    if (ended_) {
      lines_.refuse("the " + std::string(what) + " is missing");
    }
    ended_ = true;
    return std::exchange(left_, {});
  }
  void end() const {
    if (!ended_) {
      lines_.refuse("more than belongs here: " + shown(left_));
    }
  }

 private:
  const Lines& lines_;
  std::string_view left_;
  bool ended_ = false;
};

void check_heading(Lines& lines) {
  if (const std::string_view first = lines.next(); first != heading) {
    lines.refuse(shown(first) + " is not '" + std::string(heading) + "'");
  }
}

// Returns the lines without the last one, which is the checksum of the rest.
std::string_view checked_body(Lines lines) {
  const std::string_view text = lines.left();
  const std::size_t last_line =
      lines.number() + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) +
      (text.ends_with('\n') ? 0 : 1);
  check_heading(lines);
  if (text.back() != '\n') {
    lines.refuse(last_line, "the text is cut off");
  }
  const std::size_t begin = text.rfind('\n', text.size() - 2) + 1;
  const std::string_view body = text.substr(0, begin);
  const std::string_view last = text.substr(begin, text.size() - 1 - begin);
  if (!last.starts_with(checksum_word)) {
    lines.refuse(last_line, "the text is cut off: it does not end with a checksum");
  }
  if (last.substr(checksum_word.size()) != checksum_of(body)) {
    lines.refuse(last_line, "the checksum is " + shown(last.substr(checksum_word.size())) +
                                ", that of the text " + checksum_of(body) +
                                ": something was changed");
  }
  return body;
}

std::optional<unsigned> hex_value(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const std::size_t at = digits.find(c);
  return at == std::string_view::npos ? std::nullopt : std::optional(static_cast<unsigned>(at));
}

std::string unescaped(const Lines& lines, std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\') {
      const bool is_whole = i + 3 < text.size() && text[i + 1] == 'x';
      const std::optional<unsigned> high = is_whole ? hex_value(text[i + 2]) : std::nullopt;
      const std::optional<unsigned> low = is_whole ? hex_value(text[i + 3]) : std::nullopt;
      if (!high || !low) {
        lines.refuse("a '\\' in the name of a file without xHH after it");
      }
      c = static_cast<char>(*high << 4 | *low);
      i += 3;
    }
    if (c == '\0') {
      lines.refuse("a byte of 0 in the name of a file");
    }
    name += c;
  }
  return name;
}

std::string read_name(const Lines& lines, std::string_view text) {
  std::string name = unescaped(lines, text);
  if (name.size() > name_most) {
    lines.refuse("the name of a file has " + std::to_string(name.size()) + " bytes, " +
                 std::to_string(name_most) + " are the most");
  }
  return name;
}

// A place that owns its name.
struct NamedPlace {
  std::string file;
  std::uint32_t line = 0;
};

std::uint32_t read_line(Words& words) {
  return static_cast<std::uint32_t>(
      words.number("line", std::numeric_limits<std::uint32_t>::max()));
}

NamedPlace read_place(Lines& lines) {
  Words words(lines, lines.next(), "place");
  const std::uint32_t line = read_line(words);
  return {read_name(lines, words.rest("name of a file")), line};
}

std::string describe(std::string_view file, std::uint32_t line) {
  return escaped(file) + ":" + std::to_string(line);
}

class PlanReader {
 public:
  PlanReader(Lines& lines, std::size_t granule,
             const std::function<const char*(std::string_view)>& keep_name)
      : lines_(lines), granule_(granule), keep_name_(keep_name) {}

  std::shared_ptr<const IterationPlan> read() {
    Words words(lines_, lines_.next(), "plan");
    const std::size_t first_line = lines_.number();
    const std::uint64_t files = words.number("count of files", IterationPlan::slots_max);
    const std::uint64_t entries = words.number("count of entries", IterationPlan::slots_max);
    words.end();
    if (entries == 0) {
      lines_.refuse("the plan has no entries");
    }
    for (std::uint64_t i = 0; i < files; ++i) {
      read_file();
    }
    for (std::uint64_t i = 0; i < entries; ++i) {
      read_entry(i, entries);
    }
    check_offsets();
    try {
      return IterationPlan::with_offsets(std::move(sequence_), granule_, std::move(offsets_));
    } catch (const std::invalid_argument& fault) {
      lines_.refuse(first_line, "no plan begins here: " + std::string(fault.what()));
    }
  }

 private:
  void read_file() {
    constexpr std::string_view word = "file ";
    const std::string_view line = lines_.next();
    if (!line.starts_with(word)) {
      lines_.refuse("'file' should stand here, not " + shown(line));
    }
    files_.push_back(keep_name_(read_name(lines_, line.substr(word.size()))));
  }

  void read_entry(std::uint64_t number, std::uint64_t count) {
    Words words(lines_, lines_.next(), "entry");
    SequenceEntry entry;
    entry.bytes = Bytes{words.number("size", total_limit - granule_)};
    const std::uint64_t file = words.number("number of a file", IterationPlan::slots_max);
    if (file >= files_.size()) {
      lines_.refuse("the plan has no file " + std::to_string(file));
    }
    entry.place.file = files_[file];
    entry.place.line = read_line(words);
    entry.dies = static_cast<std::uint32_t>(words.number("death", count));
    if (entry.dies <= number) {
      lines_.refuse("entry " + std::to_string(number) + " dies at " + std::to_string(entry.dies) +
                    ", before it is allocated");
    }
    entry.kind = read_kind(words);
    entry.align_log2 = static_cast<std::uint8_t>(words.number("alignment", 63));
    read_offset(words, entry);
    words.end();
    total_ += room_for(entry.bytes.count(), granule_);
    if (total_ >= total_limit) {
      lines_.refuse("the sizes of the plan's blocks together are 2^63 bytes or more");
    }
    if (sequence_.empty()) {
      first_entry_ = lines_.number();
    }
    sequence_.push_back(entry);
  }

  AllocationKind read_kind(Words& words) const {
    const std::string_view word = words.next("kind");
    const auto* const kind = std::find(kinds.begin(), kinds.end(), word);
    if (kind == kinds.end()) {
      lines_.refuse("the kind is " + shown(word) + ", not block, outliving or iteration");
    }
    return static_cast<AllocationKind>(kind - kinds.begin());
  }

  void read_offset(Words& words, const SequenceEntry& entry) {
    const std::string_view word = words.next("offset");
    const bool is_placed = IterationPlan::places(entry, granule_);
    if (is_placed == (word == outside)) {
      lines_.refuse(is_placed ? "the block has no offset"
                              : "an offset for a block that is placed outside the plan");
    }
    offsets_.push_back(is_placed ? words.number_of(word, "offset", total_limit)
                                 : PlannedSlot::nowhere);
    if (is_placed && offsets_.back() % granule_ != 0) {
      lines_.refuse("the offset is no multiple of " + std::to_string(granule_));
    }
  }

  // Stacked without any reuse, all blocks end at total_: a plan that goes far beyond would only
  // waste address space.
  void check_offsets() const {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] != PlannedSlot::nowhere && offsets_[i] / 2 >= total_) {
        lines_.refuse(first_entry_ + i, "the offset is " + std::to_string(offsets_[i]) +
                                            ", all blocks of the plan together have " +
                                            std::to_string(total_) + " bytes");
      }
    }
  }

  Lines& lines_;
  const std::size_t granule_;
  const std::function<const char*(std::string_view)>& keep_name_;
  std::vector<const char*> files_;
  AllocationSequence sequence_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t total_ = 0;
  std::size_t first_entry_ = 0;
};

std::uint64_t read_granule(Lines& lines) {
  Words words(lines, lines.next(), "granule");
  const std::uint64_t granule = words.number("granule", total_limit);
  words.end();
  return granule;
}

void check_granule(Lines& lines, std::size_t granule) {
  if (const std::uint64_t theirs = read_granule(lines); theirs != granule) {
    lines.refuse("the offsets are multiples of " + std::to_string(theirs) + ", those here of " +
                 std::to_string(granule));
  }
}

void check_place(Lines& lines, const Place& place) {
  const NamedPlace theirs = read_place(lines);
  if (!place.is_same_as({theirs.file.c_str(), theirs.line})) {
    lines.refuse("the plans are of " + describe(theirs.file, theirs.line) + ", not of " +
                 describe(place.file, place.line));
  }
}

// Reads on to the end of one set's text, and returns that.
SavedPlans take_part(Lines& lines) {
  const Lines begin = lines;
  check_heading(lines);
  bool is_whole = false;
  while (!is_whole) {
    if (lines.is_at_end()) {
      lines.refuse("the text is cut off: it does not end with a checksum");
    }
    is_whole = lines.next().starts_with(checksum_word);
  }
  const std::size_t length = begin.left().size() - lines.left().size();
  const std::string_view text = begin.left().substr(0, length);
  const std::size_t first_line = begin.number() + 1;
  Lines body(checked_body(Lines(text, split_name, first_line)), split_name, first_line);
  check_heading(body);
  const std::uint64_t granule = read_granule(body);
  if (!std::has_single_bit(granule)) {
    body.refuse("the granule is no power of two");
  }
  const NamedPlace place = read_place(body);
  return {.file = place.file,
          .line = place.line,
          .granule = Align{granule},
          .first_line = first_line,
          .text = text};
}

}  // namespace

std::string write_plans(const Place& place,
                        std::span<const std::shared_ptr<const IterationPlan>> plans,
                        std::size_t granule) {
  check_name(place.file);
  std::string out = std::string(heading) + "\ngranule " + std::to_string(granule) + "\nplace " +
                    std::to_string(place.line) + " " + escaped(place.file) + "\n";
  for (const auto& plan : plans) {
    write_plan(out, *plan);
  }
  return out + std::string(checksum_word) + checksum_of(out) + "\n";
}

std::vector<std::shared_ptr<const IterationPlan>> read_plans(
    std::string_view text, const PlanTextSpec& spec,
    const std::function<const char*(std::string_view)>& keep_name) {
  const std::string_view body = checked_body(Lines(text, load_name, spec.first_line));
  Lines lines(body, load_name, spec.first_line);
  check_heading(lines);
  check_granule(lines, spec.granule);
  check_place(lines, spec.place);
  std::vector<std::shared_ptr<const IterationPlan>> plans;
  while (!lines.is_at_end()) {
    plans.push_back(PlanReader(lines, spec.granule, keep_name).read());
  }
  return plans;
}

}  // namespace detail

std::vector<SavedPlans> split_plans(std::string_view text) {
  std::vector<SavedPlans> parts;
  for (detail::Lines lines(text, detail::split_name); !lines.is_at_end();) {
    parts.push_back(detail::take_part(lines));
  }
  return parts;
}

std::string PlanSet::save() const {
  return detail::write_plans(impl_->place, impl_->plans()->list, impl_->granule());
}

void PlanSet::load(std::string_view text, std::size_t first_line) {
  impl_->add(detail::read_plans(
      text, {.place = impl_->place, .granule = impl_->granule(), .first_line = first_line},
      [this](std::string_view name) { return impl_->keep_name(name); }));
}

}  // namespace ebb::inline v0
