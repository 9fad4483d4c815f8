#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One misuse that the compiler must refuse. The case holds it in `#ifdef EBB_MISUSE`, and a line
# `// expect: TEXT` with an extended regular expression that the error must match. Without EBB_MISUSE the
# case must compile, so that it cannot fail for another reason. Used as: run.sh CASE COMPILER ARG...
set -euo pipefail
source_file=$1
shift
expected=$(sed -n 's,^// expect: ,,p' "$source_file")
[ -n "$expected" ] || { echo "no '// expect: TEXT' in $source_file"; exit 1; }

compile() { LC_ALL=C "${compiler[@]}" -std=c++20 -fsyntax-only "$@" "$source_file" 2>&1; }
compiler=("$@")

compile || { echo "does not compile even without the misuse"; exit 1; }
if errors=$(compile -DEBB_MISUSE); then
  echo "the misuse compiles"
  exit 1
fi
grep -qE -e "$expected" <<<"$errors" || { echo "refused, but without '$expected':"; echo "$errors"; exit 1; }
