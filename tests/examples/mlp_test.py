# SPDX-License-Identifier: Apache-2.0
# The trainer's command line from outside: what it prints, writes and refuses. Run by meson with the
# program's path. Prints one line a fact; exits with 1 when one does not hold.
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile

MLP = sys.argv[1]
EXECUTOR = ["--executor", os.environ.get("EBB_TEST_EXECUTOR", "tbb")]
failures = 0


def fact(name, holds, detail=""):
    global failures
    print("ok  " if holds else "FAIL", name, "" if holds else detail, flush=True)
    failures += not holds


def mlp(*args):
    return subprocess.run([MLP, *EXECUTOR, *map(str, args)], capture_output=True, text=True, timeout=100)


def idx(values, *sizes):
    return struct.pack(">I", 0x800 + len(sizes)) + struct.pack(">%dI" % len(sizes), *sizes) + bytes(values)


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def make_data(folder, count=64, labels=None):
    for stem in ("train", "t10k"):
        write(folder, stem + "-images-idx3-ubyte", idx([i % 251 for i in range(count * 784)], count, 28, 28))
        made = labels if labels is not None and stem == "train" else [i % 10 for i in range(count)]
        write(folder, stem + "-labels-idx1-ubyte.gz", gzip.compress(idx(made, len(made))))


def refused(name, words, *args, out=None):
    """One line on stderr with these words, code 2, nothing written."""
    result = mlp("--epochs", 1, *args)
    lines = result.stderr.splitlines()
    good = (result.returncode == 2 and len(lines) == 1 and lines[0].startswith("mlp: ")
            and all(word in lines[0] for word in words))
    left = os.listdir(out) if out else []
    fact("refuses " + name, good and not left, "code %d, stderr %r, stdout %r, left %r" %
         (result.returncode, result.stderr, result.stdout, left))


def results(folder, *args):
    path = os.path.join(folder, "out.json")
    result = mlp("--synthetic", "--epochs", 1, "--json", path, *args)
    if result.returncode != 0:
        fact("trains with " + " ".join(map(str, args)), False, result.stderr)
        return {"losses": [], "accuracy": 0}
    with open(path) as file:
        return json.load(file)


def test_results():
    with tempfile.TemporaryDirectory() as folder:
        first = results(folder, "--seed", 3, "--workers", 0)
        fact("the JSON file has what it should", set(first) >= {
            "accuracy", "losses", "samples_per_s", "steps", "peak_rss_bytes", "live_peak_bytes",
            "reserved_bytes", "device_live_peak_bytes", "device_reserved_bytes", "pinned_reserved_bytes",
            "stragglers", "options"}, str(first.keys()))
        fact("there is one loss a step", len(first["losses"]) == first["steps"] == 100, str(first["steps"]))
        fact("no straggler", first["stragglers"] == 0, str(first["stragglers"]))
        fact("it learns", first["accuracy"] > 0.9 and first["losses"][-1] < first["losses"][0] / 2,
             "accuracy %s, losses %s" % (first["accuracy"], first["losses"][-3:]))
        fact("the memory figures are plausible", 0 < first["live_peak_bytes"] <= first["reserved_bytes"]
             <= first["peak_rss_bytes"], str({k: v for k, v in first.items() if k.endswith("bytes")}))
        for workers in (1, 2, 4):
            again = results(folder, "--seed", 3, "--workers", workers)
            fact("same losses with %d workers" % workers, again["losses"] == first["losses"])
        for threads in (1, 2, 4):
            again = results(folder, "--seed", 3, "--threads", threads)
            fact("same losses with %d threads" % threads, again["losses"] == first["losses"])
        simulated = results(folder, "--seed", 3, "--device", "sim")
        fact("nearly the same losses on a simulated device",
             len(simulated["losses"]) == len(first["losses"]) and
             all(abs(a - b) < 1e-3 for a, b in zip(first["losses"], simulated["losses"])),
             str(simulated["losses"][-3:]))
        used = simulated.get("device_live_peak_bytes", 0)
        fact("memory of the device is counted", 1 << 20 < used <= simulated["device_reserved_bytes"] and
             first["device_reserved_bytes"] == 0, str({k: v for k, v in simulated.items() if k.endswith("bytes")}))
        other = results(folder, "--seed", 4)
        fact("other losses with another seed", other["losses"] != first["losses"])
        fact("no other file is left", os.listdir(folder) == ["out.json"], str(os.listdir(folder)))

        weights = os.path.join(folder, "w.safetensors")
        results(folder, "--export", weights)
        start = results(folder, "--import", weights, "--seed", 9)
        results(folder, "--export", weights, "--device", "sim")
        there = results(folder, "--import", weights, "--device", "sim", "--seed", 9)
        fact("weights go to a device and back", there["losses"] and start["losses"] and
             abs(there["losses"][0] - start["losses"][0]) < 1e-3, str(there["losses"][:2]))
        fact("imported weights are where training starts", start["losses"] and start["losses"][0] < 0.5,
             str(start["losses"][:2]))


def test_options():
    with tempfile.TemporaryDirectory() as out:
        json_out = ["--json", os.path.join(out, "out.json")]
        for name, words, args in (
                ("an unknown option", ["--sed", "--help"], ["--sed", 1]),
                ("a device that is none", ["--device", "known forms", "cuda:N, sim "], ["--device", "gpu"]),
                ("a simulated device that is not there", ["--device", "sim:1"], ["--device", "sim:1"]),
                ("a zero batch", ["--batch", "1 to 65536"], ["--batch", 0]),
                ("a negative batch", ["--batch"], ["--batch", -5]),
                ("a batch that is no number", ["--batch"], ["--batch", "many"]),
                ("more workers than sensible", ["--workers", "256"], ["--workers", 257]),
                ("no threads", ["--threads", "1 to 256"], ["--threads", 0]),
                ("absurd threads", ["--threads"], ["--threads", 100000]),
                ("a number too large for any type", ["--epochs"], ["--epochs", 10**30]),
                ("a fraction of an epoch", ["--epochs"], ["--epochs", "1.5"]),
                ("a learning rate of NaN", ["--lr"], ["--lr", "nan"]),
                ("a momentum of one", ["--momentum"], ["--momentum", 1]),
                ("an unknown executor", ["--executor"], ["--executor", "openmp"]),
                ("an option without its value", ["--seed"], ["--seed"]),
                ("weights that are not there", ["none.bin", "--export"], ["--import", "/none.bin"]),
                ("weights of another format", ["no safetensors file", "--export"], ["--import", __file__]),
        ):
            refused(name, words, "--synthetic", *json_out, *args, out=out)
        for path in ("/nonexistent/out.json", "/proc/out.json", out):
            refused("results at " + ("a folder" if path == out else path), [path, "--json"], "--synthetic",
                    "--json", path, out=out)
        refused("weights to a folder that is not there", ["/nonexistent/w", "--export"], "--synthetic",
                "--export", "/nonexistent/w")


def damaged(name, words, change):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        make_data(folder)
        change(folder)
        refused(name, words, "--data", folder, "--json", os.path.join(out, "o.json"), out=out)


def test_data():
    images, labels = "train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"

    def cut(folder):
        path = os.path.join(folder, images)
        os.truncate(path, os.path.getsize(path) - 1)

    with tempfile.TemporaryDirectory() as folder:
        make_data(folder)
        result = mlp("--epochs", 2, "--data", folder)
        fact("trains on plain and gzipped IDX files", result.returncode == 0, result.stderr)
        fact("prints the loss of each epoch", "epoch 1: loss" in result.stdout and
             "epoch 2: loss" in result.stdout, result.stdout)
        fact("prints no control characters into a pipe", "\r" not in result.stdout + result.stderr
             and "\x1b" not in result.stdout + result.stderr)
    refused("a folder that is not there", ["/nonexistent", "--synthetic"], "--data", "/nonexistent")
    damaged("a missing file", [labels[:-3], "--data"], lambda f: os.remove(os.path.join(f, labels)))
    damaged("a truncated file", [images], cut)
    damaged("a foreign file", [images], lambda f: write(f, images, b"\x89PNG\r\n" + bytes(100000)))
    damaged("an empty file", [images], lambda f: write(f, images, b""))
    damaged("labels in place of images", [images], lambda f: write(f, images, idx(range(64), 64)))
    damaged("more labels than images", ["65"], lambda f: make_data(f, labels=[1] * 65))
    damaged("a label that is no class", ["label 12"], lambda f: make_data(f, labels=[12] * 64))
    damaged("gzip that breaks off", [labels],
            lambda f: write(f, labels, gzip.compress(idx(range(64), 64))[:-9]))
    damaged("images of two sizes", ["differ in size"],
            lambda f: write(f, "t10k-images-idx3-ubyte", idx(bytes(64 * 100), 64, 10, 10)))


test_results()
test_options()
test_data()
help_text = mlp("--help")
fact("--help lists the options", help_text.returncode == 0 and "--synthetic" in help_text.stdout)
print("%d failed" % failures)
sys.exit(failures != 0)
