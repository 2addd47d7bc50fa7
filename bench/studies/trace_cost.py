"""trace_cost.py PROGRAM [OTHER] [--repeats N]: what --trace, --profile and --live cost.

Runs one denoising job without and with each option, in turns, and prints the median of processor seconds (user and system) and of
wall seconds, as ratios to the run without. OTHER is a program to compare the run without options with, such as a build of an older
version. --live is asked for its state ten times a second. Processor seconds can be compared on a machine that does other work.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np


def run(command, live):
    begun = time.monotonic()
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)/", process.stderr.readline())[1]) if live else 0
    while live:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/state.json", timeout=5).read()
        except OSError:
            pass
        time.sleep(0.1)
    if not live:
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        sys.exit(f"failed: {command}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--tile", default="128")
    parser.add_argument("--threads", default="1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        np.save(folder / "in.npy", np.random.default_rng(0).random((options.size, options.size, 3)).astype(np.float32))
        job = ["denoise", folder / "in.npy", folder / "out.npy", "--sigma", "0.1", "--quiet", "--device", "cpu", "--tile", options.tile,
               "--threads", options.threads]
        ways = {"without": [options.program, *job],
                "--trace": [options.program, *job, "--trace", folder / "t.json"],
                "--trace --profile": [options.program, *job, "--trace", folder / "t.json", "--profile"],
                "--live": [options.program, *job, "--live", "0"]}
        if options.other:
            ways["other program"] = [options.other, *job]
        times = {name: [] for name in ways}
        run(ways["without"], False)  # measures rates, if there are none
        for _ in range(options.repeats):
            for name, command in ways.items():
                times[name].append(run(command, name == "--live"))
        base = times["without"]
        for name, each in times.items():
            cpu, wall = (statistics.median(t[i] for t in each) for i in (0, 1))
            part = [statistics.median(t[i] / b[i] for t, b in zip(each, base)) for i in (0, 1)]
            least = min(t[0] for t in each) / min(b[0] for b in base)
            print(f"{name:18} cpu {cpu:7.3f} s, ratio {part[0]:.4f}, of the least {least:.4f}; wall {wall:7.3f} s, ratio {part[1]:.4f}")


main()
