#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Runs the programs of a folder that tests/gpu/pack.sh has made, judges what they say, prints one table and writes one
# JSON file. Exits with 1 when a check has failed. Used by tests/gpu/run.sh.
import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from count import count  # noqa: E402: it is beside this folder

SKIPPED = 77
# The most that each program may take; together five minutes.
TEST_S, BENCH_S, TRAIN_S = 40, 150, 30
HOLES_NS = 1500
RESERVED = 1.05  # over the live peak, with a plan
OVER_ASYNC = 0.3  # of cudaMallocAsync's time
LOSS_APART = 1e-3  # between devices, which sum in other orders


class Checks:
    def __init__(self, programs, libraries, dry):
        self.programs = programs
        self.environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        self.dry = dry
        self.device = "sim" if dry else "cuda"
        self.result = {"dry_run": dry, "checks": []}

    def run(self, seconds, *command):
        """Returns what was printed and the exit code; 124 where it took too long, with its children ended."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=self.environment, start_new_session=True)
        try:
            return process.communicate(timeout=seconds)[0], process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0], 124

    def check(self, name, passed, value, bound=""):
        self.result["checks"].append({"name": name, "passed": bool(passed), "value": value, "bound": bound})
        print("%-4s %-44s %-24s %s" % ("ok" if passed else "FAIL", name, value, bound), flush=True)

    def at_most(self, name, value, most, judged=True):
        self.check(name, value <= most or not judged, "%.4g" % value, "<= %g" % most if judged else "not judged here")

    def program(self, name):
        return os.path.join(self.programs, name)

    # A dry run has no GPU to test: that its tests say so is all.
    def tests(self):
        total = [0, 0, 0]
        for path in sorted(glob.glob(self.program("test-*"))):
            text, code = self.run(TEST_S, path)
            outcome = {0: "OK", SKIPPED: "SKIP"}.get(code, "FAIL")
            passed, failed, skipped = count({"result": outcome, "stdout": text})
            total = [a + b for a, b in zip(total, (passed, failed, skipped))]
            good = code == 0 or (self.dry and code == SKIPPED)
            said = "skipped" if code == SKIPPED else "%d passed, %d failed" % (passed, failed)
            self.check(os.path.basename(path), good, said)
            if not good:
                print(text)
        self.result["tests"] = dict(zip(("passed", "failed", "skipped"), total))
        self.check("GPU tests ran", total[0] > 0 or self.dry, "%d passed" % total[0], "> 0")

    def bench(self, folder):
        path = os.path.join(folder, "cuda.json")
        effort = ["--quick", "--rounds", "1"] if self.dry else ["--rounds", "3"]
        text, code = self.run(BENCH_S, self.program("bench-cuda"), "--device", self.device, "--trace",
                         os.path.join(HERE, "steps.csv"), "--json", path, *effort)
        self.check("bench-cuda", code == 0, "exit code %d" % code)
        if code != 0:
            print(text)
            return
        with open(path, encoding="utf-8") as file:
            bench = json.load(file)
        self.result["bench"] = bench
        # What never repeats, like lstm, has no plan, and may find no room now and then.
        for name, calls in bench["backend_calls_per_iteration"].items():
            self.at_most("driver calls of an iteration, " + name, calls, 0, bench["planned_share"][name] > 0)
        self.at_most("reserved over live, planned", bench["reserved_over_live"]["planned"]["steps"], RESERVED)
        self.at_most("pair among holes, ns", bench["holes_ns"], HOLES_NS, not self.dry)
        self.bench_speed(bench)

    def bench_speed(self, bench):
        for kind in ("planned", "unplanned"):
            for size, ns in bench["pair_ns"][kind].items():
                ratio = bench.get("ratios", {}).get("pair_ns/%s/%s" % (kind, size), {}).get("cudaMallocAsync")
                if ratio is None:
                    self.check("%s pair of %s, ns" % (kind, size), self.dry, "%.4g" % ns, "no rival here")
                else:
                    self.at_most("%s pair of %s over cudaMallocAsync's" % (kind, size), 1 / ratio, OVER_ASYNC)
        for name, speedup in bench["graph_speedup"].items():
            self.check("graph against eager, " + name, speedup >= 1 or self.dry, "%.3g times" % speedup,
                       "not judged here" if self.dry else ">= 1")
        self.check("copies beside products", True, "%.3g times" % bench["copy_overlap"], "not judged")

    def train(self, folder, device):
        path = os.path.join(folder, "mlp-%s.json" % device)
        text, code = self.run(TRAIN_S, self.program("mlp"), "--synthetic", "--epochs", "1", "--device", device,
                              "--json", path)
        self.check("mlp --device " + device, code == 0, "exit code %d" % code)
        if code != 0:
            print(text)
            return []
        with open(path, encoding="utf-8") as file:
            trained = json.load(file)
        self.result["mlp_" + device] = {k: v for k, v in trained.items() if k != "losses"}
        return trained["losses"]

    def training(self, folder):
        here, there = self.train(folder, "cpu"), self.train(folder, self.device)
        if here and there:
            apart = max(abs(a - b) for a, b in zip(here, there)) if len(here) == len(there) else float("inf")
            self.at_most("losses of %d steps apart from the CPU's" % len(here), apart, LOSS_APART)
            self.check("it learns", there[-1] < there[0] / 2, "%.3g -> %.3g" % (there[0], there[-1]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    checks = Checks(os.path.abspath(options.programs), options.libraries, options.dry_run)
    with tempfile.TemporaryDirectory() as folder:
        checks.tests()
        checks.bench(folder)
        checks.training(folder)
    failed = [check["name"] for check in checks.result["checks"] if not check["passed"]]
    checks.result["passed"] = not failed
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(checks.result, file, indent=2)
        file.write("\n")
    print("%d checks passed, %d failed; %s" % (len(checks.result["checks"]) - len(failed), len(failed), options.json))
    sys.exit(1 if failed else 0)


main()
