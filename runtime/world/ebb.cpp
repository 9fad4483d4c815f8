// SPDX-License-Identifier: Apache-2.0
// The ebb command: tells what the installed library is; its tools are subcommands, each in a file
// of its own. Used by people at a shell and by scripts; links libebb as a host does.
// Single-threaded.
#include "plan_command.h"
#include "replay_command.h"

#include <ebb/alloc/devices.h>
#include <ebb/alloc/version.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

namespace {

// What a bug report needs: versions, compiler, backends and devices.
void print_info() {
  std::printf("ebb       %s\n", ebb::version());
  std::printf("compiler  %s\n", EBB_INFO_COMPILER);
  std::printf("checks    %s\n", EBB_INFO_CHECKS);
  const bool cuda = std::string_view(ebb::backend_name()) == "cuda";
  std::printf("backends  cpu%s\n", cuda ? ", cuda" : "");
  for (const ebb::DeviceInfo& info : ebb::devices()) {
    std::printf("device    %s, %s, %zu MiB\n", ebb::to_string(info.device).c_str(),
                info.name.c_str(), info.memory.count() >> 20);
  }
  if (const std::string reason = ebb::no_cuda_reason(); !reason.empty()) {
    std::printf("no cuda   %s\n", reason.c_str());
  }
}

constexpr int no_result = 2;

int run(int argc, char** argv) {
  CLI::App app{"Tools of the ebb training-loop runtime", "ebb"};
  app.set_version_flag("--version", std::string("ebb ") + ebb::version());
  app.require_subcommand(1);
  app.add_subcommand("info", "Print version, compiler, backends and devices")->callback(print_info);
  int status = 0;
  ebb::world::add_plan_command(app, status);
  ebb::world::add_replay_command(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : no_result;
  }
  return status;
}

// A file that has no room for all of it tells only now.
bool all_is_written() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return true;
  }
  std::fputs("ebb: the output could not be written\n", stderr);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = run(argc, argv);
    return all_is_written() ? status : no_result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ebb: %s\n", error.what());
  } catch (...) {
    std::fputs("ebb: unknown error\n", stderr);
  }
  return no_result;
}
