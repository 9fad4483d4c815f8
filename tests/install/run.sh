#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs ebb to a temporary prefix, static and shared, checks what was installed, and builds and runs the
# hosts against it. The shared one is built without CUDA, so that both backends are installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
builds=()
trap 'rm -rf "$work" "${builds[@]}"' EXIT
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Werror)

fail() {
  echo "install: $*" >&2
  exit 1
}

quietly() {  # COMMAND...: shows its output only if it fails
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }
}

install_ebb() {  # KIND OPTION...: to $work/KIND
  local folder
  folder=$(mktemp -d "$root/build-install.XXXXXX")  # as deep as build/: so ccache compiles once for both
  builds+=("$folder")
  quietly meson setup "$folder" "$root" --prefix "$work/$1" -Ddefault_library="$1" \
    -Dtests=disabled -Dexamples=disabled -Dbenchmarks=disabled "${@:2}"
  quietly meson install -C "$folder"
}

# A forgotten line in a module's list would leave a header behind. What is listed is compiled alone by
# tests/headers, with gcc and, in ./dev lint, with clang. The modules share a few that say of
# themselves that they are not installed.
check_headers_complete() {  # PREFIX
  diff <(cd "$root" && find {alloc,alloc/sim,gc,runtime,loaders,loaders/formats}/include -name '*.h' -exec grep -L 'not installed' {} + |
    sed 's,^[a-z/]*/include/,,' | sort) \
    <(cd "$1/include" && find ebb -name '*.h' | sort) || fail "in the source tree (<), but not installed"
}

check_size() {  # PREFIX: DESIGN section 9, without CUDA
  local library size
  library=$(find "$1" -name 'libebb.so.*.*' ! -type l)
  strip -o "$work/stripped" "$library"
  size=$(stat -c %s "$work/stripped")
  echo "install: libebb.so has $size bytes stripped"
  [ "$size" -lt 1048576 ] || fail "libebb.so is larger than 1 MiB"
}

pkgconfig_host() {  # PREFIX NAME FOLDER
  local flags
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$1" -name ebb.pc)") pkg-config --cflags --libs "$2")
  ! grep -qiE 'cuda/include|nlohmann' <<<"$flags" || fail "$2.pc passes on what only the build needs: $flags"
  # shellcheck disable=SC2086  # several words
  quietly g++ "${warnings[@]}" "$here/$3/main.cpp" -o "$work/host" $flags
  run_host "$1" "$work/host"
}

cmake_host() {  # PREFIX
  rm -rf "$work/cmake"
  quietly cmake -S "$here/cmake_host" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_BUILD_TYPE=Release
  quietly cmake --build "$work/cmake"
  run_host "$1" "$work/cmake/host"
  run_host "$1" "$work/cmake/simulated"
  run_host "$1" "$work/cmake/formats"
}

meson_host() {
  cp -r "$here/meson_host" "$work/meson_host"
  mkdir "$work/meson_host/subprojects"
  ln -s "$root" "$work/meson_host/subprojects/ebb"
  quietly meson setup "$work/meson_build" "$work/meson_host"
  quietly ninja -C "$work/meson_build"
  ! grep -q test_main "$work/meson_build/build.ninja" || fail "a host builds ebb's tests"
  run_host "$work" "$work/meson_build/host"
}

run_host() {  # PREFIX PROGRAM
  LD_LIBRARY_PATH=$(dirname "$(find "$1" -name 'libebb.*' -print -quit)") timeout 60 "$2" || fail "the host failed"
}

install_ebb static -Dtools=enabled
check_headers_complete "$work/static"
[ "$("$work/static/bin/ebb" --version)" = "ebb $(sed -n 's/^Version: //p' "$(find "$work/static" -name ebb.pc)")" ] ||
  fail "ebb --version is not ebb.pc's"
"$work/static/bin/ebb" info
pkgconfig_host "$work/static" ebb pkgconfig_host
pkgconfig_host "$work/static" ebb-sim simulated_host
pkgconfig_host "$work/static" ebb-formats formats_host
cmake_host "$work/static"

install_ebb shared -Dcuda=disabled -Dtools=disabled
check_size "$work/shared"
pkgconfig_host "$work/shared" ebb pkgconfig_host
pkgconfig_host "$work/shared" ebb-sim simulated_host
pkgconfig_host "$work/shared" ebb-formats formats_host
cmake_host "$work/shared"

meson_host
echo "install: static, shared and all hosts are right"
