"""rank_blocks.py PROGRAM DIST_TOOL MODULE bits|whole: one image that several ranks share in a grid of blocks, under a real mpirun. The result is that of one rank,
byte for byte, for every network and grid; the memory of a rank is its block's, and what was planned. Skips without mpirun or without the MPI module."""
import json
import sys
import time

import numpy as np

from rank_job import Job, make_inputs
from rank_launcher import open_bench, said
from support import leftovers, picture, to_integers

def check_thin(job, bench):
    """Where strips would be too thin, the plan takes blocks, and every rank has one."""
    np.save(bench.path("wide.npy"), to_integers(picture(61, 226), np.uint8))
    for model in ("unet", "drunet"):
        one = job("wide.npy", "out.npy", "--model", bench.path(f"{model}.safetensors"))
        for ranks in (4, 6, 7):
            record = one.check(ranks, "blocks")
            if record:
                file = record["denoise"]["files"][0]
                bench.check(file["idle_ranks"] == 0 and f"{ranks} rank(s) share the image in " in record["plan"]["reason"] and " blocks of at most " in record["plan"]["reason"],
                            f"{model}, {ranks} ranks: {file} {record['plan']}")


def check_grids(job, bench):
    """Every network, with grids that are asked for, and sizes that end inside of a step in both directions; also strips of columns."""
    np.save(bench.path("uneven.npy"), to_integers(picture(107, 203), np.uint8))
    for model, grids in (("dncnn", ((1, 2), (2, 3), (7, 1), (1, 7))), ("unet", ((2, 2), (3, 2), (1, 6))), ("drunet", ((1, 3), (2, 2), (2, 3), (3, 2), (1, 7)))):
        one = job("uneven.npy", "out.npy", "--model", bench.path(f"{model}.safetensors"))
        for grid in grids:
            one.check(grid[0] * grid[1], "blocks" if grid[1] > 1 else "strips", grid)
    one.check(6, "blocks", (2, 2))  # the others have nothing to do


def check_features(job, bench):
    """What needs whole rows, or rows around a block, or a format that one process writes."""
    gray, colour = ("--model", bench.path("gray.safetensors")), ("--model", bench.path("drunet.safetensors"))
    truth = ("--truth", bench.path("clean.npy"))
    for source, target, words, grid in (
            ("u8.npy", "out.png", (*colour, *truth), (2, 2)), ("u8.npy", "out.npy", (*colour, "--sigma", "0.1", *truth), (1, 2)), ("u8.npy", "out.npy", (*gray, "--add-noise", "0.1"), (2, 3)),
            ("f32.npy", "out.npy", (*colour, "--add-noise", "0.1", "--range", "0,4000"), (3, 2)), ("f32.npy", "out.png", (*colour, "--dither"), (2, 2)),
            ("holes.npy", "out.npy", (*gray, "--sigma", "0.05", "--range", "0,4000"), (2, 3)), ("holes.npy", "out.png", (*gray, "--sigma", "0.05", "--range", "0,4000"), (3, 2)),
            ("photons.npy", "out.npy", gray, (2, 2)), ("photons.npy", "out.png", gray, (2, 3)), ("volume.npy", "out.npy", (*gray, "--axes", "DHW"), (2, 2)),
            ("planes.npy", "out.npy", (*colour, "--axes", "CHW"), (1, 3)), ("exposures.npy", "out.npy", (*gray, "--axes", "DHW"), (2, 2)), ("bands.npy", "out.npy", (*gray, "--axes", "HWC"), (2, 2)),
            ("alpha.png", "out.png", colour, (2, 3)), ("u8.npy", "out.npy", (*colour, "--sigma", bench.path("levels.npy"), "--strength", "0.7"), (2, 2))):
        job(source, target, *words).check(grid[0] * grid[1], "blocks", grid)


def check_memory(bench, launcher, program):
    """Blocks of a fourth of the pixels need about a fourth of the activations, and `plan` says the same as the run."""
    activations = {}
    source = bench.path("large.npy")
    np.save(source, to_integers(picture(512, 512), np.uint8))
    for grid in ((1, 1), (1, 2), (2, 2)):
        words = (source, bench.path("large-out.npy"), "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--threads", "1", "--json", "-", "--quiet")
        records = []
        for verb in (("denoise",), ("plan", "denoise")):
            status, out, err = launcher.run(grid[0] * grid[1], program, *verb, *words, env={"TESSERA_GRID": "x".join(map(str, grid))})
            bench.check(status == 0 and not said(err), f"{verb} with {grid}: {status} {err[:300]}")
            records.append(json.loads(out))
        done, planned = records
        bench.check(done["plan"]["peak_bytes"] == planned["plan"]["peak_bytes"] == done["measured"]["peak_bytes"], f"{grid}: plan {planned['plan']} and run {done['plan']} {done['measured']}")
        for part in done["denoise"]["files"][0].get("blocks", []):
            bench.check(part["measured_bytes"] == part["planned_bytes"], f"{grid}: {part}")
        activations[grid] = planned["plan"]["peak_bytes"]["activations"]
    bench.check(activations[1, 2] < 0.54 * activations[1, 1] and activations[2, 2] < 0.29 * activations[1, 1], f"activations of a rank: {activations}")


def check_refusals(bench, launcher, program):
    """One line, and nothing is written."""
    image, out = bench.path("u8.npy"), bench.path("x.npy")
    for grid, says in (("2", "TESSERA_GRID: must be rows x columns of ranks, as 2x3"), ("2x3x4", "must be rows x columns"), ("0x2", "must be rows x columns"),
                       ("3x2", "TESSERA_GRID: needs 6 ranks, and 4 were started"), ("1x4", "TESSERA_GRID: with this network an image of 207 x 90 has at most 7 x 3 blocks")):
        status, printed, err = launcher.run(4, program, "denoise", image, out, "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--quiet", env={"TESSERA_GRID": grid})
        lines = said(err)
        bench.check(status == 2 and printed == "" and len(lines) == 1 and says in lines[0], f"{grid}: {status} {printed} {err[:500]}")
        bench.check(not out.exists() and not leftovers(bench.folder), f"{grid}: writes nothing")


def check_write_fails(bench, launcher, program):
    """A rank that cannot write its rows, the first of the second row of blocks, or rank 0, ends the job for all: one line, and no output."""
    script = bench.path("full.sh")
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = "$FULL" ]; then trap "" XFSZ; ulimit -f 8; fi\nexec {program} "$@"\n')
    for rank, name in ((2, "x.npy"), (0, "x.npy"), (0, "x.png")):
        out = bench.path(name)
        status, printed, err = launcher.run(4, "sh", script, "denoise", bench.path("u8.npy"), out, "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--threads", "1",
                                            "--quiet", env={"TESSERA_GRID": "2x2", "FULL": str(rank)})
        lines = said(err)
        bench.check(status == 1 and len(lines) == 1 and f"rank {rank}: " in lines[0] and name in lines[0], f"rank {rank} cannot write {name}: {status} {err[:500]}")
        bench.check(not out.exists() and not leftovers(bench.folder), f"rank {rank}: {name}: no half-written output")


def main():
    bench, launcher, program, _ = open_bench()
    begin = time.monotonic()
    make_inputs(bench)

    def job(*words):
        return Job(bench, launcher, program, *words)

    parts = {"bits": lambda: (check_thin(job, bench), check_grids(job, bench), check_memory(bench, launcher, program)),
             "whole": lambda: (check_features(job, bench), check_refusals(bench, launcher, program), check_write_fails(bench, launcher, program))}
    parts[sys.argv[4]]()
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
