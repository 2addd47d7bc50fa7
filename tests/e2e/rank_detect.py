"""rank_detect.py PROGRAM DIST_TOOL MODULE: detect with several ranks, under a real mpirun. Scores, fitted pipelines, decisions and figures are
those of one rank, byte for byte. Skips without mpirun or without the MPI module."""
import json
import os
import pathlib
import shutil
import signal
import time

import numpy as np

from rank_launcher import open_bench, opened, ranks_of, said
from support import leftovers

IMAGE = {"over": "image"}


def cube(seed, height, width, bands=8):
    rng = np.random.default_rng(seed)
    mixed = rng.uniform(0, 1, (height, width, 2)) @ rng.uniform(40, 110, (2, bands)) + rng.normal(0, 4, (height, width, bands))
    truth = np.zeros((height, width), np.uint8)
    for _ in range(6):
        y, x = rng.integers(0, height - 2), rng.integers(0, width - 2)
        truth[y:y + 2, x:x + 2] = 1
        mixed[y:y + 2, x:x + 2, ::2] += 60
    return np.clip(mixed, 0, 255).astype(np.uint8), truth


def figures(record):
    """What must not depend on the ranks."""
    plan = {k: record["plan"][k] for k in ("block_rows", "passes", "fit_readings", "score_readings")}
    return record["input"], record.get("quality"), record["detect"], plan, record["measured"]["bytes_read"]


class Job:
    """A job that one rank has done, to be done again by several. `outputs` are options with a file that they write."""

    def __init__(self, bench, launcher, program, nodes, source, *words, outputs=()):
        self.bench, self.launcher, self.program, self.outputs = bench, launcher, program, outputs
        self.name = f"{source} {' '.join(n['kind'] for n in nodes)}"
        graph = bench.path(f"graph{launcher.count}.json")
        graph.write_text(json.dumps({"nodes": nodes}))
        self.words = ("detect", bench.path(source))
        self.options = ("--pipeline", graph, "--threads", "1", *words)
        alone = bench.run(*self.words, *self.targets("one"))
        bench.check(alone.status == 0, f"one rank: {self.name}: {alone}")
        self.record, self.files = self.read(), self.contents("one")

    def targets(self, where):
        folder = self.bench.path(where)
        folder.mkdir(exist_ok=True)
        target = folder / ("scores" if self.words[1].is_dir() else "scores.npy")
        return (target, *self.options, *(w for option, name in self.outputs for w in (option, folder / name)), "--json", self.bench.path("record.json"))

    def read(self):
        return json.loads(self.bench.path("record.json").read_text())

    def contents(self, where):
        folder = self.bench.path(where)
        found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        return found

    def check(self, *counts, blocks=None):
        for ranks in counts:
            status, out, err = self.launcher.run(ranks, self.program, *self.words, *self.targets("many"), seconds=200)
            if not self.bench.check(status == 0 and out.count("measured") == 1, f"{ranks} ranks: {self.name}: {status} {err[:500]}"):
                continue
            record, files = self.read(), self.contents("many")
            self.bench.check(record["ranks"] == ranks and figures(record) == figures(self.record), f"{ranks} ranks: {self.name}: the same record: {figures(record)} {figures(self.record)}")
            self.bench.check(list(files) == list(self.files), f"{ranks} ranks: {self.name}: the same files: {list(files)} {list(self.files)}")
            different = [name for name in files if files[name] != self.files.get(name)]
            self.bench.check(not different, f"{ranks} ranks: {self.name}: not the same bytes: {different}")
            idle = [line for line in said(err) if "nothing to do" in line]
            self.bench.check(len(idle) == (blocks is not None and blocks < ranks), f"{ranks} ranks: {self.name}: idle ranks: {said(err)}")


def check_bits(bench, launcher, program):
    """A cube of four blocks of rows, one of two, and a folder of cubes that are one block each."""
    image, truth = cube(1, 3500, 1024)
    np.save(bench.path("large.npy"), image)
    np.save(bench.path("large_truth.npy"), truth)
    np.save(bench.path("medium.npy"), image[:1300])
    np.save(bench.path("medium_truth.npy"), truth[:1300])
    folder, masks = bench.path("in"), bench.path("masks")
    folder.mkdir()
    masks.mkdir()
    for i in range(5):
        image, truth = cube(10 + i, 30 + 3 * i, 41)
        np.save(folder / f"{i}.npy", image)
        np.save(masks / f"{i}_mask.npy", truth)
    np.save(folder / "several.npy", np.stack([cube(20 + i, 25, 31)[0] for i in range(3)]))
    np.save(masks / "several_mask.npy", np.stack([cube(20 + i, 25, 31)[1] for i in range(3)]))
    rx, end = {"kind": "rx", "eps": 1e-6}, [{"kind": "score_to_logit"}, {"kind": "false_alarm", "rate": 0.01}, {"kind": "metrics"}]
    saved, list_of = ("--save", "fitted.safetensors"), ("--detections", "found.csv")
    of_large, of_medium, of_folder = (("--truth", path) for path in (bench.path("large_truth.npy"), bench.path("medium_truth.npy"), masks))
    plain = Job(bench, launcher, program, [{"kind": "minmax"}, rx, {"kind": "quantile", "quantile": 0.9999}, {"kind": "metrics"}], "large.npy", *of_large,
                outputs=(saved, list_of, ("--mask-out", "mask.png"), ("--overlay", "overlay.png")))
    plain.check(2, 3, 5, blocks=4)
    Job(bench, launcher, program, [{"kind": "zscore", **IMAGE}, {"kind": "sigmoid"}, {"kind": "pca", "components": 5}, {**rx, "trim": 2, "trims": 2}, *end],
        "medium.npy", *of_medium, outputs=(saved,)).check(2, 3, blocks=2)
    Job(bench, launcher, program, [{"kind": "minmax", **IMAGE}, {"kind": "pca", "components": 6}, rx, *end], "in", *of_folder, outputs=(saved, list_of)).check(2, 4, 9, blocks=8)
    Job(bench, launcher, program, [{"kind": "sigmoid"}, {**rx, **IMAGE}, *end[:2]], "in", outputs=(saved,)).check(3)
    collar = np.load(bench.path("medium.npy"))
    y, x = np.mgrid[:1300, :1024]
    collar[y + 2 * x < 900] = 0  # undeclared, and found by each rank
    np.save(bench.path("collar.npy"), collar)
    marked = Job(bench, launcher, program, [{"kind": "zscore", **IMAGE}, rx, *end], "collar.npy", *of_medium, outputs=(saved, ("--overlay", "overlay.png")))
    bench.check(marked.record["detect"]["pixels_without_score"] == (y + 2 * x < 900).sum(), f"a collar: {marked.record['input']}")
    marked.check(2, 3, blocks=2)
    shutil.move(bench.path("medium.npy"), folder / "2b.npy")
    Job(bench, launcher, program, [{"kind": "zscore", **IMAGE}, rx, *end[:2]], "in", outputs=(saved, list_of)).check(3)
    (folder / "2b.npy").unlink()
    Job(bench, launcher, program, [{"kind": "zscore"}, {**rx, "over": "stream", "warmup": 4, "every": 2}], "in").check(3)
    Job(bench, launcher, program, [{"kind": "rx", "over": "local", "eps": 1.0, "inner": 3, "outer": 5}], "in").check(2)


def check_windows(bench, launcher, program):
    """With a limit, blocks depend on the number of ranks; the scores of windows do not."""
    np.save(bench.path("windows.npy"), cube(3, 400, 200)[0])
    job = Job(bench, launcher, program, [{"kind": "rx", "over": "local", "eps": 1.0, "inner": 3, "outer": 5}], "windows.npy")
    job.options += ("--memory", "2M")
    status, out, err = launcher.run(3, program, *job.words, *job.targets("many"))
    rows = job.read()["plan"]["block_rows"] if status == 0 else 400
    bench.check(status == 0 and rows < 400 and job.contents("many") == job.files, f"windows in blocks of {rows} rows: {status} {err[:300]}")


def check_faults(bench, launcher, program):
    """One line, the status, and nothing written. The descriptor 9 of rank 1 is another folder than that of the others."""
    script, other, out = bench.path("rank.sh"), bench.path("other"), bench.path("x.npy")
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec 9<"$ONE"; else exec 9<"$OTHERS"; fi\nexec {program} "$@"\n')
    other.mkdir()
    np.save(other / "0.npy", cube(5, 20, 41)[0])
    nine, large = "/proc/self/fd/9", bench.path("large.npy")
    for says, words, one, others in (
            ("rank 1: /proc/self/fd/9/1.npy", ("detect", nine + "/1.npy", out), other, bench.path("in")),
            ("rank 1 (", ("detect", nine + "/0.npy", out), other, bench.path("in")),
            ("rank 1: /proc/self/fd/9/graph0.json", ("detect", large, out, "--pipeline", nine + "/graph0.json"), other, bench.folder),
            ("needs at least", ("detect", bench.path("nothing.npy"), out), "", ""),
            ("cannot", ("detect", large, "/proc/none.npy"), "", "")):
        np.save(bench.path("nothing.npy"), np.full((9, 9, 4), np.nan, np.float32))
        command = ("sh", script) if one else (program,)
        status, printed, err = launcher.run(3, *command, *words, "--quiet", env={"ONE": str(one), "OTHERS": str(others)})
        bench.check(status == 1 and printed == "" and len(said(err)) == 1 and (says in said(err)[0] or says == "cannot"), f"{says}: {status} {printed} {err[:500]}")
        bench.check(not out.exists() and not leftovers(bench.folder), f"{says}: writes nothing: {leftovers(bench.folder)}")
    process = launcher.start(3, program, "detect", large, out, "--threads", "1", "--quiet")
    pids = {}
    # Not before the ranks read: mpirun of Open MPI 4.1 can block when a rank dies while it joins.
    while process.poll() is None and not (len(pids) == 3 and opened(pids[2], large)):
        time.sleep(0.005)
        pids = ranks_of(process.pid)
    if process.poll() is None:
        os.kill(pids[2], signal.SIGKILL)
    status, printed, err = launcher.end(process, 30)
    bench.check(status not in (0, None) and not out.exists(), f"a lost rank: {status} {err[:300]}")


def check_late_loss(bench, launcher, program, held):
    """A rank is lost while rank 0 gives the output its final name: the job fails because its temporary file is removed, and only the loss is reported.
    Open MPI's gather of four ranks brings the failure to rank 0 without rank 3, which has sent its part to rank 2 before.
    If mpirun ends rank 0 within a second, nothing is."""
    if not held.exists():
        print("a rank lost at the end: left out without held_rename.so")
        return
    out, mark = bench.path("late.npy"), bench.path("held")
    np.save(bench.path("late-in.npy"), cube(4, 2400, 128)[0])
    process = launcher.start(4, "env", f"LD_PRELOAD={held}", program, "detect", bench.path("late-in.npy"), out, "--threads", "1", "--quiet", env={"HELD_RENAME": str(mark)})
    while process.poll() is None and not mark.exists():
        time.sleep(0.005)
    pids = ranks_of(process.pid)
    time.sleep(0.3)  # until the others wait for rank 0
    if bench.check(3 in pids, f"rank 0 has begun to rename: {pids}"):
        os.kill(pids[3], signal.SIGKILL)
    status, printed, err = launcher.end(process, 30)
    lines = said(err)
    bench.check(status not in (0, None) and len(lines) <= 1 and all("rank 3 (" in line for line in lines) and not out.exists(), f"a rank lost at the end: one line: {status} {lines} {err[:300]}")


def main():
    bench, launcher, program, tool = open_bench()
    check_bits(bench, launcher, program)
    check_windows(bench, launcher, program)
    check_faults(bench, launcher, program)
    check_late_loss(bench, launcher, program, pathlib.Path(tool).parent / "held_rename.so")
    bench.finish()


main()
