#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks that need a GPU, within five minutes: its tests, the cuda benchmark, and a training compared with the
# CPU's. Runs the programs that tests/gpu/pack.sh has put into build-gpu/, and builds them only where they do not
# start. Prints a table, writes a JSON file, and exits with 0 only if all passed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
packed=$root/build-gpu
json=${OUT:-$packed}/gpu.json
build=''
dry=()

usage() {
  echo "usage: tests/gpu/run.sh [--json FILE] [--dry-run] [--build FOLDER] [--pack]
  --json FILE     where the result goes (default: gpu.json in \$OUT, or in build-gpu/)
  --dry-run       the same on the simulated device, as short as can be: the times mean nothing
  --build FOLDER  take the programs of this Meson build
  --pack          only build what a machine with a GPU is to be given, into build-gpu/"
}

while [ $# -gt 0 ]; do
  case $1 in
    --json) json=${2:?} ; shift ;;
    --dry-run) dry=(--dry-run) ;;
    --build) build=${2:?} ; shift ;;
    --pack) exec "$here/pack.sh" ;;
    --help | -h) usage ; exit 0 ;;
    *) usage >&2 ; exit 2 ;;
  esac
  shift
done

if [ -n "$build" ]; then
  packed=$(mktemp -d)
  trap 'rm -rf "$packed"' EXIT
  "$here/pack.sh" --build "$build" --out "$packed"
fi
# For the programs only: Python and Meson have libraries of their own.
libraries=$packed/lib:/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

starts() {  # that the loader finds all that they are linked to
  env LD_LIBRARY_PATH="$libraries" "$packed/bin/mlp" --help >/dev/null 2>&1 &&
    [[ $(env LD_LIBRARY_PATH="$libraries" "$packed/bin/bench-cuda" --help 2>&1) == bench:* ]]
}

if ! starts; then
  echo "run: what is in $packed does not start here; building it"
  "$here/pack.sh"
  starts || { echo "run: what was built here does not start" >&2; exit 1; }
fi
python3 "$here/checks.py" --programs "$packed/bin" --libraries "$libraries" --json "$json" "${dry[@]}"
