"""rank_fill.py PROGRAM DIST_TOOL MODULE: fill with several ranks, under a real mpirun. The result is that of one rank, byte for byte, also after ranks
were killed and another number of ranks went on. Skips without mpirun, without the MPI module or without GDAL's Python module."""
import json
import os
import random
import shutil
import signal
import time

from fill import FAST, NODATA, heights, model_weights, save
from rank_launcher import open_bench, ranks_of, said
from support import leftovers, skip, write_pth, write_safetensors

SPEED = ("tile_steps_per_second", "tflops", "resumed_tiles")  # what may depend on the ranks


def make_maps(bench):
    """Some voids, and one that is wider than a tile, so that it is filled coarse to fine."""
    write_pth(bench.path("net.pth"), model_weights())
    write_safetensors(bench.path("smooth.safetensors"), model_weights(4), {"conditioning": "smooth"})
    z = heights(230, 260)
    save(bench.path("truth.tif"), z, nodata=None)
    z[20:40, 30:70] = z[100:104, 10:60] = z[180:200, 200:230] = z[60, 180:250] = z[210:222, 40:60] = NODATA
    save(bench.path("map.tif"), z)
    z[60:215, 70:240] = NODATA
    save(bench.path("wide.tif"), z)
    z = heights(150, 150)
    z[70:75, 60:90] = NODATA
    save(bench.path("single.tif"), z)


def of_fill(record):
    return {k: v for k, v in record["fill"].items() if k not in SPEED}, record.get("quality"), record["input"]


class Job:
    """A job that one rank has done, to be done again by several. `outputs` are options with a file that they write."""

    def __init__(self, bench, launcher, program, source, *words, model="net.pth", outputs=()):
        self.bench, self.launcher, self.program, self.outputs = bench, launcher, program, outputs
        self.name = f"{source} {model} {' '.join(map(str, words))}"
        self.words = ("fill", bench.path(source))
        self.options = ("--model", bench.path(model), "--device", "cpu", "--threads", "1", *FAST, *words)
        alone = bench.run(*self.words, *self.targets("one"))
        bench.check(alone.status == 0, f"one rank: {self.name}: {alone}")
        self.record, self.files = self.read(), self.contents("one")

    def targets(self, where):
        folder = self.bench.path(where)
        folder.mkdir(exist_ok=True)
        return (folder / "out.tif", *self.options, *(w for option, name in self.outputs for w in (option, folder / name)), "--json", self.bench.path("record.json"))

    def read(self):
        return json.loads(self.bench.path("record.json").read_text())

    def contents(self, where):
        found = {p.name: p.read_bytes() for p in sorted(self.bench.path(where).iterdir())}
        shutil.rmtree(self.bench.path(where))
        return found

    def check_result(self, ranks, status, err):
        if not self.bench.check(status == 0, f"{ranks} ranks: {self.name}: {status} {err[:500]}"):
            return None
        record, files = self.read(), self.contents("many")
        self.bench.check(files == self.files, f"{ranks} ranks: {self.name}: the same bytes: {list(files)}")
        self.bench.check(record["ranks"] == ranks and of_fill(record) == of_fill(self.record), f"{ranks} ranks: {self.name}: the same record: {of_fill(record)} {of_fill(self.record)}")
        return record

    def check(self, *counts):
        for ranks in counts:
            status, out, err = self.launcher.run(ranks, self.program, *self.words, *self.targets("many"), seconds=200)
            self.bench.check(out.count("measured") == 1, f"{ranks} ranks: one voice: {out[:300]}")
            record = self.check_result(ranks, status, err)
            planned, measured = ((record or {}).get(k, {}).get("peak_bytes", {}).get("total", 0) for k in ("plan", "measured"))
            self.bench.check(0 < measured <= planned, f"{ranks} ranks: {self.name}: planned {planned} bytes, measured {measured}")
            idle = [line for line in said(err) if "nothing to do" in line]
            self.bench.check(len(idle) == (self.record["fill"]["tiles"] < ranks), f"{ranks} ranks: {self.name}: idle ranks: {said(err)}")


def check_bits(bench, launcher, program):
    Job(bench, launcher, program, "map.tif", "--samples", "3", "--truth", bench.path("truth.tif"), outputs=(("--deviation", "deviation.tif"),)).check(2, 3)
    wide = Job(bench, launcher, program, "wide.tif")
    bench.check(wide.record["fill"]["levels"] > 1 and wide.record["fill"]["guided_tiles"] > 0, f"several levels: {wide.record['fill']}")
    wide.check(2, 4)
    Job(bench, launcher, program, "wide.tif", model="smooth.safetensors").check(3)
    Job(bench, launcher, program, "single.tif", "--tile", "160", "--overlap", "8").check(2)
    status, out, err = launcher.run(3, program, "plan", *wide.words, *wide.targets("many"))
    planned = wide.read()
    bench.check(status == 0 and planned["ranks"] == 3 and "measured" not in planned and not list(bench.path("many").iterdir()), f"plan fill: {status} {err[:300]}")


def check_killed(bench, launcher, program):
    """Finished tiles are kept, whoever dies or is stopped, and another number of ranks goes on with them."""
    job = Job(bench, launcher, program, "wide.tif", "--steps", "16")
    journal, kept = bench.path("many") / "out.tif.unfinished", 0
    for ranks, victim, how in ((3, 2, signal.SIGKILL), (2, 0, signal.SIGKILL), (4, 1, signal.SIGINT)):
        before = journal.stat().st_blocks if journal.exists() else 0
        process = launcher.start(ranks, program, *job.words, *job.targets("many"), *(("--resume",) if journal.exists() else ()))
        pids, deadline = {}, time.monotonic() + 40
        while time.monotonic() < deadline and process.poll() is None and (len(pids) < ranks or not journal.exists() or journal.stat().st_blocks < before + 16):
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(random.uniform(0, 0.3))
        if process.poll() is None and victim in pids:
            os.kill(pids[victim], how)
        status, out, err = launcher.end(process, 30)
        bench.check(status is not None and (status != 0) == journal.exists(), f"rank {victim} of {ranks}, {how.name}: {status} {err[:300]}")
        bench.check(status == 0 or how == signal.SIGKILL or (status in (1, 130) and len(said(err)) == 1 and "--resume" in said(err)[0]), f"{how.name}: says how to go on: {status} {said(err)}")
        if status == 0:
            break
    if journal.exists():
        status, out, err = launcher.run(1, program, *job.words, *job.targets("many"), "--seed", "9", "--resume")
        bench.check(status == 1 and "other settings" in err, f"another seed: {status} {err[:300]}")
        status, out, err = launcher.run(3, program, *job.words, *job.targets("many"))
        bench.check(status == 1 and "finished tiles" in err and len(said(err)) == 1, f"without --resume: {status} {err[:300]}")
        status, out, err = launcher.run(3, program, *job.words, *job.targets("many"), "--resume", seconds=200)
        for left in leftovers(bench.path("many")):  # of the rank that wrote the output
            shutil.rmtree(bench.path("many") / left, ignore_errors=True)
        record = job.check_result(3, status, err)
        kept = record["fill"]["resumed_tiles"] if record else 0
        bench.check(0 < kept <= job.record["fill"]["tiles"], f"{kept} of {job.record['fill']['tiles']} tiles were kept")


def check_faults(bench, launcher, program):
    """One line, the status, and nothing written. The descriptor 9 of rank 1 is another folder than that of the others."""
    script, other, out = bench.path("rank.sh"), bench.path("other"), bench.path("x.tif")
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec 9<"$ONE"; else exec 9<"$OTHERS"; fi\nexec {program} "$@"\n')
    other.mkdir()
    save(other / "map.tif", heights(230, 260))
    nine, net, source = "/proc/self/fd/9", ("--model", bench.path("net.pth")), bench.path("map.tif")
    for says, words in (("rank 1: ", ("fill", source, out, "--model", nine + "/net.pth")),
                        ("rank 1: /proc/self/fd/9/truth.tif", ("fill", source, out, *net, "--truth", nine + "/truth.tif")),
                        ("rank 1 (", ("fill", nine + "/map.tif", out, *net)),
                        ("rank 1: /proc/self/fd/9/x.tif.unfinished: rank 0 has made", ("fill", source, nine + "/x.tif", *net)),
                        ("rank 0: ", ("fill", source, bench.path("none/x.tif"), *net))):
        status, printed, err = launcher.run(3, "sh", script, *words, *FAST, "--device", "cpu", "--threads", "1", "--quiet", env={"ONE": str(other), "OTHERS": str(bench.folder)})
        bench.check(status == 1 and printed == "" and len(said(err)) == 1 and says in said(err)[0], f"{says}: {status} {printed} {err[:500]}")
        left = [str(p) for p in (out, other / "x.tif", bench.path("x.tif.unfinished"), other / "x.tif.unfinished") if p.exists()]
        bench.check(not left and not leftovers(bench.folder), f"{says}: writes nothing: {left} {leftovers(bench.folder)}")


def main():
    bench, launcher, program, tool = open_bench()
    if not bench.has_gdal():
        skip("the program has no GDAL")
    make_maps(bench)
    check_bits(bench, launcher, program)
    check_killed(bench, launcher, program)
    check_faults(bench, launcher, program)
    bench.finish()


main()
