"""rank_cards.py PROGRAM DIST_TOOL MODULE [DEVICE]: one image that several ranks share on a device with separate memory, under a real mpirun. Skips without mpirun or
without the MPI module, and without the DEVICE unless TESSERA_REQUIRE_GPU is set.

Without a DEVICE the CPU is used as a card (TESSERA_QUEUE=1): samples, and rows and columns of neighbours, pass through pinned memory as they do there. The result is that of
one rank, byte for byte. On a real card this holds for the kernels that sum in one order whatever the size; others are chosen by the size of the part, and may differ in the last bits.
"""
import json
import os
import signal
import sys
import time

import numpy as np

from rank_job import Job, make_inputs
from rank_launcher import open_bench, ranks_of, said
from support import leftovers, picture, psnr, to_integers

DEVICE = sys.argv[4] if len(sys.argv) > 4 else "cpu"
REAL = DEVICE != "cpu"
WORDS = ("--device", DEVICE, "--precision", "fp32")


def check_grids(job, bench):
    """Every network in strips and in blocks, in sizes that end inside of a step."""
    np.save(bench.path("uneven.npy"), to_integers(picture(139, 203), np.uint8))
    for model in ("dncnn", "unet", "drunet"):
        one = job("uneven.npy", "out.npy", "--model", bench.path(f"{model}.safetensors"))
        for grid in ((2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (1, 3)):
            one.check(grid[0] * grid[1], "blocks" if grid[1] > 1 else "strips", grid)
        one.check(3, None)  # as the plan has it


def check_features(job, bench):
    """What is done to rows before and after the device, planes of colours, and tiles, which are those of one rank."""
    gray, colour = ("--model", bench.path("gray.safetensors")), ("--model", bench.path("drunet.safetensors"))
    truth, noise = ("--truth", bench.path("clean.npy")), ("--add-noise", "0.1")
    for source, target, words, grid in (
            ("u8.npy", "out.npy", (*gray, *noise), (3, 1)), ("u8.npy", "out.npy", (*gray, *noise), (2, 2)), ("u8.npy", "out.png", (*colour, *truth), (2, 1)),
            ("f32.npy", "out.npy", (*colour, *noise, "--range", "0,4000"), (2, 2)), ("holes.npy", "out.npy", (*gray, "--sigma", "0.05", "--range", "0,4000"), (1, 2)),
            ("volume.npy", "out.npy", (*gray, "--axes", "DHW"), (3, 1)), ("alpha.png", "out.png", colour, (2, 2)), ("alpha.png", "out.png", colour, (2, 1)),
            ("u8.npy", "out.npy", (*colour, "--sigma", bench.path("levels.npy")), (3, 1))):
        job(source, target, *words).check(grid[0] * grid[1], "blocks" if grid[1] > 1 else "strips", grid)
    for source, target, ranks in (("u8.npy", "out.npy", 3), ("u8.npy", "out.png", 2)):
        job(source, target, *colour, "--sigma", "0.1", "--tile", "40").check(ranks, "rows_of_tiles")


def check_memory(bench, launcher, program):
    """Half of the rows need half of the activations; `plan` says the same as the run, and pinned bytes are counted as they are planned."""
    source, activations = bench.path("tall.npy"), {}
    rows, row = 512, 3 * 128
    np.save(source, to_integers(picture(2 * rows, 128), np.uint8))
    words = (source, bench.path("tall-out.npy"), "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--threads", "1", *WORDS, "--json", "-", "--quiet")
    for grid in ((1, 1), (2, 1), (1, 2)):
        records = []
        for verb in (("denoise",), ("plan", "denoise")):
            status, out, err = launcher.run(grid[0] * grid[1], program, *verb, *words, env={"TESSERA_GRID": "x".join(map(str, grid))})
            if not bench.check(status == 0 and not said(err), f"{verb} with {grid}: {status} {err[:300]}"):
                return
            records.append(json.loads(out))
        done, planned = records
        measured, pinned = done["measured"], planned["plan"]["host_bytes"]
        bench.check(done["plan"]["peak_bytes"] == planned["plan"]["peak_bytes"] == measured["peak_bytes"], f"{grid}: plan {planned['plan']} and run {done['plan']} {measured}")
        bench.check(pinned == done["plan"]["host_bytes"] == measured["host_bytes"] > 0, f"{grid}: {pinned} bytes pinned, {measured}")
        ways = [record["plan"].get("exchanges", "") for record in records]  # ranks of one card cannot have NCCL: see rank_nccl.py
        bench.check(ways[0] == ways[1] and ways[0].startswith(("pinned memory: ", "NCCL ") if grid != (1, 1) else ""), f"{grid}: exchanges by {ways}")
        activations[grid] = planned["plan"]["peak_bytes"]["activations"]
        if grid == (2, 1):  # what else is counted are the rows of the strip, before and after the network
            off = measured["rows_bytes"] - 2 * rows * row - pinned
            bench.check(REAL or abs(off) <= 0.01 * pinned, f"{pinned} bytes planned to be pinned, {measured['rows_bytes']} counted with rows: {off}")
    grain = 2 << 20 if REAL else 0  # a card's blocks are whole pages
    bench.check(max(activations[2, 1], activations[1, 2]) < 0.54 * activations[1, 1] + grain, f"activations of a rank: {activations}")


def check_chosen_kernels(bench, launcher, program):
    """With the kernels that a card takes by itself, and the bundled model."""
    source, words = bench.path("large.npy"), ("--sigma", "25/255", "--json", "-", "--quiet", "--device", DEVICE)
    rng = np.random.default_rng(1)
    np.save(source, (picture(700, 1000) + rng.normal(0, 0.1, (700, 1000, 3))).astype(np.float32))
    for precision, most, least in (("fp32", 2e-4, 90), ("fp16", 2e-2, 55)):
        results = {}
        for ranks, grid in ((1, "1x1"), (2, "2x1"), (4, "4x1"), (4, "2x2")):
            target = bench.path("chosen.npy")
            status, out, err = launcher.run(ranks, program, "denoise", source, target, *words, "--precision", precision, "--range", "0,1", env={"TESSERA_GRID": grid})
            if not bench.check(status == 0, f"{grid}, {precision}: {status} {err[:500]}"):
                return
            results[grid] = np.load(target)
            off, decibel = np.abs(results[grid] - results["1x1"]).max(), psnr(results[grid], results["1x1"])
            bench.check(off <= most and decibel >= least, f"{grid}, {precision}: {off:.1e} and {decibel:.1f} dB from one rank")
    status, out, err = launcher.run(2, program, "denoise", bench.path("u8.npy"), bench.path("chosen.npy"), "--model", bench.path("unet.safetensors"), *words, "--precision", "fp16")
    bench.check(status == 0 and json.loads(out)["denoise"]["files"][0].get("idle_ranks") == 0, f"a network with upsampling is shared: {status} {err[:500]} {out[-1500:]}")


def check_stop(bench, launcher, program):
    """A rank that is asked to stop does not leave the others waiting."""
    np.save(bench.path("long.npy"), to_integers(picture(700, 400), np.uint8))
    for grid in ("3x1", "1x3"):
        output = bench.path("stopped.npy")
        process = launcher.start(3, program, "denoise", bench.path("long.npy"), output, "--sigma", "0.1", "--threads", "1", "--quiet", env={"TESSERA_GRID": grid})
        deadline, pids = time.monotonic() + 30, {}
        while (len(pids) < 3 or not leftovers(bench.folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(0.3)
        bench.check(len(pids) == 3 and process.poll() is None, f"{grid}: the job runs")
        if process.poll() is None:
            os.kill(pids[2], signal.SIGINT)
        status, _, err = launcher.end(process, 150)
        bench.check(status not in (0, None) and "stopped" in err and not output.exists() and not leftovers(bench.folder), f"{grid}: {status} {err[:500]}")


def main():
    bench, launcher, program, _ = open_bench()
    begin = time.monotonic()
    if REAL:
        bench.need_device(DEVICE)
    make_inputs(bench)
    if REAL:
        check_chosen_kernels(bench, launcher, program)
    os.environ.update({"TESSERA_CUDA_ENGINE": "generic"} if REAL else {"TESSERA_QUEUE": "1"})

    def job(*words):
        return Job(bench, launcher, program, *words, *WORDS)

    check_grids(job, bench)
    check_features(job, bench)
    check_memory(bench, launcher, program)
    if not REAL:  # a card is done too soon
        check_stop(bench, launcher, program)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
