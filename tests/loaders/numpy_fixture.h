// SPDX-License-Identifier: Apache-2.0
// Files that NumPy itself writes, where it is installed. For the tests of npy and npz.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace ebb::test {

// Runs a Python script in folder, with numpy as np. Returns whether there was a NumPy to do so.
inline bool run_numpy(const std::filesystem::path& folder, const std::string& script) {
  std::ofstream(folder / "script.py") << "import numpy as np\n" << script;
  // Debian's own, where another one comes first on the path.
  for (const char* const python : {"python3", "/usr/bin/python3"}) {
    const std::string call = "cd '" + folder.string() + "' && " + python;
    // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c): one thread, and a path of our own
    if (std::system((call + " -c 'import numpy' 2>/dev/null").c_str()) == 0) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe,cert-env33-c): as above
      return std::system((call + " script.py").c_str()) == 0;
    }
  }
  return false;
}

}  // namespace ebb::test
