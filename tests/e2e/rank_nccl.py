"""rank_nccl.py PROGRAM DIST_TOOL MODULE FOLDER: one image that several ranks share on devices with separate memory, whose exchanges go by NCCL, under a real mpirun. Skips without
mpirun or without the MPI module.

The CPU is used as a card (TESSERA_QUEUE=1), and FOLDER has a library in place of NCCL (tests/dist/nccl_stand_in.c), so that all but the library and the card is what runs on cards. The result
is that of one rank, byte for byte. NCCL that is missing, or fails, is reported, and rows pass through pinned memory, unless NCCL is required.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np

from rank_job import Job, make_inputs
from rank_launcher import open_bench, ranks_of, said
from support import leftovers, picture, to_integers

FOLDER = pathlib.Path(sys.argv[4]).resolve()
LIBRARY, WITHOUT_SUM = FOLDER / "libnccl.so.2", FOLDER / "nccl_without_sum.so"
NAME = "NCCL 2.99.1"
WORDS = ("--precision", "fp32")


def check_exchanges(bench, record, expected, what):
    found = (record or {}).get("plan", {}).get("exchanges")
    bench.check(found is not None and found.startswith(expected), f"{what}: exchanges by {found}, expected {expected}")


def check_grids(bench, launcher, job):
    """Networks in strips and in blocks; the record says NCCL, whose memory has its own entry."""
    np.save(bench.path("uneven.npy"), to_integers(picture(139, 203), np.uint8))
    launcher.env["TESSERA_NCCL"] = str(LIBRARY)
    for model, grids in (("drunet", ((2, 1), (3, 1), (4, 1), (1, 2), (2, 2))), ("unet", ((2, 1), (2, 2))), ("dncnn", ((3, 1), (1, 3)))):
        one = job("uneven.npy", "out.npy", "--model", bench.path(f"{model}.safetensors"))
        for grid in grids:
            record = one.check(grid[0] * grid[1], "blocks" if grid[1] > 1 else "strips", grid)
            check_exchanges(bench, record, NAME, f"{model}, {grid}")
            bench.check(record and record["measured"].get("nccl_bytes") == 0, f"{model}, {grid}: {record and record['measured']}")
    gray = ("--model", bench.path("gray.safetensors"))
    check_exchanges(bench, job("volume.npy", "out.npy", *gray, "--axes", "DHW").check(3, "strips", (3, 1)), NAME, "a volume")
    record = job("u8.npy", "out.npy", "--model", bench.path("drunet.safetensors"), "--tile", "40").check(3, "rows_of_tiles")
    bench.check(record and "exchanges" not in record["plan"], f"tiles exchange nothing: {record and record['plan']}")


def check_memory(bench, run):
    """No pinned memory is planned for what NCCL exchanges; `plan` says the same as the run."""
    plans = {}
    for name, setting in (("nccl", str(LIBRARY)), ("pinned", "0")):
        done, planned = (json.loads(run(verb, setting)[1]) for verb in (("denoise",), ("plan", "denoise")))
        plans[name] = planned["plan"]
        bench.check(done["plan"]["host_bytes"] == planned["plan"]["host_bytes"] == done["measured"]["host_bytes"], f"{name}: {done['plan']} {planned['plan']}")
        bench.check(done["plan"]["exchanges"] == planned["plan"]["exchanges"], f"{name}: {done['plan']} {planned['plan']}")
        bench.check(done["plan"]["peak_bytes"] == planned["plan"]["peak_bytes"] == done["measured"]["peak_bytes"], f"{name}: {done['plan']} {done['measured']}")
    bench.check(plans["nccl"]["host_bytes"] < plans["pinned"]["host_bytes"], f"pinned bytes: {plans}")
    bench.check(plans["pinned"]["exchanges"] == "pinned memory: TESSERA_NCCL=0", f"{plans['pinned']}")


def check_fallbacks(bench, run, result):
    """What keeps NCCL from being used is in the record, and the result is the same; if NCCL is required it is an error of one line."""
    missing = str(bench.path("none/libnccl.so.2"))
    for setting, env, expected in ((missing, {}, f"pinned memory: {missing}: cannot open"), (str(WITHOUT_SUM), {}, f"pinned memory: {WITHOUT_SUM} has no ncclAllReduce"[:120]),
                                         (str(LIBRARY), {"NCCL_STAND_IN": "init"}, "pinned memory: ncclCommInitRank failed: stand-in: system error"), ("", {}, "pinned memory: the device is no card")):
        status, out, err = run(("denoise",), setting, env)
        if bench.check(status == 0 and not said(err), f"{setting} {env}: {status} {err[:500]}"):
            check_exchanges(bench, json.loads(out), expected, f"{setting} {env}")
            bench.check(bench.path("shared.npy").read_bytes() == result, f"{setting} {env}: the same bytes")
    for env, expected in (({"LD_LIBRARY_PATH": str(bench.path("none"))}, "libnccl.so.2: cannot open"), ({"LD_LIBRARY_PATH": str(FOLDER), "NCCL_STAND_IN": "init"}, "ncclCommInitRank failed")):
        status, out, err = run(("denoise",), "1", env)
        real = "NCCL_STAND_IN" not in env and subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libnccl.so.2')"], env={**os.environ, **env}, capture_output=True).returncode == 0
        if not real:  # else this computer has one
            bench.check(status not in (0, None) and len(said(err)) == 1 and "TESSERA_NCCL=1: " in err and expected in err, f"required, {env}: {status} {err[:500]}")
            bench.check(not bench.path("shared.npy").exists() and not leftovers(bench.folder), f"required, {env}: nothing is written")
    status, out, err = run(("denoise",), "1", {"LD_LIBRARY_PATH": str(FOLDER)})
    bench.check(status == 0 and bench.path("shared.npy").read_bytes() == result, f"required and there: {status} {err[:500]}")


def check_failures(bench, launcher, run, start):
    """A rank whose messages fail, is killed or is stopped does not leave the others waiting."""
    status, _, err = run(("denoise",), str(LIBRARY), {"NCCL_STAND_IN": "send"})
    bench.check(status not in (0, None) and "rank 1: ncclGroupEnd failed: stand-in: system error" in err and not bench.path("shared.npy").exists(), f"a failing group: {status} {err[:500]}")
    bench.check(not leftovers(bench.folder), "a failing group: no temporary files")
    status, _, err = run(("denoise",), str(LIBRARY), {"NCCL_STAND_IN": "alone", "TESSERA_RANK_SECONDS": "1"})
    bench.check(status not in (0, None) and "NCCL has not connected the cards of the ranks within 8 seconds" in err and not leftovers(bench.folder), f"a rank that does not join: {status} {err[:500]}")
    for sent, env in ((signal.SIGKILL, {"NCCL_STAND_IN": "hang"}), (signal.SIGINT, {})):
        process = start(("denoise",), str(LIBRARY), env, bench.path("long.npy"))
        deadline, pids = time.monotonic() + 30, {}
        while (len(pids) < 3 or not leftovers(bench.folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(0.3)
        bench.check(len(pids) == 3 and process.poll() is None, f"{sent}: the job runs")
        if process.poll() is None:
            os.kill(pids[1], sent)
        status, _, err = launcher.end(process, 150)
        bench.check(status not in (0, None) and not bench.path("shared.npy").exists(), f"{sent}: {status} {err[:500]}")
        bench.check(sent == signal.SIGKILL or ("stopped" in err and not leftovers(bench.folder)), f"{sent}: {status} {err[:500]}")


def main():
    bench, launcher, program, _ = open_bench()
    begin = time.monotonic()
    make_inputs(bench)
    os.environ["TESSERA_QUEUE"] = "1"

    def job(*words):
        return Job(bench, launcher, program, *words, *WORDS)

    def start(verb, setting, env, source):
        bench.path("shared.npy").unlink(missing_ok=True)
        return launcher.start(3, program, *verb, source, bench.path("shared.npy"), "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--threads", "1", *WORDS,
                              "--json", "-", "--quiet", env={"TESSERA_GRID": "3x1", "TESSERA_NCCL": setting, **(env or {})})

    def run(verb, setting, env=None):
        return launcher.end(start(verb, setting, env, bench.path("u8.npy")))

    np.save(bench.path("long.npy"), to_integers(picture(2100, 800), np.uint8))
    alone = job("u8.npy", "out.npy", "--model", bench.path("drunet.safetensors"), "--sigma", "0.1")
    check_grids(bench, launcher, job)
    check_memory(bench, run)
    check_fallbacks(bench, run, alone.result)
    check_failures(bench, launcher, run, start)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
