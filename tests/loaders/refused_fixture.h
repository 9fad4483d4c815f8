// SPDX-License-Identifier: Apache-2.0
// Opening what must be refused, and what its error must say. For the tests of file formats.
#pragma once

#include "loader_fixture.h"

#include <ebb/loaders/error.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace ebb::test {

// Returns the error of open(), none when there is none.
template <class Open>
std::optional<LoadError> refused(Open open) {
  try {
    open();
  } catch (const LoadError& error) {
    return error;
  }
  return std::nullopt;
}

struct Refusal {
  LoadErrorKind kind;
  std::filesystem::path source;
  std::optional<std::uint64_t> offset;  // none: not checked
  std::string text;                     // is in the message
};

// Demands that open() is refused so, in one line that names file and offset.
template <class Open>
void check_refused(Open open, const Refusal& wanted) {
  CAPTURE(wanted.text);
  const auto error = refused(open);
  REQUIRE(error.has_value());
  CAPTURE(std::string(error->what()));
  CHECK(to_string(error->kind()) == to_string(wanted.kind));
  CHECK(error->info().source == wanted.source.string());
  CHECK_FALSE(error->info().stage.empty());
  REQUIRE(error->info().offset.has_value());
  if (wanted.offset.has_value()) {
    CHECK(*error->info().offset == *wanted.offset);
  }
  CHECK(contains(error->what(), wanted.text));
  CHECK(contains(error->what(),
                 wanted.source.string() + " at byte " + std::to_string(*error->info().offset)));
  CHECK_FALSE(contains(error->what(), "\n"));
}

// Demands that what is no file at all is refused with the reason. open takes a path; folder is one
// that exists.
template <class Open>
void check_no_file(const std::filesystem::path& folder, Open open) {
  const auto check = [&](const std::filesystem::path& path, const std::string& text) {
    const auto error = refused([&] { open(path); });
    CAPTURE(path.string());
    REQUIRE(error.has_value());
    CAPTURE(std::string(error->what()));
    CHECK(to_string(error->kind()) == to_string(LoadErrorKind::io));
    CHECK(contains(error->what(), path.string()));
    CHECK(contains(error->what(), text));
  };
  check(folder / "no-such-file", "No such file");
  check(folder, "");
  const auto pipe = folder / "pipe";
  if (::mkfifo(pipe.c_str(), 0600) == 0) {
    check(pipe, "not a regular file");
  }
}

}  // namespace ebb::test
