"""rank_help.py PROGRAM DIST_TOOL MODULE: ranks of one host help each other, under a real mpirun. One rank is slowed by stopping it again and again; the others
compute parts for it, and the result is that of one rank, byte for byte. A rank that dies or stays stopped meanwhile ends the job. Skips without mpirun or without
the MPI module."""
import json
import os
import pathlib
import signal
import threading
import time

import numpy as np

from rank_launcher import open_bench, ranks_of, said
from support import drunet, picture, to_integers, write_safetensors


def slow(pid, over):
    """Lets it run for a third of the time."""
    try:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.02)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.01)
    except ProcessLookupError:
        pass


def started(launcher, process, ranks):
    """The processes, once all are there."""
    deadline, pids = time.monotonic() + 30, {}
    while len(pids) < ranks and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
        pids = ranks_of(process.pid)
    return pids


def helped(trace):
    spans = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X" and e["name"].startswith("help number")]
    return len(spans)


def names():
    return set(pathlib.Path("/dev/shm").glob("tessera*"))


def main():
    bench, launcher, program, _ = open_bench()
    before = names()
    np.save(bench.path("in.npy"), to_integers(picture(700, 300), np.uint8))
    model = write_safetensors(bench.path("drunet.safetensors"), drunet(widths=(32, 32, 64, 128)))
    output, trace = bench.path("out.npy"), bench.path("trace.json")
    words = ("denoise", bench.path("in.npy"), output, "--model", model, "--sigma", "0.1", "--threads", "1", "--device", "cpu", "--precision", "fp32", "--quiet", "--overwrite")
    alone = bench.run(*words)
    bench.check(alone.status == 0, f"one rank: {alone}")
    result = output.read_bytes()

    def start(ranks, grid, **env):
        output.unlink(missing_ok=True)
        return launcher.start(ranks, program, *words, "--trace", trace, env={"TESSERA_GRID": grid, "TESSERA_SPEEDS": "equal", "TESSERA_HELP": "1", **env})

    def shared(ranks, grid, **env):
        process, over = start(ranks, grid, **env), threading.Event()
        pids = started(launcher, process, ranks)
        thread = threading.Thread(target=slow, args=(pids[ranks - 1], over)) if len(pids) == ranks else None
        if thread:
            thread.start()
        status, _, err = launcher.end(process, 200)
        over.set()
        if thread:
            thread.join()
        bench.check(status == 0 and not said(err), f"{ranks} ranks, {grid}, {env}: {status} {err[:500]}")
        bench.check(status == 0 and output.read_bytes() == result, f"{ranks} ranks, {grid}, {env}: the same bytes")
        return helped(trace) if status == 0 else -1

    for ranks, grid in ((2, "2x1"), (3, "3x1"), (4, "4x1"), (4, "2x2")):
        found = 0
        for _ in range(5):  # a short job may be over before it is slowed
            found = found or shared(ranks, grid)
        print(f"{ranks} ranks, {grid}: {found} parts")
        bench.check(found > 0 or not os.access("/proc/self/fd", os.R_OK), f"{ranks} ranks, {grid}: {found} parts were computed for others")
    bench.check(shared(3, "3x1", TESSERA_HELP="0") == 0, "TESSERA_HELP=0: no help")
    for sent in (signal.SIGKILL, signal.SIGSTOP):
        process = start(3, "3x1")
        pids = started(launcher, process, 3)
        time.sleep(0.6)
        begin = time.monotonic()
        if process.poll() is None and 1 in pids:
            os.kill(pids[1], sent)
        status, _, err = launcher.end(process, 60)
        bench.check(status not in (0, None) and "rank 1" in err and time.monotonic() - begin < 30, f"{sent.name}: {status} {err[:500]}")
        bench.check(not output.exists(), f"{sent.name}: no output")
    time.sleep(1)
    bench.check(not names() - before, "no name is left in /dev/shm")
    bench.finish()


main()
