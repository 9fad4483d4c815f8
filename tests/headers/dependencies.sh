#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No public header may pull in TBB, CUDA or <execution>, whatever the include path holds: the compiler is
# asked for the files it read. Used as: dependencies.sh HEADER... -- COMPILER ARG...
set -euo pipefail
headers=()
while [ "$1" != -- ]; do headers+=("$1"); shift; done
shift
banned='/(tbb|oneapi)/|/cuda|/nvidia/|/execution$|/torch/'

files_read() {  # HEADER...
  printf '#include <%s>\n' "$@" | "${compiler[@]}" -std=c++20 -x c++ -M - | tr -s ' \\' '\n\n' | sed 1d
}

compiler=("$@")
# The check can fail: it sees these.
for forbidden in tbb/task_arena.h execution; do
  files_read "$forbidden" | grep -E "$banned" >/dev/null || { echo "the check does not see <$forbidden>"; exit 1; }
done
if files_read "${headers[@]}" | grep -E "$banned"; then
  for header in "${headers[@]}"; do
    ! files_read "$header" | grep -E "$banned" >/dev/null || echo "<$header> pulls in files listed above"
  done
  exit 1
fi
echo "${#headers[@]} headers are clean"
