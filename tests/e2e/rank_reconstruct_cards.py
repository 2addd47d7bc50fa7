"""rank_reconstruct_cards.py PROGRAM DIST_TOOL MODULE FOLDER problems|ways [DEVICE]: one reconstruction that several ranks share, whose network runs on a device with separate memory and
whose data step on the CPU, under a real mpirun. Skips without mpirun or without the MPI module, and without the DEVICE unless TESSERA_REQUIRE_GPU is set.

Without a DEVICE the CPU is used as a card (TESSERA_QUEUE=1): each rank's part passes through a stage, and rows of neighbours through pinned memory, as they do there; FOLDER has a library in
place of NCCL. The result is that of one rank on the CPU. The kernels of a real card sum in another order.
"""
import json
import os
import pathlib
import signal
import sys
import time

import numpy as np

from rank_launcher import open_bench, ranks_of, said
from rank_reconstruct_job import Job, models
from support import leftovers, picture

LIBRARY = pathlib.Path(sys.argv[4]).resolve() / "libnccl.so.2"
DEVICE = sys.argv[6] if len(sys.argv) > 6 else "cpu"
REAL = DEVICE != "cpu"
CLOSE = 1e-3 if REAL else 1e-5  # |one - many| / |one|
WORDS = ("--device", DEVICE, "--precision", "fp32")
RESERVE = 1 << 20  # that a limit keeps beside the plan


def check_bytes(bench, record, ranks, what):
    """On the device and, besides, on the host: what was planned is counted, on every rank."""
    plan, measured, parts = record["plan"], record["measured"], record["reconstruct"]["parts"]
    bench.check(plan["peak_bytes"] == measured["peak_bytes"], f"{what}, {ranks} ranks: planned {plan['peak_bytes']}, counted {measured['peak_bytes']}")
    bench.check(plan["host_bytes"] == measured["host_bytes"] == max(p["planned_host_bytes"] for p in parts), f"{what}, {ranks} ranks: on the host {plan['host_bytes']} {measured['host_bytes']} {parts}")
    bench.check(all(p["planned_host_bytes"] == p["measured_host_bytes"] > 0 for p in parts), f"{what}, {ranks} ranks: on the host of each rank: {parts}")
    bench.check(plan["data_device"] != "" and "on cards" in record["reconstruct"]["parts_reason"], f"{what}, {ranks} ranks: what computes where: {plan}")


def check_problem(bench, launcher, program, exchanges, counts, *words):
    """As many ranks as `counts` say, against one on the CPU. One rank on the card computes everything there: for a real one see reconstruct_gpu.py."""
    one = Job(bench, launcher, program, *words, "--iterations", "2", close=CLOSE, shared=WORDS)
    for ranks in (count for count in counts if count > 1 or not REAL):
        record = one.check(ranks)
        if record and ranks > 1:
            check_bytes(bench, record, ranks, one.name)
            found = record["plan"].get("exchanges", "")
            bench.check(found.startswith("pinned memory: ") if exchanges else not found, f"{one.name}, {ranks} ranks: exchanges by {found}")
        elif record:
            bench.check("data_device" not in record["plan"] and "parts" not in record["reconstruct"], f"{one.name}: one rank: {record['plan']}")


def problems(bench, launcher, program):
    """Colours and gray images, blurs by the spectrum and by halos, scans by views; volumes slice by slice, and with a 3-D network, whose slabs exchange slices."""
    big, small = models(bench)
    draw = np.random.default_rng(5)
    np.save(bench.path("kernel.npy"), draw.random((7, 9)))
    np.save(bench.path("colours.npy"), (picture(101, 50) + draw.normal(0, 0.01, (101, 50, 3))).astype(np.float32))
    np.save(bench.path("gray.npy"), (picture(101, 50, 1) + draw.normal(0, 0.01, (101, 50))).astype(np.float32))
    for name in ("colours", "gray"):
        bench.path(f"{name}.json").write_text(json.dumps({"operator": "blur", "kernel": "kernel.npy", "measurement": f"{name}.npy", "range": [0, 1], "noise": 0.02}))
    check_problem(bench, launcher, program, True, (1, 2, 3), "deblur", "--size", "124x50", "--operators", "3", "--model", "drunet-color-small")
    check_problem(bench, launcher, program, True, (2, 3), "deblur", "--size", "124x50", "--operators", "2", *big)  # colours one by one
    for name in ("colours", "gray"):
        check_problem(bench, launcher, program, True, (1, 2, 3) if name == "gray" else (3,), bench.path(f"{name}.json"), "--max-seconds", "1000")
    check_problem(bench, launcher, program, True, (1, 2, 3), "tomo2d", "--size", "97", "--angles", "13")
    check_problem(bench, launcher, program, True, (2, 7), "tomo2d", "--size", "86", "--angles", "13", "--tolerance", "1e-9", *small)
    check_problem(bench, launcher, program, False, (1, 2, 3), "tomo3d", "--size", "16", "--angles", "11")
    check_problem(bench, launcher, program, True, (1, 2, 3), "tomo3d", "--size", "28", "--angles", "11", "--prior", "volume")


def check_limit(bench, run):
    """`--memory` is the device's: `plan` names what is enough, which is less than device and host need together; a little less is refused with one line."""
    status, out, err = run("plan", "reconstruct")
    if not bench.check(status == 0 and not said(err), f"plan: {status} {err[:300]}"):
        return
    plan = json.loads(out)["plan"]
    needed = plan["peak_bytes"]["total"] + RESERVE
    status, out, err = run("reconstruct", "--memory", f"{-(-needed // 1024)}K")
    if bench.check(status == 0 and not said(err), f"what the plan says is enough: {status} {err[:300]}"):
        record = json.loads(out)
        bench.check(record["plan"]["peak_bytes"] == plan["peak_bytes"] and record["plan"]["host_bytes"] == plan["host_bytes"], f"plan {plan} and run {record['plan']}")
    bench.path("shared.npy").unlink(missing_ok=True)
    status, out, err = run("reconstruct", "--memory", f"{(needed - 4096) // 1024}K")
    bench.check(status not in (0, None) and len(said(err)) == 1 and "too little" in err and not bench.path("shared.npy").exists(), f"less: {status} {err[:300]}")


def check_host_limit(bench, launcher, program):
    """What stays on the host must fit there, beside the parts of the host's other ranks."""
    words = (program, "plan", "reconstruct", bench.path("x.npy"), "--problem", "deblur", "--size", "4096", "--memory", "100G", "--threads", "1", "--quiet", *WORDS)
    status, _, err = launcher.run(3, "sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh", *words)
    bench.check(status not in (0, None) and len(said(err)) == 1 and "of the host's memory, of which a rank has" in err, f"too little on the host: {status} {err[:500]}")


def check_nccl(bench, run, result):
    """By NCCL there is no pinned memory; a card whose messages fail ends the job with one line."""
    pinned = json.loads(run("plan", "reconstruct")[1])["plan"]
    for verb in (("reconstruct",), ("plan", "reconstruct")):
        status, out, err = run(*verb, env={"TESSERA_NCCL": str(LIBRARY)})
        if bench.check(status == 0 and not said(err), f"{verb} by NCCL: {status} {err[:500]}"):
            record = json.loads(out)
            bench.check(record["plan"]["exchanges"] == "NCCL 2.99.1" and record["plan"]["host_bytes"] < pinned["host_bytes"], f"{verb} by NCCL: {record['plan']}, pinned {pinned}")
            bench.check(len(verb) > 1 or (record["measured"]["nccl_bytes"] == 0 and record["measured"]["host_bytes"] == record["plan"]["host_bytes"]), f"{verb} by NCCL: {record.get('measured')}")
    bench.check(np.array_equal(np.load(bench.path("shared.npy")), result), "by NCCL: the same result")
    bench.path("shared.npy").unlink()
    status, _, err = run("reconstruct", env={"TESSERA_NCCL": str(LIBRARY), "NCCL_STAND_IN": "send"})
    bench.check(status not in (0, None) and "rank 1: ncclGroupEnd failed: stand-in: system error" in err and not bench.path("shared.npy").exists(), f"a failing card: {status} {err[:500]}")
    bench.check(not leftovers(bench.folder), "a failing card: no temporary files")


def check_stop(bench, launcher, program, words):
    """A rank that is asked to stop does not leave the others waiting; a lost rank ends the job."""
    for how in (signal.SIGINT, signal.SIGKILL):
        output = bench.path("stopped.npy")
        process = launcher.start(3, program, "reconstruct", output, *words, "--iterations", "100000", "--threads", "1", "--quiet", *WORDS)
        deadline, pids = time.monotonic() + 30, {}
        while (len(pids) < 3 or not leftovers(bench.folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(1)
        bench.check(len(pids) == 3 and process.poll() is None, f"{how.name}: the job runs")
        if process.poll() is None:
            os.kill(pids[2], how)
        status, _, err = launcher.end(process, 60)
        bench.check(status not in (0, None) and ("stopped" in err if how == signal.SIGINT else "rank 2" in err) and not output.exists(), f"{how.name}: {status} {err[:500]}")


def ways(bench, launcher, program):
    problem = ("--problem", "tomo2d", "--size", "128", "--angles", "13")

    def run(*words, env=None):
        verb = words[:2] if words[0] == "plan" else words[:1]
        return launcher.run(3, program, *verb, bench.path("shared.npy"), *problem, "--iterations", "2", "--threads", "1", "--json", "-", "--quiet", *WORDS, *words[len(verb):], env=env)

    check_limit(bench, run)
    status, out, err = run("reconstruct")
    if bench.check(status == 0, f"three ranks: {status} {err[:500]}") and not REAL:
        check_nccl(bench, run, np.load(bench.path("shared.npy")))
        check_host_limit(bench, launcher, program)  # a driver needs more addresses than the test's limit
    check_stop(bench, launcher, program, problem)


def main():
    bench, launcher, program, _ = open_bench()
    begin = time.monotonic()
    if REAL:
        bench.need_device(DEVICE)
    launcher.env.update({"TESSERA_CUDA_ENGINE": "generic"} if REAL else {"TESSERA_QUEUE": "1"})
    {"problems": problems, "ways": ways}[sys.argv[5]](bench, launcher, program)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
