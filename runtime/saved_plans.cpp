// SPDX-License-Identifier: Apache-2.0
#include "saved_plans.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <unistd.h>

namespace ebb::inline v0::detail {

namespace {

[[noreturn]] void fail(const char* function, const std::string& path, int error) {
  throw std::runtime_error("[" + std::string(function) + "] " + path + ": " +
                           std::generic_category().message(error));
}

// The files of two processes that save to one path at the same time must not mix.
std::string name_beside(const std::string& path) {
  return path + "." + std::to_string(getpid()) + ".tmp";
}

}  // namespace

void write_plan_file(const std::string& path, std::string_view text) {
  const std::string beside = name_beside(path);
  errno = 0;
  std::ofstream file(beside, std::ios::binary);
  file << text;
  file.close();
  std::error_code error(errno != 0 ? errno : EIO, std::generic_category());
  if (file) {
    std::filesystem::rename(beside, path, error);
  }
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    fail("Loop::save_plans", path, error.value());
  }
}

std::string read_plan_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 14> some{};
  while (file.is_open() && !file.eof() && !file.bad()) {
    file.read(some.data(), some.size());
    text.append(some.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) {
    fail("Loop::load_plans", path, errno != 0 ? errno : EIO);
  }
  return text;
}

}  // namespace ebb::inline v0::detail
