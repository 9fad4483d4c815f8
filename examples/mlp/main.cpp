// SPDX-License-Identifier: Apache-2.0
// The example to read first: a network, real images, a guarded loop. Everything that is not the
// loop is in the files beside it.
#include "data.h"
#include "mlp.h"
#include "options.h"
#include "report.h"

#include <ebb/alloc/sim.h>
#include <ebb/ebb.h>
#include <ebb/runtime/device_stream.h>

#include <cstdio>
#include <string>

#include <nn/weights.h>

namespace {

double evaluate(ebb::Runtime& rt, const Mlp& model, const ebb::AnyDataset& data) {
  ebb::Loader loader(rt, data, {.batch = 256, .shuffle = false});
  ebb::Loop loop(rt, {.name = "evaluate"});
  std::int64_t correct = 0;
  for (auto& it : loop.over(loader)) {
    auto [x, y] = it.fields<2>();
    correct += model.count_correct(x, y);
  }
  loop.finish();
  return static_cast<double>(correct) / static_cast<double>(data.size());
}

void import_weights(const std::string& path, Mlp& model) {
  try {
    ebb::nn::load_weights(path, model.parameters());
  } catch (const std::runtime_error& error) {
    throw BadInput(std::string(error.what()) + "; give --import a file that --export wrote");
  }
}

ebb::RuntimeOptions runtime_options(const Options& options) {
  ebb::RuntimeOptions runtime{.threads = options.threads, .executor = options.executor};
  if (options.device != ebb::cpu) {
    runtime.devices.push_back(options.device);
  }
  if (options.device.kind == ebb::DeviceKind::sim) {
    runtime.backend = ebb::SimMachine().backend();
  }
  return runtime;
}

void train(const Options& options) {
  ebb::Runtime rt(runtime_options(options));
  const Data data = open_data(options);
  ebb::Loader loader(rt, data.train,
                     {.batch = options.batch, .seed = options.seed, .workers = options.workers});
  Mlp model(rt, {.inputs = data.inputs,
                 .classes = classes,
                 .seed = options.seed,
                 .sgd = {.rate = options.rate, .momentum = options.momentum},
                 .device = options.device});
  const ebb::StreamScope on(rt, model.stream());  // iterations are opened on the model's device
  if (!options.import_path.empty()) {
    import_weights(options.import_path, model);
  }

  ebb::Loop loop(rt, {.name = "train"});
  Report report(options, loop, loader.batches_per_epoch());
  for (auto& it : loop.over(loader, {.epochs = options.epochs})) {
    auto [x, y] = it.fields<2>();         // the loader's memory: no iteration counts it
    ebb::Tensor loss = model.step(x, y);  // what it makes belongs to this iteration
    it.log("loss", loss);                 // read when a device gets there: nothing waits
    report.step(y.size(0), loss);
  }
  loop.finish();
  report.end_training();

  const double accuracy = evaluate(rt, model, data.test);
  if (!options.export_path.empty()) {
    ebb::nn::save_weights(options.export_path, model.parameters());
  }
  report.finish(accuracy);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int bad_input = 2;
  const auto fail = [](const std::exception& error, int code) {
    std::fprintf(stderr, "mlp: %s\n", error.what());
    return code;
  };
  try {
    Options options;
    if (parse_options(argc, argv, options)) {
      train(options);
    }
    return 0;
  } catch (const BadInput& error) {
    return fail(error, bad_input);
  } catch (const ebb::LoadError& error) {
    return fail(error, bad_input);
  } catch (const std::invalid_argument& error) {
    return fail(error, bad_input);
  } catch (const std::exception& error) {
    return fail(error, 1);
  }
}
