#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every C++ block of the given pages must compile, each as the body of a function behind stubs.h.
# Used as: run.sh PAGE... -- COMPILER ARG...
set -euo pipefail
pages=()
while [[ $1 != -- ]]; do
  pages+=("$1")
  shift
done
shift
blocks=$(awk '
  /^```cpp/ { n++; inside = 1; print "[[maybe_unused]] static void block_" n "() {"; next }
  /^```/ { if (inside) print "}"; inside = 0; next }
  inside { sub(/^ *\.\.\./, ""); print }' "${pages[@]}")
count=$(grep -c '^\[\[maybe_unused\]\] static void block_' <<<"$blocks")
{
  echo '#include "stubs.h"'
  echo "$blocks"
} | "$@" -std=c++20 -fsyntax-only -I "$(dirname "${BASH_SOURCE[0]}")" -x c++ -
echo "$count blocks of ${#pages[@]} pages compile"
