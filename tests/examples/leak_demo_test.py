# SPDX-License-Identifier: Apache-2.0
"""Runs leak_demo and compares what it prints with what the docs show.

leak_demo_test.py PROGRAM DOCS [--update]: with --update the docs are rewritten instead.
Times, thread numbers and the folder of the sources differ from run to run and are not compared.
"""
import difflib
import re
import subprocess
import sys

SHOWN = re.compile(r"(<!-- the output of leak_demo -->\n```text\n)(.*?)(```\n)", re.S)


def normal(text):
    text = re.sub(r"\S*/leak_demo\.cpp", "leak_demo.cpp", text)
    text = re.sub(r"[1-9]\d* ms after", "20 ms after", text)
    text = re.sub(r"made by thread \d+", "made by thread 4711", text)
    text = re.sub(r"\+0x[0-9a-f]+", "+0x1234", text)
    # What the compiler has inlined, or the C library has around main, differs from build to build.
    return re.sub(r"^ {6}(?!mistakes::|main ).*\n", "", text, flags=re.M)


def main(program, docs, *options):
    run = subprocess.run([program], capture_output=True, text=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"{program} ended with {run.returncode}\n{run.stdout}{run.stderr}")
    printed = normal(run.stdout).rstrip() + "\n"
    with open(docs, encoding="utf-8") as file:
        text = file.read()
    shown = SHOWN.search(text)
    if shown is None:
        sys.exit(f"{docs} has no place for the output of leak_demo")
    if "--update" in options:
        with open(docs, "w", encoding="utf-8") as file:
            file.write(SHOWN.sub(lambda m: m[1] + printed + m[3], text))
    elif shown[2] != printed:
        diff = difflib.unified_diff(shown[2].splitlines(), printed.splitlines(), docs, program, lineterm="")
        sys.exit("\n".join(diff) + f"\n{docs} does not show what leak_demo prints: {sys.argv[0]} ... --update")


main(*sys.argv[1:])
