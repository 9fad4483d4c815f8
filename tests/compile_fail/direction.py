#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Each module's own compile command must find the headers of its module and of those to its left, and none
# of those to its right. Used as: direction.py BUILD_FOLDER HEADER...
import json
import os
import shlex
import subprocess
import sys

MODULES = ["alloc", "gc", "runtime", "loaders"]  # each may use those before it


def compile_command(build, module):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as commands:
        for entry in json.load(commands):
            if f"{module}/libebb_{module}.a.p/" in entry.get("output", ""):
                words = shlex.split(entry["command"])
                skipped = {words.index(flag) + i for flag in ("-o", "-c", "-MF", "-MQ") for i in (0, 1)}
                return [w for i, w in enumerate(words) if i not in skipped and w != "-MD"]
    raise SystemExit(f"no compile command of {module} in {build}")


def compiles(build, command, header):
    words = command + ["-Wno-unused", "-fsyntax-only", "-x", "c++", "-"]
    run = subprocess.run(words, cwd=build, input=f"#include <{header}>\n", text=True, capture_output=True,
                         env={**os.environ, "LC_ALL": "C"}, check=False)
    missing = f"{header}" in run.stderr and ("No such file" in run.stderr or "file not found" in run.stderr)
    return run.returncode == 0, missing, run.stderr


def main():
    build, headers = sys.argv[1], sys.argv[2:]
    first = {m: next(h for h in headers if h.startswith(f"ebb/{m}/")) for m in MODULES}
    wrong = []
    for place, module in enumerate(MODULES):
        command = compile_command(build, module)
        for other_place, other in enumerate(MODULES):
            compiled, missing, errors = compiles(build, command, first[other])
            allowed = other_place <= place
            if compiled != allowed or missing == allowed:
                wrong.append(f"{module} includes <{first[other]}>: {'refused' if allowed else 'not refused'}\n{errors}")
            else:
                print(f"{module} may {'' if allowed else 'not '}include <{first[other]}>")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
