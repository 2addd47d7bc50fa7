"""rank_faults.py PROGRAM DIST_TOOL MODULE COUNT [SECONDS [VERB,... [FROM:TO]]]: random ranks are killed (SIGKILL) or stopped (SIGSTOP) at random times, COUNT times in each
verb that ranks share, under a real mpirun. Each time the job must end within 30 seconds with at most one line and leave no process, every output must be absent, whole or the
old one, and the run that goes on with another number of ranks must have the result of a run that nothing happened to. Skips without mpirun or without
the MPI module.

One thing is not promised, because it is not the program's: mpirun of Open MPI 4.1 waits for ever if a rank is killed between its first connection to mpirun and mpirun's answer
("PMIX ERROR: UNREACHABLE"), before the rank could do anything. Then all ranks must still have ended; such strikes are counted.

SECONDS is the silence after which a rank counts as lost (TESSERA_RANK_SECONDS, here 2; the program's own is 15). Times are drawn over the whole job, the start and the end
of its processes included, or between the shares FROM and TO of its length; a job that ended before its time is run again. TESSERA_FAULT_SEED repeats a run's choices.
"""
import io
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np

from rank_launcher import open_bench, ranks_of, said
from support import dncnn, drunet, leftovers, picture, read_safetensors, to_integers, write_config, write_png, write_safetensors

LIMIT = 30  # seconds
OLD = b"an older result"
HANGS = "PMIX ERROR: UNREACHABLE"  # mpirun's last words before it waits for ever
SPAN = tuple(map(float, sys.argv[7].split(":"))) if len(sys.argv) > 7 else (0, 1.05)


def contents(folder):
    """{name: bytes} of all files except what a run leaves for itself."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and ".tmp-" not in name and not name.endswith(".unfinished"):
            found[name] = path.read_bytes()
    return found


class Verb:
    """A job with its own inputs. `outputs` are the files that it writes below a folder, `resume` the option that goes on."""
    name, resume, outputs = "", (), ("out.npy",)

    def __init__(self, bench):
        self.bench, self.home = bench, bench.path(self.name)
        self.home.mkdir()
        self.make()

    def make(self):
        pass

    def words(self, folder):
        return ()

    def same(self, one, other):
        """Whether two sets of outputs are one result."""
        return one == other

    def is_whole(self, name, data, whole):
        return data == whole.get(name)


class Folder(Verb):
    name, resume, outputs = "denoise-folder", ("--skip-existing",), ()

    def make(self):
        (self.home / "in").mkdir()
        for i in range(12):
            np.save(self.home / "in" / f"{i:02}.npy", to_integers(picture(150, 130 + 8 * (i % 3)), np.uint8))

    def words(self, folder):
        return "denoise", self.home / "in", folder, "--sigma", "0.1", "--threads", "1", "--quiet"


class Strips(Verb):
    name = "denoise-strips"

    def make(self):
        np.save(self.home / "in.npy", to_integers(picture(900, 130), np.uint8))

    def words(self, folder):
        return "denoise", self.home / "in.npy", folder / "out.npy", "--sigma", "0.1", "--threads", "1", "--quiet"


class Pieces(Strips):
    """Tiles of one image, and a format that one rank writes."""
    name, outputs = "denoise-tiles", ("out.png",)

    def words(self, folder):
        return "denoise", self.home / "in.npy", folder / "out.png", "--sigma", "0.1", "--tile", "96", "--threads", "1", "--quiet"


class Fill(Verb):
    name, resume, outputs = "fill", ("--resume",), ("out.tif",)

    def make(self):
        from fill import NODATA, heights, model_weights, save
        write_safetensors(self.home / "net.safetensors", model_weights())
        z = heights(230, 260)
        z[20:40, 30:70] = z[180:200, 200:230] = z[60:215, 70:240] = NODATA
        save(self.home / "map.tif", z)

    def words(self, folder):
        resume = ("--resume",) if (folder / "out.tif.unfinished").exists() else ()
        return ("fill", self.home / "map.tif", folder / "out.tif", "--model", self.home / "net.safetensors", "--device", "cpu", "--threads", "1", "--steps", "6", "--tile", "64", "--overlap", "8",
                "--quiet", *resume)


class Detect(Verb):
    name, outputs = "detect", ("out.npy", "mask.png", "found.csv", "fitted.safetensors")

    def make(self):
        rng = np.random.default_rng(1)
        cube = np.clip(rng.uniform(0, 1, (2600, 1024, 2)).astype(np.float32) @ rng.uniform(40, 110, (2, 8)).astype(np.float32) + rng.normal(0, 4, (2600, 1024, 8)), 0, 255)
        cube[rng.integers(0, 2600, 40), rng.integers(0, 1024, 40), ::2] += 80
        np.save(self.home / "cube.npy", np.clip(cube, 0, 255).astype(np.uint8))
        (self.home / "graph.json").write_text(json.dumps({"nodes": [{"kind": "minmax"}, {"kind": "pca", "components": 5}, {"kind": "rx", "eps": 1e-6}, {"kind": "quantile", "quantile": 0.9999}]}))

    def words(self, folder):
        return ("detect", self.home / "cube.npy", folder / "out.npy", "--pipeline", self.home / "graph.json", "--mask-out", folder / "mask.png", "--detections", folder / "found.csv",
                "--save", folder / "fitted.safetensors", "--threads", "1", "--quiet")


class Train(Verb):
    """Runs with other numbers of ranks round differently."""
    name, resume, outputs = "train", ("--resume",), ("net.safetensors",)

    def make(self):
        (self.home / "images").mkdir()
        for seed in range(4):
            write_png(self.home / "images" / f"{seed}.png", to_integers(picture(56, 64, 3, seed) * 0.8, np.uint8))

    def words(self, folder):
        keys = {"network": {"architecture": "dncnn", "widths": [16], "depth": 5}, "data": {"folders": [str(self.home / "images")], "crop": 24, "sigma": 0.1}, "batch": 8, "steps": 80,
                "optimizer": {"rate": 1e-5}, "output": str(folder / "net.safetensors"), "checkpoint": {"every": 8, "folder": str(folder / "checkpoints")}, "device": "cpu", "precision": "fp32"}
        config = write_config(folder / "config.json", keys, {})
        resume = ("--resume",) if list((folder / "checkpoints").glob("*.ckpt")) else ()
        return "train", config, "--threads", "1", "--quiet", *resume

    def is_whole(self, name, data, whole):
        return name != "net.safetensors" or self.tensors(data).keys() == self.tensors(whole[name]).keys()

    def tensors(self, data):
        """Of a file that has all of its bytes."""
        path = self.home / "read.safetensors"
        path.write_bytes(data)
        try:
            return read_safetensors(path)
        except (ValueError, struct.error):
            return {}

    def same(self, one, other):
        found = [self.tensors(files.get("net.safetensors", b"")) for files in (one, other)]
        return found[0].keys() == found[1].keys() and bool(found[0]) and max(np.abs(found[0][k] - found[1][k]).max() for k in found[0]) < 1e-4


class Reconstruct(Verb):
    """Ranks share the rows of the image and of the measurement. Sums of other numbers of ranks may round differently."""
    name, outputs, problem = "reconstruct-deblur", ("out.npy", "saved.npy"), ("deblur", "--size", "144x96", "--operators", "3", "--iterations", "24")

    def make(self):
        write_safetensors(self.home / "net.safetensors", drunet(channels=1, widths=(32, 32, 32, 64)))

    def words(self, folder):
        return ("reconstruct", folder / "out.npy", "--problem", *self.problem, "--model", self.home / "net.safetensors", "--save-measurement", folder / "saved.npy", "--threads", "1", "--quiet")

    def apart(self, data, whole):
        """|one - other| / |other| of two files, infinite if one of them is not whole."""
        try:
            one, other = (np.load(io.BytesIO(file)).astype(np.float64) for file in (data, whole))
        except (ValueError, EOFError):
            return np.inf
        return np.linalg.norm(one - other) / np.linalg.norm(other) if one.shape == other.shape else np.inf

    def is_whole(self, name, data, whole):
        return self.apart(data, whole[name]) <= 1e-6

    def same(self, one, other):
        return one.keys() == other.keys() and all(self.is_whole(name, one[name], other) for name in one)


class Tomography(Reconstruct):
    name, problem = "reconstruct-tomo2d", ("tomo2d", "--size", "128", "--angles", "24", "--iterations", "24")


VERBS = {verb.name: verb for verb in (Folder, Strips, Pieces, Fill, Detect, Train, Reconstruct, Tomography)}


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Trials:
    def __init__(self, bench, launcher, program, verb):
        self.bench, self.launcher, self.program, self.verb = bench, launcher, program, verb
        self.whole_folder = bench.path(f"{verb.name}-whole")
        self.whole_folder.mkdir()
        alone = bench.run(*verb.words(self.whole_folder))
        bench.check(alone.status == 0, f"{verb.name}: one rank: {alone}")
        self.whole = contents(self.whole_folder)
        self.lengths = {}
        self.count, self.missed, self.worst, self.early, self.hung = 0, 0, 0.0, 0, 0

    def length(self, ranks):
        """Seconds of the whole job, until its processes have ended."""
        if ranks not in self.lengths:
            folder = self.bench.path("length")
            folder.mkdir()
            begin = time.monotonic()
            status, out, err = self.launcher.run(ranks, self.program, *self.verb.words(folder), seconds=400)
            self.lengths[ranks] = time.monotonic() - begin
            self.bench.check(status == 0 and self.verb.same(contents(folder), self.whole), f"{self.verb.name}: {ranks} ranks: {status} {err[:300]}")
            shutil.rmtree(folder)
        return self.lengths[ranks]

    def strike(self, process, ranks, victim, how, delay):
        """The processes of the ranks; None if the job ended before."""
        begin, pids = time.monotonic(), {}
        while (len(pids) < ranks or time.monotonic() - begin < delay) and process.poll() is None and time.monotonic() - begin < 60:
            time.sleep(0.005)
            pids = pids if len(pids) == ranks else ranks_of(process.pid)
        if victim not in pids or not is_alive(pids[victim]) or process.poll() is not None:
            return None
        os.kill(pids[victim], how)
        return pids

    def has_hung(self, process, pids, how):
        """Whether mpirun alone is still there, as described above, `LIMIT` seconds after the strike."""
        try:
            process.wait(LIMIT)
            return False
        except subprocess.TimeoutExpired:
            return how == signal.SIGKILL and not any(map(is_alive, pids.values())) and HANGS in process.names[1].read_text()

    def check_files(self, folder, old, what):
        found = contents(folder)
        names = self.verb.outputs or self.whole
        broken = [n for n in found if n in names and not (found[n] == old.get(n) or self.verb.is_whole(n, found[n], self.whole))]
        self.bench.check(not broken, f"{what}: outputs that are neither absent nor whole nor the old ones: {broken}")
        strange = [n for n in found if n not in names and not n.startswith(("checkpoints", "config"))]
        self.bench.check(not strange, f"{what}: other files: {strange}")

    def one(self):
        """Returns False if the job ended before its time."""
        verb, bench = self.verb, self.bench
        ranks, how = random.choice((2, 3, 4)), random.choice((signal.SIGKILL, signal.SIGSTOP))
        victim, again = random.randrange(ranks), random.choice([n for n in (1, 2, 3, 4) if n != ranks])
        delay = random.uniform(*SPAN) * self.length(ranks)
        folder = bench.path(f"{verb.name}-{self.count}")
        folder.mkdir()
        old = {name: OLD for name in verb.outputs} if verb.outputs and not verb.resume and random.random() < 0.5 else {}
        for name in old:
            (folder / name).write_bytes(OLD)
        process = self.launcher.start(ranks, self.program, *verb.words(folder))
        pids = self.strike(process, ranks, victim, how, delay)
        begin = time.monotonic()
        hung = self.has_hung(process, pids or {}, how)
        took = time.monotonic() - begin
        status, out, err = self.launcher.end(process, 0)
        if pids is None:
            shutil.rmtree(folder)
            return False
        what = f"{verb.name}: {how.name} of rank {victim} of {ranks} after {delay:.2f} s"
        self.worst = max(self.worst, 0 if hung else took)
        self.hung += hung
        deadline = time.monotonic() + 5
        while any(map(is_alive, pids.values())) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [rank for rank, pid in pids.items() if is_alive(pid)]
        for rank in left:
            os.kill(pids[rank], signal.SIGKILL)
        whole = self.verb.same({k: v for k, v in contents(folder).items() if k in self.whole}, self.whole)
        self.early += status == 0
        bench.check(hung or (status is not None and (status != 0 or whole)), f"{what}: ended in {took:.1f} s, status {status}: {err[:700]}")
        bench.check(not left, f"{what}: the processes of ranks {left} are still there")
        bench.check(len(said(err)) <= 1 and (how == signal.SIGKILL or status == 0 or len(said(err)) == 1), f"{what}: one line: {said(err)} {err[:700]}")
        self.check_files(folder, old, what)
        for name in leftovers(folder):
            shutil.rmtree(folder / name, ignore_errors=True)
        status, out, err = self.launcher.run(again, self.program, *verb.words(folder), *(verb.resume if verb.name == "denoise-folder" else ()), seconds=400)
        made = {k: v for k, v in contents(folder).items() if k in self.whole}
        bench.check(status == 0 and self.verb.same(made, self.whole) and not leftovers(folder), f"{what}: {again} rank(s) go on: {status} {leftovers(folder)} {err[:500]}")
        shutil.rmtree(folder, ignore_errors=True)
        return True

    def run(self, count):
        while self.count < count and self.missed < 4 * count:
            if self.one():
                self.count += 1
            else:
                self.missed += 1
        self.bench.check(self.count == count, f"{self.verb.name}: {self.count} of {count} strikes came in time")
        print(f"{self.verb.name}: {self.count} strikes, the slowest end {self.worst:.1f} s, {self.early} came when the work was done, {self.missed} too late, mpirun hung after {self.hung}", flush=True)


def main():
    bench, launcher, program, tool = open_bench()
    count = int(sys.argv[4])
    if len(sys.argv) > 5:
        launcher.env["TESSERA_RANK_SECONDS"] = sys.argv[5]
    seed = os.environ.get("TESSERA_FAULT_SEED") or str(random.randrange(10**6))
    print(f"TESSERA_FAULT_SEED={seed}")
    random.seed(seed)
    begin = time.monotonic()
    has_gdal = bench.has_gdal()
    try:
        import osgeo  # noqa: F401
    except ImportError:
        has_gdal = False
    for name in sys.argv[6].split(",") if len(sys.argv) > 6 else VERBS:
        if name == "fill" and not has_gdal:
            print("fill: left out without GDAL and its Python module")
            continue
        Trials(bench, launcher, program, VERBS[name](bench)).run(count)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
