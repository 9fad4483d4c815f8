#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A host that compiles with nvcc can include every public header.
# Used as: nvcc.sh HEADER... -- NVCC ARG...
set -euo pipefail
headers=()
while [ "$1" != -- ]; do headers+=("$1"); shift; done
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
  printf '#include <%s>\n' "${headers[@]}"
  echo '__global__ void kernel(int* out) { *out = 1; }'
} >"$folder/all.cu"
"$@" -std=c++20 -c "$folder/all.cu" -o "$folder/all.o"
echo "nvcc takes ${#headers[@]} headers"
