// SPDX-License-Identifier: Apache-2.0
// Straggler reports as text and as JSON. [gc.report]
#include "stragglers.h"

#include <ebb/gc/report.h>

#include <array>
#include <cstdio>
#include <string_view>

namespace ebb::inline v0 {
namespace {

std::string count_of(std::uint64_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", code);
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_field(const char* key, const std::string& value) {
  return json_string(key) + ":" + value;
}

template <class Item, class Write>
std::string json_list(const std::vector<Item>& items, Write write) {
  std::string list;
  for (const Item& item : items) {
    list += (list.empty() ? "" : ",") + write(item);
  }
  return "[" + list + "]";
}

std::string json_trace(const StragglerTrace& t) {
  return "{" + json_field("sequence", std::to_string(t.sequence)) + "," +
         json_field("frames", json_list(t.frames, json_string)) + "}";
}

std::string json_job(const JobPlace& p) {
  return "{" + json_field("file", json_string(p.place.file)) + "," +
         json_field("line", std::to_string(p.place.line)) + "," +
         json_field("count", std::to_string(p.count)) + "}";
}

std::string json_place(const StragglerPlace& p) {
  return "{" + json_field("file", json_string(p.place.file)) + "," +
         json_field("line", std::to_string(p.place.line)) + "," +
         json_field("count", std::to_string(p.count)) + "," +
         json_field("bytes", std::to_string(p.bytes.count())) + "," +
         json_field("what", json_string(p.what)) + "," + json_field("name", json_string(p.name)) +
         "," + json_field("phase", json_string(p.phase)) + "," +
         json_field("sequence", std::to_string(p.sequence)) + "," +
         json_field("thread", std::to_string(p.thread)) + "," +
         json_field("streak", std::to_string(p.streak)) + "," +
         json_field("waited", p.waited ? "true" : "false") + "," +
         json_field("earlier_count", std::to_string(p.earlier_count)) + "," +
         json_field("earlier_bytes", std::to_string(p.earlier_bytes.count())) + "," +
         json_field("age", std::to_string(p.age)) + "," +
         json_field("traces", json_list(p.traces, json_trace)) + "}";
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
    out += "; " + std::to_string(revoked_count) + " of them revoked, which gave " +
           to_string(revoked_bytes) + " back";
  }
  detail::append_jobs(out, jobs_started);
  detail::append_places(out, places);
  return out;
}

std::string StragglerReport::json() const {
  const std::string limit = deadline == forever ? "null" : std::to_string(deadline.count());
  return "{" + json_field("loop", json_string(loop)) + "," +
         json_field("iteration", std::to_string(iteration)) + "," +
         json_field("action", json_string(action_word(action))) + "," +
         json_field("waited_ms", std::to_string(waited.count())) + "," +
         json_field("deadline_ms", limit) + "," + json_field("count", std::to_string(count)) + "," +
         json_field("bytes", std::to_string(bytes.count())) + "," +
         json_field("revoked_count", std::to_string(revoked_count)) + "," +
         json_field("revoked_bytes", std::to_string(revoked_bytes.count())) + "," +
         json_field("jobs", std::to_string(jobs)) + "," +
         json_field("jobs_started", json_list(jobs_started, json_job)) + "," +
         json_field("places", json_list(places, json_place)) + "}";
}

}  // namespace ebb::inline v0
