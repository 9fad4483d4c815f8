# SPDX-License-Identifier: Apache-2.0
"""`ebb plan` from the outside: status, JSON, --out, and files that are no good. [DESIGN section 11]

plan_command_test.py EBB: the command to test. Real instances are in EBB_TEST_DATA; without it they are skipped.
Plans are judged here once more, by what they wrote.
"""
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

from in_folder import InFolder

EBB = sys.argv.pop(1)
DATA = os.environ.get("EBB_TEST_DATA")
HEADER = "id,lower,upper,size\n"
THREE = HEADER + "a,0,4,10\nb,2,6,20\nc,4,8,16\n"


def ebb(*arguments):
    return subprocess.run([EBB, "plan", *map(str, arguments)], capture_output=True, text=True, timeout=100)


def height_of(path):
    """The height of a written plan; raises where two buffers share an address while both live."""
    with open(path, encoding="utf-8") as file:
        rows = [(int(r["lower"]), int(r["upper"]), int(r["offset"]), int(r["offset"]) + int(r["size"]), r["id"])
                for r in csv.DictReader(file)]
    rows.sort()
    alive = []
    for row in rows:
        alive = [other for other in alive if other[1] > row[0]]
        for other in alive:
            if row[2] < other[3] and other[2] < row[3]:
                raise AssertionError(f"{row[4]} and {other[4]} overlap")
        alive.append(row)
    return max((row[3] for row in rows), default=0)


class PlanCommand(InFolder):
    def refused(self, content, *words, name="in.csv", arguments=()):
        run = ebb(self.file(content, name), *arguments)
        self.assertEqual(run.returncode, 2, run.stdout + run.stderr)
        self.assertEqual(run.stdout, "")
        for word in words:
            self.assertIn(word, run.stderr)

    def test_json_has_the_figures(self):
        run = ebb(self.file(THREE), "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        result = json.loads(run.stdout)
        self.assertEqual([result[k] for k in ("buffers", "max_live", "height", "gap", "exact")], [3, 36, 36, 0, True])
        self.assertGreaterEqual(result["seconds"], 0)

    def test_out_is_the_file_with_offsets(self):
        out = self.folder / "out.csv"
        run = ebb(self.file(THREE), "--align", 16, "--out", out)
        self.assertEqual(run.returncode, 0, run.stderr)
        lines = out.read_text().splitlines()
        self.assertEqual(lines[0], "id,lower,upper,size,offset")
        self.assertEqual([line.rsplit(",", 1)[0] for line in lines[1:]], THREE.splitlines()[1:])
        self.assertTrue(all(int(line.rsplit(",", 1)[1]) % 16 == 0 for line in lines[1:]))
        self.assertLessEqual(height_of(out), 48)
        again = ebb(out, "--json")  # what was written can be read
        self.assertEqual(json.loads(again.stdout)["height"], 36)

    def test_alignment_rounds_both_sides(self):
        result = json.loads(ebb(self.file(HEADER + "a,0,1,1\nb,0,1,65\n"), "--align", 64, "--json").stdout)
        self.assertEqual((result["max_live"], result["height"], result["gap"]), (192, 192, 0))

    def test_capacity_decides_the_status(self):
        path = self.file(THREE)
        self.assertEqual(ebb(path, "--capacity", 36).returncode, 0)
        run = ebb(path, "--capacity", 35)
        self.assertEqual(run.returncode, 1)
        self.assertIn("1 bytes too many; no plan fits", run.stdout)
        self.assertIn("moment 4", run.stdout)
        self.assertIn("b, 20 bytes", run.stdout)
        result = json.loads(ebb(path, "--capacity", 35, "--json").stdout)
        self.assertEqual(result["shortfall"], {"moment": 4, "live": 36, "excess": 1, "proven": True, "ids": ["b", "c"]})
        self.assertFalse(result["fits"])

    def test_nothing_is_a_plan(self):
        result = json.loads(ebb(self.file(HEADER), "--json", "--capacity", 0).stdout)
        self.assertEqual((result["buffers"], result["height"], result["gap"], result["exact"]), (0, 0, 0, True))

    def test_other_forms_of_the_same(self):
        for content in (THREE.replace("\n", "\r\n"), THREE.rstrip("\n"), THREE + "\n\n", gzip.compress(THREE.encode()),
                        "size,x,upper,id,lower\n10,?,4,a,0\n20,?,6,b,2\n16,,8,c,4\n"):
            run = ebb(self.file(content), "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(json.loads(run.stdout)["height"], 36)

    def test_ids_are_strings(self):
        run = ebb(self.file("id,lower,upper,size\n01,0,1,1\n1,0,1,1\n\xff x,0,1,1\n".encode("latin-1")), "--json",
                  "--capacity", 2)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(json.loads(run.stdout)["shortfall"]["ids"], ["01", "1", "\ufffd x"])

    def test_lines_that_are_no_good_are_refused_by_number(self):
        for line, word in (("d,1,2", "3 fields"), ("d,1,2,3,4", "5 fields"), ("d,-1,2,3", "lower"),
                           ("d,1,2,-3", "size"), ("d,1,2,0", "size is 0"), ("d,1,2,", "size"), ("d,1,2,3.5", "size"),
                           ("d,1,2,0x3", "size"), ("d,1, 2,3", "upper"), ("d,1,2,+3", "size"), ("d,2,1,3", "upper"),
                           ("d,2,2,3", "upper"), (",1,2,3", "id"), ("a,9,10,3", "comes twice"),
                           ("d,1,18446744073709551616,3", "upper"), ("d,1,2,18446744073709551615", "add up"),
                           ("d,1,2,3\0", "size"), ("x" * 70000 + ",1,2,3", "64 KiB"), ("garbage", "1 fields")):
            with self.subTest(line[:40]):
                self.refused(THREE + line + "\ne,1,2,3\n", "in.csv, line 5: ", word)

    def test_files_that_are_no_good_are_refused(self):
        self.refused("", "line 1", "empty")
        self.refused("a,0,4,10\n", "line 1", "no column id")
        self.refused("id,lower,upper,size,size\n", "line 1", "two columns size")
        whole = gzip.compress((HEADER + "".join(f"{i},{i},{i + 9},{i * i + 1}\n" for i in range(5000))).encode())
        self.refused(whole[:len(whole) // 2], "cannot be read", name="in.csv.gz")
        broken = bytearray(whole)
        broken[len(whole) // 2] ^= 0x55
        self.refused(bytes(broken), name="in.csv.gz")
        for path in (self.folder / "absent.csv", self.folder):
            self.assertEqual(ebb(path).returncode, 2)

    def test_arguments_that_are_no_good_are_refused(self):
        path = self.file(THREE)
        for arguments in (("--align", 3), ("--align", 0), ("--capacity", -1), ("--capacity", "x"), ("--capacity", 1 << 64), ("--nodes", -1),
                          ("--seconds", -1), ("--seconds", "nan"), ("--seconds", "inf"), ("--what",), (path,),
                          ("--out", self.folder / "no" / "out")):
            with self.subTest(arguments):
                self.assertEqual(ebb(path, *arguments).returncode, 2)
        self.assertEqual(ebb().returncode, 2)
        self.assertEqual(ebb("--help").returncode, 0)

    def test_a_budget_repeats_and_a_deadline_ends(self):
        rows = "".join(f"{i},{i * 7919 % 997},{i * 7919 % 997 + 1 + i * 31 % 211},{1 + i * 104729 % 4093}\n"
                       for i in range(300))
        path = self.file(HEADER + rows)
        outs = [self.folder / "1", self.folder / "2"]
        for out in outs:
            self.assertEqual(ebb(path, "--nodes", 3000, "--out", out).returncode, 0)
        self.assertEqual(outs[0].read_text(), outs[1].read_text())
        result = json.loads(ebb(path, "--seconds", 0.2, "--json").stdout)
        self.assertTrue(result["exact"] or result["cut_short"])
        self.assertLess(result["height"], 1.2 * result["max_live"])


@unittest.skipUnless(DATA, "no EBB_TEST_DATA")
class RealPrograms(unittest.TestCase):
    def plan(self, name, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.csv")
            run = ebb(os.path.join(DATA, name), "--json", "--out", out, *arguments)
            result = json.loads(run.stdout)
            self.assertEqual(height_of(out), result["height"])
            return run.returncode, result

    def test_minimalloc(self):
        for name in "ABCDE":
            with self.subTest(name):
                status, result = self.plan(f"minimalloc/{name}.1048576.csv", "--capacity", 1048576)
                self.assertEqual(status, 0)
                self.assertLessEqual(result["height"], 1048576)

    def test_resnet50_needs_what_is_alive(self):
        _, result = self.plan("training-traces/resnet50.csv")
        self.assertEqual(result["height"], result["max_live"])
        self.assertTrue(result["exact"])

    def test_pangu_is_within_two_percent(self):
        _, result = self.plan("training-traces/pangu_2.6B.csv.gz")
        self.assertLessEqual(result["gap"], 0.02)


if __name__ == "__main__":
    unittest.main()
