# SPDX-License-Identifier: Apache-2.0
"""`ebb replay` from the outside: status, JSON, modes, deviations, and files that are no good. [DESIGN section 11]

replay_command_test.py EBB: the command to test. Real traces are in EBB_TEST_DATA; without it they are skipped.
"""
import gzip
import json
import os
import random
import subprocess
import sys
import unittest

from in_folder import InFolder

EBB = sys.argv.pop(1)
DATA = os.environ.get("EBB_TEST_DATA")
SEED = int(os.environ.get("EBB_TEST_SEED", str(random.randrange(1 << 32))), 0)
MODES = ("planned", "heap", "system")
START = "# a comment\na,0,1,100\ni,0,0\na,0,2,5000\n"


def replay(*arguments):
    return subprocess.run([EBB, "replay", *map(str, arguments)], capture_output=True, text=True, timeout=250)


def figures(*arguments):
    run = replay(*arguments, "--json")
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


def trace_of(iterations, sizes=(8000, 100000, 64, 30000, 100000), threads=False):
    """A loop whose first iteration keeps a block, as an optimizer does, and whose last is followed by the end."""
    lines, number = ["a,0,0,65536"], 0
    for n in range(iterations):
        lines.append(f"i,0,{n}")
        if n == 0:
            lines.append("a,0,1000000,65536")
        alive = []
        for size in sizes:
            number += 1
            alive.append(number)
            lines.append(f"a,0,{number},{size}")
            if threads:
                lines += [f"a,7,{number + 500000},5000", f"f,0,{number + 500000}"]
            if len(alive) > 2:
                lines.append(f"f,0,{alive.pop(0)}")
        lines += [f"f,0,{block}" for block in alive]
    return "\n".join(lines + [f"i,0,{iterations}", "f,0,0", "f,0,1000000"]) + "\n"


class ReplayCommand(InFolder):
    def test_lines_that_are_no_good_are_refused_by_number(self):
        for line, word in (("x,0,3,1", "unknown operation"), ("a", "1 fields"), ("a,0,3", "3 fields"),
                           ("a,0,3,1,1", "5 fields"), ("f,0", "2 fields"), ("f,0,2,1", "4 fields"), ("i,0", "2 fields"),
                           ("i", "1 fields"), ("a,0,3,-1", "bytes"), ("a,0,3,", "bytes"), ("a,0,3,1.5", "bytes"),
                           ("a,0,3,1099511627777", "2^40"), ("a,0,3,18446744073709551616", "bytes"), ("a,0,-3,1", "id"),
                           ("a,0,x,1", "id"), ("a,x,3,1", "thread"), ("a,0,2,1", "twice"), ("f,0,3", "not allocated"),
                           ("f,0,18446744073709551616", "id"), ("i,0,0", "iteration 0 comes after"),
                           ("i,0,x", "iteration"), ("i,1,1", "another thread"), ("  a,0,3,1", "unknown operation")):
            for mode in MODES:
                with self.subTest(line, mode=mode):
                    run = replay(self.file(START + line + "\na,0,9,1\n"), "--mode", mode)
                    self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
                    self.assertEqual(run.stdout, "")
                    self.assertIn("in.csv, line 5: ", run.stderr)
                    self.assertIn(word, run.stderr)

    def test_ids_are_not_used_again(self):
        for line, word in (("a,0,2,1", "twice"), ("f,0,2", "freed twice")):
            run = replay(self.file(START + "f,0,2\n" + line + "\n"))
            self.assertEqual(run.returncode, 2)
            self.assertIn("line 6: ", run.stderr)
            self.assertIn(word, run.stderr)

    def test_iterations_grow(self):
        self.assertEqual(replay(self.file("i,0,3\ni,0,7\ni,0,8\n")).returncode, 0)
        run = replay(self.file("i,0,3\ni,0,7\ni,0,6\n"))
        self.assertEqual(run.returncode, 2)
        self.assertIn("line 3: iteration 6 comes after iteration 7", run.stderr)

    def test_files_and_arguments_that_are_no_good_are_refused(self):
        whole = gzip.compress(trace_of(200).encode())
        self.assertEqual(replay(self.file(whole[:len(whole) // 2], "in.csv.gz")).returncode, 2)
        path = self.file(trace_of(4))
        for arguments in (("--mode", "other"), ("--deviate", -1), ("--deviate", 101), ("--deviate", "x"), ("--deviate", "nan"),
                          ("--seed", 1), ("--deviate", 1, "--seed", -1), ("--what",), (path,)):
            with self.subTest(arguments):
                self.assertEqual(replay(path, *arguments).returncode, 2)
        for bad in (self.folder / "absent.csv", self.folder):
            self.assertEqual(replay(bad).returncode, 2)
        self.assertEqual(replay().returncode, 2)
        self.assertEqual(replay("--help").returncode, 0)

    def test_what_could_not_be_written_is_a_failure(self):
        path = self.file(trace_of(4))
        for arguments in ((), ("--json",)):
            with self.subTest(arguments), open("/dev/full", "w") as full:
                run = subprocess.run([EBB, "replay", path, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(run.returncode, 2)
                self.assertIn("could not be written", run.stderr)

    def test_a_trace_in_all_modes(self):
        path = self.file(gzip.compress(trace_of(12).encode()), "in.csv.gz")
        for mode in MODES:
            with self.subTest(mode):
                result = figures(path, "--mode", mode, "--touch")
                # 2 x 65536 live through it, and at most 3 of an iteration's do together.
                self.assertEqual(result["live_peak"], 2 * 65536 + 100032 + 64 + 30016)
                self.assertGreater(result["reserved"], 0)
                self.assertEqual(result["pairs"], 2 + 12 * 5)
                self.assertEqual(len(result["iterations"]), 12)
                self.assertEqual(result["gap"], 0)
                self.assertGreater(result["ns_per_pair"], 0)
                self.assertIsNone(result["reserved_over_plan"])

    def test_plans_are_followed(self):
        result = figures(self.file(trace_of(12)), "--touch")
        self.assertEqual((result["replans"], result["plans"], result["displaced"], result["deviated"]), (1, 1, 0, 0))
        self.assertEqual(result["followed"], 12 - result["followed_from"])
        self.assertLessEqual(result["followed_from"], 4)
        self.assertEqual(result["planned_bytes"], result["iterations"][5]["height"])
        self.assertEqual(result["faults"], 0)
        self.assertEqual([it["displaced"] for it in result["played"]], [0] * 12)
        for mode in ("heap", "system"):
            result = figures(self.file(trace_of(12)), "--mode", mode)
            self.assertEqual([result[k] for k in ("planned_bytes", "displaced", "replans", "followed")], [0] * 4)

    def test_each_iteration_is_packed_on_its_own(self):
        result = figures(self.file("a,0,0,4096\ni,0,0\na,0,1,100\na,0,2,200\nf,0,1\na,0,3,64\ni,0,1\nf,0,2\na,0,4,1\n"
                                   "i,0,2\na,0,5,9999\n"))
        # 100 and 200 bytes take 128 and 256; what lives on ends with its iteration.
        self.assertEqual(result["iterations"], [{"max_live": 384, "height": 384}, {"max_live": 64, "height": 64}])

    def test_nothing_is_a_trace(self):
        for content in ("", "# nothing\n", "i,0,5\n", "a,0,1,0\n", "a,0,1,10\na,1,2,10\nf,1,1\n"):
            for mode in MODES:
                result = figures(self.file(content), "--mode", mode, "--touch", "--deviate", 50)
                self.assertEqual((result["iterations"], result["faults"], result["displaced"]), ([], 0, 0))

    def test_other_threads_do_not_disturb_the_plan(self):
        result = figures(self.file(trace_of(12, threads=True)), "--touch")
        self.assertEqual((result["displaced"], result["replans"]), (0, 1))
        self.assertGreaterEqual(result["followed"], 8)

    def test_deviations_depend_on_the_seed(self):
        path = self.file(trace_of(20, [1000 * (i * 7919 % 97 + 1) for i in range(100)]))
        keys = ("pairs", "live_peak", "displaced", "replans", "followed", "deviated", "reserved_over_plan", "deviating")
        runs = [figures(path, "--touch", "--deviate", 10, "--seed", seed) for seed in (SEED, SEED, SEED + 1)]
        several = [[run[k] for k in keys] for run in runs]
        self.assertEqual(several[0], several[1])
        self.assertNotEqual(several[0], several[2])
        self.assertEqual(runs[0]["deviating"], 18)
        self.assertGreater(runs[0]["displaced"], 0)
        self.assertGreaterEqual(runs[0]["reserved_over_plan"], 1)
        none = figures(path, "--deviate", 0)
        self.assertEqual((none["displaced"], none["deviated"], none["deviating"]), (0, 0, 18))
        self.assertEqual(len(none["iterations"]), 20)

    def test_all_that_deviates_is_still_nobody_elses(self):
        path = self.file(trace_of(12, [1000 * (i * 7919 % 97 + 1) for i in range(100)], threads=True))
        for mode in MODES:
            for percent in (1, 30, 100):
                with self.subTest(mode=mode, percent=percent):
                    run = replay(path, "--mode", mode, "--touch", "--deviate", percent, "--seed", SEED)
                    self.assertEqual(run.returncode, 0, run.stderr)

    def test_text_has_the_figures(self):
        run = replay(self.file(trace_of(12)), "--deviate", 5, "--seed", SEED)
        self.assertEqual(run.returncode, 0, run.stderr)
        words = [line.split("  ")[0] for line in run.stdout.splitlines()]
        for word in ("mode", "live peak", "reserved", "displaced", "followed", "over plan", "faults", "per pair", "gap"):
            self.assertIn(word, words)


@unittest.skipUnless(DATA, "no EBB_TEST_DATA")
class RealTraces(unittest.TestCase):
    def replay(self, name, *arguments):
        return figures(os.path.join(DATA, "traces", name + ".csv.gz"), "--touch", *arguments)

    def check(self, name, gap):
        result = self.replay(name)
        self.assertLessEqual(result["gap"], gap)
        self.assertGreater(result["replans"], 0)
        return result

    def test_fixed_shapes_are_followed(self):
        for name in ("mlp", "gpt"):
            with self.subTest(name):
                result = self.check(name, 0)
                self.assertEqual((result["displaced"], result["faults"], result["replans"]), (0, 0, 1))
                self.assertLessEqual(result["reserved"], 1.02 * result["live_peak"])

    def test_several_kinds_of_iterations_are_followed(self):
        result = self.check("resnet", 0)
        self.assertEqual(result["plans"], 3)
        self.assertLessEqual(result["reserved"], 1.02 * result["live_peak"])
        # The last kind is planned after iteration 19; then nothing is displaced any more.
        self.assertEqual([it["displaced"] for it in result["played"][20:]], [0] * 10)
        self.assertTrue(all(it["followed"] for it in result["played"][20:]))
        self.assertEqual(result["faults"], 0)

    def test_random_lengths_are_packed(self):
        self.check("lstm", 0.02)

    def test_deviations_overlap_nothing(self):
        for name in ("mlp", "resnet"):
            for percent in (1, 20):
                with self.subTest(name, percent=percent, seed=SEED):
                    self.assertGreaterEqual(self.replay(name, "--deviate", percent, "--seed", SEED)["reserved_over_plan"], 1)


if __name__ == "__main__":
    print("seed", SEED, file=sys.stderr)
    unittest.main()
