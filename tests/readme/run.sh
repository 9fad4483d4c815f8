#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C++ block of README.md must compile, each as the body of a function behind stubs.h.
# Used as: run.sh README COMPILER ARG...
set -euo pipefail
readme=$1
shift
blocks=$(awk '
  /^```cpp/ { n++; inside = 1; print "[[maybe_unused]] static void block_" n "() {"; next }
  /^```/ { if (inside) print "}"; inside = 0; next }
  inside { sub(/^ *\.\.\./, ""); print }' "$readme")
count=$(grep -c '^\[\[maybe_unused\]\] static void block_' <<<"$blocks")
{
  echo '#include "stubs.h"'
  echo "$blocks"
} | "$@" -std=c++20 -fsyntax-only -I "$(dirname "${BASH_SOURCE[0]}")" -x c++ -
echo "$count blocks of README.md compile"
