// SPDX-License-Identifier: Apache-2.0
// Straggler reports as text and as JSON. [gc.report]
#include "stragglers.h"

#include <ebb/gc/report.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace ebb::inline v0 {
namespace {

std::string count_of(std::uint64_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

// Returns how many bytes the character at the begin of text has, 0 when that is no UTF-8.
std::size_t character_bytes(std::string_view text) {
  // By the first byte: how long the character is, and the least and the most that its second byte
  // may be, which keeps out what is overlong, a surrogate, or beyond the last one.
  struct Form {
    unsigned char first_least;
    unsigned char first_most;
    std::size_t bytes;
    unsigned char least = 0x80;
    unsigned char most = 0xbf;
  };
  constexpr std::array<Form, 9> forms{{{0x00, 0x7f, 1},
                                       {0xc2, 0xdf, 2},
                                       {0xe0, 0xe0, 3, 0xa0},
                                       {0xe1, 0xec, 3},
                                       {0xed, 0xed, 3, 0x80, 0x9f},
                                       {0xee, 0xef, 3},
                                       {0xf0, 0xf0, 4, 0x90},
                                       {0xf1, 0xf3, 4},
                                       {0xf4, 0xf4, 4, 0x80, 0x8f}}};
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto* const form = std::find_if(forms.begin(), forms.end(), [&](const Form& f) {
    return byte(0) >= f.first_least && byte(0) <= f.first_most;
  });
  if (form == forms.end() || text.size() < form->bytes) {
    return 0;
  }
  for (std::size_t i = 1; i < form->bytes; ++i) {
    if (byte(i) < (i == 1 ? form->least : 0x80) || byte(i) > (i == 1 ? form->most : 0xbf)) {
      return 0;
    }
  }
  return form->bytes;
}

// What is no UTF-8 is replaced: names of files may be any bytes, and JSON may not.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const auto code = static_cast<unsigned char>(c);
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", code);
      out += escape.data();
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
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
