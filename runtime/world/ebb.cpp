// SPDX-License-Identifier: Apache-2.0
// The ebb command: tells what the installed library is. Later tools (plan, replay, run) become its
// subcommands. Used by people at a shell; links libebb as a host does. Single-threaded.
#include <ebb/alloc/version.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace {

// What a bug report needs: versions, compiler, backends.
void print_info() {
  const bool cuda = std::string_view(EBB_INFO_CUDA) != "none";
  std::printf("ebb       %s\n", ebb::version());
  std::printf("compiler  %s\n", EBB_INFO_COMPILER);
  std::printf("checks    %s\n", EBB_INFO_CHECKS);
  std::printf("backends  cpu%s\n", cuda ? ", cuda (toolkit " EBB_INFO_CUDA ")" : "");
}

int run(int argc, char** argv) {
  CLI::App app{"Tools of the ebb training-loop runtime", "ebb"};
  app.set_version_flag("--version", std::string("ebb ") + ebb::version());
  app.require_subcommand(1);
  app.add_subcommand("info", "Print version, compiler, backends and devices")->callback(print_info);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ebb: %s\n", error.what());
  } catch (...) {
    std::fputs("ebb: unknown error\n", stderr);
  }
  return 2;
}
