// SPDX-License-Identifier: Apache-2.0
// By dlopen. The module has one entry, see cuda/entry.h.
#include "cuda_module.h"

#include "cuda/entry.h"
#include "matrix_view.h"

#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace ebb::inline v0::nn {

namespace {

constexpr const char* file_name = "libebb-nn-cuda.so";

// A build has programs in other folders than the module, but below the same one.
std::vector<std::string> places() {
  std::vector<std::string> list;
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  for (std::filesystem::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const std::filesystem::path& place :
         {folder / file_name, folder / "examples/nn/cuda" / file_name}) {
      if (std::filesystem::exists(place, none)) {
        list.push_back(place.string());
      }
    }
  }
  list.emplace_back(file_name);
  return list;
}

std::shared_ptr<void> open_module() {
  std::string reasons;
  for (const std::string& place : places()) {
    // It stays in the process: cuBLAS brings a C++ library of its own, which takes memory when it
    // is loaded and gives none back.
    if (void* const module = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
      return {module, [](void* opened) { ::dlclose(opened); }};
    }
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is the thread's own
    reasons += std::string("; ") + ::dlerror();
  }
  refuse("make_math", "the math of CUDA devices cannot be loaded: it needs " +
                          std::string(file_name) + ", which a build with nvcc and cuBLAS makes" +
                          reasons);
}

}  // namespace

std::shared_ptr<DeviceOps> load_cuda_ops(Device device) {
  const std::shared_ptr<void> module = open_module();
  const auto entry =
      reinterpret_cast<decltype(&ebb_nn_cuda_ops)>(::dlsym(module.get(), EBB_NN_CUDA_ENTRY_NAME));
  if (entry == nullptr) {
    refuse("make_math", std::string(file_name) + " is of another version of this program");
  }
  OpStatus status;
  DeviceOps* const ops = entry(static_cast<int>(device.index), &status);
  if (ops == nullptr) {
    refuse("make_math", "there is no math for " + to_string(device) + ": " + status.call +
                            " failed with code " + std::to_string(status.code) + ", " +
                            status.reason);
  }
  return {ops, [module](DeviceOps* made) { delete made; }};
}

}  // namespace ebb::inline v0::nn
