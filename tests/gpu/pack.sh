#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts what tests/gpu/run.sh needs into one folder that a machine with a GPU can be given: the GPU tests, the cuda
# benchmark, the trainer, and the libraries that such a machine may lack. Builds them first, unless it is given a build.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=''
out=$root/build-gpu
strip=strip

usage() {
  echo "usage: tests/gpu/pack.sh [--build FOLDER] [--out FOLDER]
  --build FOLDER  a Meson build with tests, examples and benchmarks (default: build-pack/, made here)
  --out FOLDER    where to (default: build-gpu/)"
}

fail() {
  echo "pack: $*" >&2
  exit 2
}

while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?} ; strip=true ; shift ;;  # one's own build: what is copied keeps its symbols
    --out) out=${2:?} ; shift ;;
    --help | -h) usage ; exit 0 ;;
    *) usage >&2 ; exit 2 ;;
  esac
  shift
done

# The tests of kind gpu, as paths below the build.
gpu_tests() {
  meson introspect --tests "$build" | python3 -c '
import json, os, sys
for test in json.load(sys.stdin):
    if any(suite.endswith("gpu") for suite in test["suite"]):
        print(os.path.relpath(test["cmd"][0], sys.argv[1]))' "$(realpath "$build")"
}

build_here() {
  build=$root/build-pack
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
  local log
  log=$(mktemp)
  [ -f "$build/build.ninja" ] || meson setup "$build" "$root" -Dtests=auto -Dexamples=enabled -Dbenchmarks=enabled \
    -Dtools=disabled >"$log" 2>&1 || { cat "$log" >&2; fail "could not configure $build"; }
  rm -f "$log"
  local targets=(tests/bench/bench-cuda examples/mlp/mlp) module=examples/nn/cuda/libebb-nn-cuda.so
  mapfile -t -O 2 targets < <(gpu_tests)
  grep -qF "$module" "$build/build.ninja" && targets+=("$module")
  ninja -C "$build" --quiet "${targets[@]}" || fail "could not build"
}

# What a program is linked to, but for what comes with the C++ compiler, the system, or CUDA.
libraries_of() {  # FILE...
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(ld-linux|libc\.|libm\.|libdl\.|librt\.|libpthread\.|libstdc\+\+|libgcc_s|libcu|libnv)' || true
}

[ -n "$build" ] || build_here
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
programs=("$build/tests/bench/bench-cuda" "$build/examples/mlp/mlp")
while read -r test; do
  programs+=("$build/$test")
done < <(gpu_tests)
module=$build/examples/nn/cuda/libebb-nn-cuda.so
[ ! -f "$module" ] || programs+=("$module")
for program in "${programs[@]}"; do
  [ -f "$program" ] || fail "$program is not built"
  cp "$program" "$out/bin/"
  $strip "$out/bin/$(basename "$program")"
done
libraries_of "${programs[@]}" | while read -r library; do
  cp -L "$library" "$out/lib/"
done
du -sh "$out" | sed 's/^/pack: /'
