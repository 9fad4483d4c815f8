#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Prints "PASSED FAILED SKIPPED" of one Meson test log: doctest's cases where a program counts them,
# else the program itself. A log that is not there holds no tests. Used by ./dev test, and by tests/gpu/checks.py.
import json
import os
import re
import sys

CASES = re.compile(r"\[doctest\] test cases:\s*(\d+) \|\s*(\d+) passed \|\s*(\d+) failed \|\s*(\d+) skipped")


def count(entry):
    cases = CASES.findall(entry.get("stdout", ""))
    passed, failed, skipped = (sum(int(c[i]) for c in cases) for i in (1, 2, 3))
    if not cases:
        passed = int(entry["result"] == "OK")
        skipped = int(entry["result"] == "SKIP")
    # A crash, a time-out or a sanitizer's report: no case failed, the program did.
    if entry["result"] not in ("OK", "SKIP") and failed == 0:
        failed = 1
    return passed, failed, skipped


def main():
    if not os.path.exists(sys.argv[1]):
        print(0, 0, 0)
        return
    with open(sys.argv[1], encoding="utf-8") as log:
        results = [count(json.loads(line)) for line in log]
    print(*(sum(r[i] for r in results) for i in range(3)))


if __name__ == "__main__":
    main()
