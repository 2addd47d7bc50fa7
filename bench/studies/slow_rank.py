"""slow_rank.py PROGRAM [--turns 5] [--milliseconds 4]: what ranks of one host gain from helping each other.

Two ranks denoise an image in strips of equal height. One of them is stopped and continued in turn, so that it has half of its time. With help and
without (TESSERA_HELP) in turns; prints the seconds of each run, the medians and their ratio. If the rank that is slowed had to do its half alone, a
job would take 2 units; with all work shared as it can be done, 1.33. Needs two free cores, numpy and mpirun.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from rank_launcher import ranks_of
from support import picture


def seconds_of(command, help_given, pause, record):
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TESSERA_SPEEDS": "equal", "TESSERA_GRID": "2x1",
           "TESSERA_HELP": str(help_given)}
    job = subprocess.Popen(["mpirun", "-n", "2", *map(str, command)], env=env, stdin=subprocess.DEVNULL)
    slowed = None
    while job.poll() is None and slowed is None:
        time.sleep(0.01)
        slowed = ranks_of(job.pid).get(1)
    try:
        while job.poll() is None:
            os.kill(slowed, signal.SIGSTOP)
            time.sleep(pause)
            os.kill(slowed, signal.SIGCONT)
            time.sleep(pause)
    except ProcessLookupError:
        pass
    if job.wait():
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return json.loads(record.read_text())["measured"]["seconds"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=4)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        np.save(at / "in.npy", picture(1000, 1024).astype(np.float32))
        command = [pathlib.Path(args.program).resolve(), "denoise", at / "in.npy", at / "out.npy", "--model", ROOT / "models/drunet-color-small.safetensors", "--sigma", "0.1",
                   "--threads", "1", "--device", "cpu", "--precision", "fp32", "--quiet", "--overwrite", "--json", at / "record.json"]
        found = {1: [], 0: []}
        for _ in range(args.turns):
            for help_given, seconds in found.items():
                seconds.append(seconds_of(command, help_given, args.milliseconds / 1000, at / "record.json"))
        middle = {key: statistics.median(seconds) for key, seconds in found.items()}
        for key, words in ((1, "with help"), (0, "without")):
            print(f"{words:9} {' '.join(f'{s:.2f}' for s in found[key])} s, median {middle[key]:.2f} s")
        print(f"ratio     {middle[1] / middle[0]:.2f}")


main()
