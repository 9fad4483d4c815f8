// SPDX-License-Identifier: Apache-2.0
// The options, their limits, and the paths that must be writable.
#include "options.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

#include <nn/output_file.h>

namespace {

// A range with a message that says what to do.
template <class T>
CLI::Validator between(T low, T high) {
  const std::string range = CLI::detail::to_string(low) + " to " + CLI::detail::to_string(high);
  return {[=](std::string& text) {
            T value{};
            if (!CLI::detail::lexical_cast(text, value) || !(value >= low) || !(value <= high)) {
              return text + " is out of range: give a number from " + range;
            }
            return std::string();
          },
          range};
}

ebb::Device device_of(const std::string& text) {
  const auto refuse = [](const std::string& why) { throw CLI::ValidationError("--device", why); };
  ebb::Device device;
  try {
    device = ebb::parse_device(text);
  } catch (const std::invalid_argument&) {
    refuse("\"" + text + "\" names no device; known forms: cpu, cuda, cuda:N, sim");
  }
  if (device.kind == ebb::DeviceKind::sim && device.index != 0) {
    refuse("there is one simulated device, sim, and no " + text);
  }
  return device;
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "folder with the four IDX files, plain or .gz")
      ->capture_default_str();
  app.add_flag("--synthetic", options.synthetic, "train on made-up images; needs no files");
  app.add_option("--epochs", options.epochs)->check(between(1, 100000))->capture_default_str();
  app.add_option("--batch", options.batch, "samples a step")
      ->check(between(1, 65536))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "tasks that load ahead; 0: the loop loads")
      ->check(between(0, 256))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads of a step (default: as many as cores)")
      ->check(between(1, 256));
  app.add_option("--seed", options.seed, "of weights and order")->capture_default_str();
  app.add_option("--lr", options.rate)->check(between(1e-9, 1e3))->capture_default_str();
  app.add_option("--momentum", options.momentum)
      ->check(between(0.0, 0.9999))
      ->capture_default_str();
  app.add_option("--mean", options.mean, "pixels are (byte/255 - mean)/std")
      ->check(between(-1e3, 1e3))
      ->capture_default_str();
  app.add_option("--std", options.std)->check(between(1e-6, 1e3))->capture_default_str();
  app.add_option("--executor", options.executor, "tbb or jthread")
      ->transform(CLI::CheckedTransformer(std::map<std::string, ebb::ExecutorKind>{
          {"jthread", ebb::ExecutorKind::jthread}, {"tbb", ebb::ExecutorKind::tbb}}));
  app.add_option_function<std::string>(
      "--device", [&options](const std::string& text) { options.device = device_of(text); },
      "cpu, cuda, cuda:N, or sim: a simulated device, to try the ways of one (default: cpu)");
  app.add_option("--json", options.json_path, "write the results to this file");
  app.add_option("--import", options.import_path, "start from these weights (safetensors)");
  app.add_option("--export", options.export_path, "write the trained weights");
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options) {
  CLI::App app("Trains 784-512-512-10 with tanh on images in IDX files.", "mlp");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw BadInput(std::string(error.what()) + " (mlp --help lists the options)");
  }
  for (const std::string& path : {options.json_path, options.export_path}) {
    if (!path.empty()) {
      try {
        ebb::nn::require_writable(path);
      } catch (const std::runtime_error& error) {
        throw BadInput(std::string(error.what()) + "; give --json and --export paths in a folder " +
                       "that exists and that you may write");
      }
    }
  }
  return true;
}
