// SPDX-License-Identifier: Apache-2.0
// Straggler reports as text and as JSON. [gc.report]
#include "stragglers.h"

#include <ebb/gc/report.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace ebb::inline v0 {
namespace {

std::string count_of(std::uint64_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

// Returns how many bytes of text, which is not empty, its first character has; 0: it is not UTF-8.
std::size_t utf8_length(std::string_view text) noexcept {
  constexpr std::array<std::uint32_t, 5> least_code{0, 0, 0x80, 0x800, 0x10000};
  constexpr unsigned bits_more = 6;  // in each byte after the first
  const auto lead = static_cast<std::uint8_t>(text[0]);
  const auto ones = static_cast<std::size_t>(std::countl_one(lead));
  if (ones == 0) {
    return 1;
  }
  if (ones == 1 || ones >= least_code.size() || ones > text.size()) {
    return 0;
  }
  std::uint32_t code = lead & (0x7fu >> ones);
  for (const char c : text.substr(1, ones - 1)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (std::countl_one(byte) != 1) {
      return 0;
    }
    code = code << bits_more | (byte & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least_code[ones] || code > 0x10ffff || surrogate ? 0 : ones;
}

// What is not UTF-8, a file's name perhaps, gets replacement characters.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto code = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\\ufffd";
    } else if (code == '"' || code == '\\') {
      out += '\\';
      out += text[0];
    } else if (code < 0x20) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", code);
      out += escape.data();
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out + "\"";
}

// One JSON object, member by member.
class JsonObject {
 public:
  JsonObject& add(const char* key, std::string_view text) {
    return add_raw(key, json_string(text));
  }
  JsonObject& add(const char* key, std::uint64_t number) {
    return add_raw(key, std::to_string(number));
  }
  JsonObject& add(const char* key, Bytes bytes) { return add(key, std::uint64_t{bytes.count()}); }
  JsonObject& add_raw(const char* key, const std::string& json) {
    text_ += (text_.empty() ? "" : ",") + json_string(key) + ":" + json;
    return *this;
  }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

template <class Item, class Write>
std::string json_list(const std::vector<Item>& items, Write write) {
  std::string list;
  for (const Item& item : items) {
    list += (list.empty() ? "" : ",") + write(item);
  }
  return "[" + list + "]";
}

std::string json_trace(const StragglerTrace& t) {
  return JsonObject()
      .add("sequence", t.sequence)
      .add_raw("frames", json_list(t.frames, json_string))
      .text();
}

std::string json_job(const JobPlace& p) {
  return JsonObject()
      .add("file", p.place.file)
      .add("line", std::uint64_t{p.place.line})
      .add("count", p.count)
      .text();
}

std::string json_place(const StragglerPlace& p) {
  return JsonObject()
      .add("file", p.place.file)
      .add("line", std::uint64_t{p.place.line})
      .add("count", p.count)
      .add("bytes", p.bytes)
      .add("what", p.what)
      .add("name", p.name)
      .add("phase", p.phase)
      .add("holder", p.holder)
      .add("sequence", p.sequence)
      .add("thread", p.thread)
      .add("streak", std::uint64_t{p.streak})
      .add_raw("waited", p.waited ? "true" : "false")
      .add("earlier_count", p.earlier_count)
      .add("earlier_bytes", p.earlier_bytes)
      .add("age", p.age)
      .add_raw("traces", json_list(p.traces, json_trace))
      .text();
}

const char* action_word(CloseAction action) {
  switch (action) {
    case CloseAction::none:
      return "none";
    case CloseAction::adopted:
      return "adopted";
    case CloseAction::revoked:
      return "revoked";
    case CloseAction::failed:
      return "failed";
  }
  return "";
}

}  // namespace

std::string to_string(Bytes bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes.count());
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), unit == 0 || value >= 100 ? "%.0f %s" : "%.3g %s", value,
                units[unit]);
  return text.data();
}

std::string StragglerReport::text() const {
  std::string out = "loop \"" + loop + "\", iteration " + std::to_string(iteration) + ": ";
  if (count > 0) {
    out += count_of(count, "storage") + " (" + to_string(bytes) + ") still alive";
  }
  if (jobs > 0) {
    out += (count > 0 ? " and " : "") + count_of(jobs, "job") + " not ended";
  }
  if (count == 0 && jobs == 0) {
    out += "everything was finalized at the last moment";
  }
  out += " " + std::to_string(waited.count()) + " ms after closing began";
  if (action != CloseAction::failed && count > 0) {
    out += count == 1 ? "; the runtime owns it now" : "; the runtime owns them now";
  }
  if (revoked_count > 0) {
    out += "; " + std::to_string(revoked_count) + " revoked, which gave " +
           to_string(revoked_bytes) + " back";
  }
  detail::append_jobs(out, jobs_started);
  detail::append_places(out, places);
  return out;
}

std::string StragglerReport::json() const {
  const auto milliseconds = [](Milliseconds t) {
    return t == forever ? "null" : std::to_string(t.count());
  };
  return JsonObject()
      .add("loop", loop)
      .add("iteration", iteration)
      .add("action", action_word(action))
      .add_raw("waited_ms", milliseconds(waited))
      .add_raw("deadline_ms", milliseconds(deadline))
      .add("count", count)
      .add("bytes", bytes)
      .add("revoked_count", revoked_count)
      .add("revoked_bytes", revoked_bytes)
      .add("jobs", jobs)
      .add_raw("jobs_started", json_list(jobs_started, json_job))
      .add_raw("places", json_list(places, json_place))
      .text();
}

}  // namespace ebb::inline v0
