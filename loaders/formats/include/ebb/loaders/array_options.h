// SPDX-License-Identifier: Apache-2.0
// How arrays are read from files, and made data sets: of npy, npz and safetensors. Values: any
// thread.
#pragma once

#include <ebb/alloc/bytes.h>

#include <string>

namespace ebb::inline v0 {

struct ArrayReadOptions {
  // Reads into memory what could be mapped. A mapped file that another program cuts short takes the
  // process with it when it is read there (see map_file); a copy does not.
  bool copy = false;
};

struct ArraySetOptions {
  // An array whose elements take at most so many bytes is read into memory; of a longer one each
  // sample is read from the file when it is loaded.
  Bytes memory_max{256 << 20};
  std::string name = {};  // for messages; empty: the first file's name
};

}  // namespace ebb::inline v0
