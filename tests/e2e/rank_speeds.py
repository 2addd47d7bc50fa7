"""rank_speeds.py PROGRAM DIST_TOOL MODULE given|measured: the rows of one image, divided by the speeds of the ranks, under a real mpirun. The result is that of one
rank, byte for byte. Skips without mpirun or without the MPI module."""
import json
import os
import sys

import numpy as np

import rank_reconstruct_job
from rank_job import SMALL, Job, make_inputs
from rank_launcher import open_bench, said
from support import dncnn, drunet, picture, skip, to_integers, write_safetensors

RESERVE = 4 << 20  # bytes of a limit that no plan uses


def rows_of(record):
    return [part["rows"] for part in record["denoise"]["files"][0]["strips"]]


def check_strips(job, bench):
    """Every network; the last strip ends inside of a step; a rank that is hardly slower than others changes nothing."""
    for model, source, speeds, expected in (
            ("dncnn", "u8.npy", "1,1,2", None), ("dncnn", "u8.npy", "1,0.01,1", None), ("unet", "u8.npy", "1,2,2", None), ("drunet", "u8.npy", "4,1,1", None),
            ("drunet", "odd.npy", "1,1,3", None), ("drunet", "u8.npy", "1,0.98,1", "equal"), ("dncnn", "u8.npy", "equal", "equal")):
        one = job(source, "out.npy", "--model", bench.path(f"{model}.safetensors"))
        record, equal = (one.check(3, "strips", (3, 1), how) for how in (speeds, "equal"))
        if not record or not equal:
            continue
        rows, reason = rows_of(record), record["plan"]["reason"]
        if expected:
            bench.check(rows == rows_of(equal) and "at most" in reason, f"{model} {speeds}: {rows} {reason}")
            continue
        numbers = [float(number) for number in speeds.split(",")]
        bench.check(rows[np.argmax(numbers)] > rows[np.argmin(numbers)], f"{model} {source} {speeds}: {rows}")
        longest = [max(r / n for r, n in zip(division, numbers)) for division in (rows, rows_of(equal))]
        bench.check(longest[0] <= 0.97 * longest[1], f"{model} {source} {speeds}: {rows} take {longest[0]}, equal ones {longest[1]}")
        bench.check(f"strips of {min(rows)} to {max(rows)} rows, by the speed of the ranks" in reason, f"{model} {speeds}: {rows} {reason}")
        bench.check([part["speed"] for part in record["denoise"]["files"][0]["strips"]] == numbers, f"{model} {speeds}: {record['denoise']['files']}")
    blocks = job("u8.npy", "out.npy", "--model", bench.path("drunet.safetensors")).check(4, "blocks", (2, 2), "1,1,1,9")
    bench.check(blocks is None or "by the speed" not in blocks["plan"]["reason"], f"blocks are equal: {blocks and blocks['plan']}")
    job("volume.npy", "out.npy", "--model", bench.path("gray.safetensors"), "--axes", "DHW").check(3, "strips", (3, 1), "1,1,3")
    job("u8.npy", "out.npy", "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--tile", "40").check(3, "rows_of_tiles", None, "1,1,3")


def check_levels(job, bench):
    """Strips of two steps each, which could not be shorter if all levels of the network began at the same row; also of odd heights."""
    rng = np.random.default_rng(5)
    for model, height, width, speeds, slowest in (("drunet", 256, 64, "1,0.7,1,1", 1), ("unet", 256, 64, "1,1,0.7,1", 2), ("drunet", 263, 67, "1,0.9", 1), ("drunet", 221, 50, "0.7,1,1", 0),
                                                  ("drunet", 517, 33, "1,0.8,0.7,1,1,0.9,1", 2), ("drunet", 257, 24, "1,1,1,0.6", 3)):
        np.save(bench.path("levels.npy"), rng.random((height, width, 3), dtype=np.float32))
        ranks = speeds.count(",") + 1
        one = job("levels.npy", "out.npy", "--model", bench.path(f"{model}.safetensors"), "--sigma", "0.1")
        record, equal = (one.check(ranks, "strips", (ranks, 1), how) for how in (speeds, "equal"))
        if not record or not equal:
            continue
        strips = record["denoise"]["files"][0]["strips"]
        bench.check(all("level_rows" not in part for part in equal["denoise"]["files"][0]["strips"]), f"{model} {height}: equal strips have no rows of levels")
        if not bench.check(all("level_rows" in part for part in strips), f"{model} {height} {speeds}: {strips}"):
            continue
        bench.check(all(part["planned_bytes"] == part["measured_bytes"] for part in strips), f"{model} {height} {speeds}: the bytes of each rank: {strips}")
        padded = (height + 7) // 8 * 8
        for level in range(4):
            rows = [part["level_rows"][level] for part in strips]
            bench.check(sum(rows) == padded >> level, f"{model} {height} {speeds}: level {level} has {rows}")
            bench.check(level > 1 or min(rows) == rows[slowest] < max(rows), f"{model} {height} {speeds}: the slowest rank has as much as others at level {level}: {rows}")


def check_limit(job, bench, launcher, program):
    """A limit that the equal strips keep and longer ones would not; `plan` says what the run does."""
    np.save(bench.path("tall.npy"), to_integers(picture(1024, 64), np.uint8))
    one = job("tall.npy", "out.npy", "--model", bench.path("drunet.safetensors"), "--sigma", "0.1")
    records = [one.check(2, "strips", (2, 1), speeds) for speeds in ("equal", "1,3")]
    if not all(records):
        return
    equal, longer = (record["plan"]["peak_bytes"]["total"] for record in records)
    bench.check(rows_of(records[1]) == [256, 768] and longer > 1.2 * equal, f"{rows_of(records[1])} rows: {longer} bytes, equal: {equal}")
    words = (*map(str, one.words), "--memory", str(longer + RESERVE - 4096))
    for verb in (("denoise",), ("plan", "denoise")):
        status, _, err = launcher.run(2, program, *verb, words[0], bench.path("limited.npy"), *words[1:], env={"TESSERA_GRID": "2x1", "TESSERA_SPEEDS": "1,3"})
        record = one.read()
        bench.check(status == 0 and rows_of(record) == [512, 512] and "at most 512 rows" in record["plan"]["reason"], f"{verb} within a limit: {status} {err[:300]} {record['plan']}")
    bench.check(bench.path("limited.npy").read_bytes() == one.result, "within a limit: the same bytes")


def check_refusals(bench, launcher, program):
    for speeds in ("1,2", "1,2,3,4", "1,0,1", "1,-1,1", "1,x,1", "fast", "1,1,inf", "1,nan,1"):
        out = bench.path("x.npy")
        status, printed, err = launcher.run(3, program, "denoise", bench.path("u8.npy"), out, "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--quiet",
                                            env={"TESSERA_SPEEDS": speeds, "TESSERA_GRID": "3x1"})
        lines = said(err)
        bench.check(status == 2 and printed == "" and len(lines) == 1 and "TESSERA_SPEEDS: must be" in lines[0] and not out.exists(), f"{speeds}: {status} {err[:500]}")


def check_reconstructions(bench, launcher, program):
    """Results whose bits do not depend on the division are divided by speed; a limit that longer strips would not keep makes them equal."""
    color, gray = bench.path("color.safetensors"), bench.path("gray.safetensors")
    write_safetensors(color, drunet(widths=SMALL))
    for problem, model in (("deblur", color), ("tomo2d", gray)):
        one = rank_reconstruct_job.Job(bench, launcher, program, problem, "--size", 192, "--iterations", 2, "--model", model)
        record = one.check(3, env={"TESSERA_SPEEDS": "1,3,2"})
        if not record:
            continue
        own = record["reconstruct"]
        bench.check([part["rows"] for part in own["parts"]] == [32, 96, 64] and [part["speed"] for part in own["parts"]] == [1, 3, 2] and
                    "strips of 32 to 96 rows, by the speed of the ranks" in own["parts_reason"], f"{problem}: {own['parts']} {own['parts_reason']}")
        longer = record["plan"]["peak_bytes"]["total"]
        equal = one.check(3, env={"TESSERA_SPEEDS": "equal"})
        if equal and equal["plan"]["peak_bytes"]["total"] < longer:
            one.shared = ("--memory", longer + RESERVE - 4096)
            limited = one.check(3, env={"TESSERA_SPEEDS": "1,3,2"})
            bench.check(limited is None or [part["rows"] for part in limited["reconstruct"]["parts"]] == [64, 64, 64], f"{problem} within a limit: {limited and limited['reconstruct']['parts']}")


def check_study(bench, launcher, program):
    """The study divides as a run does, and predicts the division that it ran."""
    model = write_safetensors(bench.path("small.safetensors"), dncnn(3, 5, 8))
    words = ("bench", "scaling", "--problems", "deblur", "--sizes", 96, "--square", "--repeats", 2, "--models", model, "--threads", 1, "--ranks", "1,2")
    for speeds in ("1,3", None):
        status, out, err = launcher.run(2, program, *words, env={"TESSERA_SPEEDS": speeds} if speeds else {})
        if not bench.check(status == 0, f"study, {speeds}: {status} {err[:400]}"):
            continue
        one, two = (json.loads(line) for line in out.splitlines())
        bench.check(one["rows_per_rank"] == [96] and "speeds" not in one, f"one rank: {one}")
        bench.check(sum(two["rows_per_rank"]) == 96 and max(two["rows_per_rank"]) == two["rows"] and len(two["speeds"]) == 2 and min(two["speeds"]) > 0, f"two ranks: {two}")
        bench.check(len(two["pass_seconds"]) == 2 and min(two["pass_seconds"]) > 0, f"each pass: {two}")
        if speeds:
            bench.check(two["rows_per_rank"] == [24, 72] and two["speeds"] == [1, 3], f"given speeds: {two}")
        bench.check(two["bytes_per_rank"] == two["planned_bytes_per_rank"] and two["prediction"]["seconds"] > 0, f"bytes and prediction: {two}")


def check_study_levels(bench, launcher, program):
    """The study of a network whose levels are divided apart has planned its bytes, and says which rows each rank has."""
    model = write_safetensors(bench.path("small_drunet.safetensors"), drunet(widths=SMALL))
    status, out, err = launcher.run(2, program, "bench", "scaling", "--problems", "deblur", "--sizes", 256, "--square", "--repeats", 2, "--models", model, "--threads", 1, "--ranks", "2",
                                    env={"TESSERA_SPEEDS": "1,0.75"})
    if bench.check(status == 0, f"study of levels: {status} {err[:400]}"):
        two = json.loads(out.splitlines()[0])
        levels = two.get("level_rows_per_rank", [[], []])
        bench.check([rows[0] for rows in levels] == two["rows_per_rank"] and two["rows_per_rank"][0] < 160, f"study of levels: {two}")
        bench.check([a + b for a, b in zip(*levels)] == [256, 128, 64, 32], f"study of levels: {two}")
        bench.check(two["bytes_per_rank"] == two["planned_bytes_per_rank"] and two["prediction"]["seconds"] > 0, f"study of levels: {two}")


def check_measured(job, bench, launcher, program):
    """All ranks but the last share a core, so that it is several times faster, whatever else runs. Others may use its core: then it is tried again."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        skip("one core: no rank is faster than another")
    script = bench.path("bind.sh")
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = 4 ]; then core={cores[-1]}; else core={cores[0]}; fi\nexec taskset -c $core {program} "$@"\n')
    launcher.options = [*launcher.options, "--bind-to", "none"]
    np.save(bench.path("tall.npy"), to_integers(picture(1024, 256), np.uint8))
    one = job("tall.npy", "out.npy", "--model", bench.path("dncnn.safetensors"))
    found = []
    for _ in range(6):
        one.bench.path("out.npy").unlink(missing_ok=True)
        status, _, err = launcher.run(5, "sh", script, "denoise", one.words[0], bench.path("out.npy"), *one.words[1:], env={"TESSERA_GRID": "5x1", "TESSERA_SPEEDS": "measure"})
        if not bench.check(status == 0, f"five ranks: {status} {err[:500]}"):
            return
        record = one.read()
        parts = record["denoise"]["files"][0]["strips"]
        found.append([(part["rows"], round(part["speed"], 2)) for part in parts])
        bench.check(bench.path("out.npy").read_bytes() == one.result, f"five ranks: the same bytes: {found[-1]}")
        bench.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"five ranks: counted as planned: {record['plan']} {record['measured']}")
        if all(parts[4]["rows"] > part["rows"] for part in parts[:4]):
            break
    print(found)
    bench.check(all(found[-1][4][0] > part[0] for part in found[-1][:4]), f"the rank with a core of its own has the most rows: {found}")


def main():
    bench, launcher, program, _ = open_bench()
    make_inputs(bench)

    def job(*words):
        return Job(bench, launcher, program, *words)

    if sys.argv[4] == "measured":
        check_measured(job, bench, launcher, program)
    else:
        check_strips(job, bench)
        check_levels(job, bench)
        check_limit(job, bench, launcher, program)
        check_refusals(bench, launcher, program)
        check_reconstructions(bench, launcher, program)
        check_study(bench, launcher, program)
        check_study_levels(bench, launcher, program)
    bench.finish()


main()
