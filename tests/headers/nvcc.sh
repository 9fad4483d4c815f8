#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is CUDA compiles with nvcc: every public header in a host's .cu file, and ebb's backend.
# Used as: nvcc.sh HEADER... -- SOURCE... -- NVCC ARG...
set -euo pipefail
headers=() sources=()
while [ "$1" != -- ]; do headers+=("$1"); shift; done
shift
while [ "$1" != -- ]; do sources+=("$1"); shift; done
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
  printf '#include <%s>\n' "${headers[@]}"
  echo '__global__ void kernel(int* out) { *out = 1; }'
} >"$folder/host.cu"
for source in "$folder/host.cu" "${sources[@]}"; do
  "$@" -std=c++20 -x cu -c "$source" -o "$folder/object.o"
done
echo "nvcc takes ${#headers[@]} headers and ${#sources[@]} sources"
