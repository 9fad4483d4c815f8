// SPDX-License-Identifier: Apache-2.0
// Where the rivals are, and making sure that a child's malloc is the one it is named after.
#include "rivals.h"

#include <array>
#include <filesystem>
#include <stdexcept>

#include <dlfcn.h>
#include <malloc.h>

namespace ebb::bench {
namespace {

struct Preloaded {
  const char* name;
  const char* library;
  const char* package;
};

constexpr std::array<Preloaded, 4> preloaded{{
    {"mimalloc", "libmimalloc.so.2", "libmimalloc2.0"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
    {"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
    {"tbbmalloc", "libtbbmalloc_proxy.so.2", "libtbbmalloc2"},
}};

std::string find_library(const std::string& library) {
  std::vector<std::string> paths;
  for (const char* const folder : {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/",
                                   "/usr/lib64/", "/usr/lib/", "/usr/local/lib/"}) {
    paths.push_back(folder + library);
  }
  return first_existing(paths);
}

// The loader goes on without a library that it cannot load, and the figures would be glibc's.
void require_malloc_of(const std::string& path) {
  Dl_info info{};
  if (::dladdr(::dlsym(RTLD_DEFAULT, "malloc"), &info) == 0 ||
      !std::filesystem::equivalent(info.dli_fname, path)) {
    throw std::runtime_error("[rivals] malloc is not that of " + path);
  }
}

Side make_side(const Preloaded& it, const std::string& part, const Measure& measure) {
  const std::string path = find_library(it.library);
  return {.name = it.name,
          .measure =
              [path, measure](const Effort& effort) {
                require_malloc_of(path);
                return measure(effort);
              },
          .environment = {{"LD_PRELOAD", path}},
          .missing = path.empty() ? std::string("install ") + it.package : "",
          .part = part};
}

Side tuned_glibc(const std::string& part, const Measure& measure) {
  return {.name = "glibc-tuned",
          .measure =
              [measure](const Effort& effort) {
                ::mallopt(M_MMAP_MAX, 0);
                ::mallopt(M_TRIM_THRESHOLD, -1);
                return measure(effort);
              },
          .environment = {{"LD_PRELOAD", ""}},
          .part = part};
}

}  // namespace

std::vector<Side> rivals(const std::string& part, const Measure& measure) {
  std::vector<Side> sides{tuned_glibc(part, measure)};
  for (const Preloaded& it : preloaded) {
    sides.push_back(make_side(it, part, measure));
  }
  return sides;
}

Side rival(const std::string& name, const std::string& part, const Measure& measure) {
  for (const Side& side : rivals(part, measure)) {
    if (side.name == name) {
      return side;
    }
  }
  throw std::invalid_argument("[rival] nobody is called '" + name + "'");
}

Side default_glibc(const std::string& part, const Measure& measure) {
  return {.name = "glibc", .measure = measure, .environment = {{"LD_PRELOAD", ""}}, .part = part};
}

}  // namespace ebb::bench
