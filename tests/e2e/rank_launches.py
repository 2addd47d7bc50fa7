"""rank_launches.py PROGRAM DIST_TOOL MODULE: launches that cannot work, for every verb that ranks share, under a real mpirun: one rank has no input, another input, no model, another
model, an output that cannot be written, or another program. Each ends with one line and status 1, writes nothing, and does not hang. More ranks than rows work: some
are idle. Skips without mpirun or without the MPI module."""
import json
import pathlib
import shutil
import time

import numpy as np

from rank_launcher import open_bench, said
from support import dncnn, leftovers, picture, to_integers, write_config, write_png, write_safetensors

NINE = "/proc/self/fd/9"  # a folder: one rank has another one than the others


class Verb:
    """A job whose input, model and output lie in the folders `input`, `model` and `output`, which need not be the same on all ranks."""
    name, source, model, target, writers = "", "in.npy", "net.safetensors", "out.npy", (0, 1)

    def make(self, folder, seed):
        """Input and model; another seed gives others of the same size."""
        np.save(folder / self.source, to_integers(picture(200, 60, 3, seed), np.uint8))
        write_safetensors(folder / self.model, dncnn(depth=3, seed=seed))

    def words(self, input, model, output, home):
        return "denoise", f"{input}/{self.source}", f"{output}/{self.target}", "--model", f"{model}/{self.model}", "--sigma", "0.1"


class Strips(Verb):
    name = "denoise"


class Folder(Verb):
    name, source, target = "denoise-folder", "in", "out"

    def make(self, folder, seed):
        (folder / "in").mkdir()
        for i in range(5):
            np.save(folder / "in" / f"{i}.npy", to_integers(picture(60, 60 + i, 3, seed), np.uint8))
        write_safetensors(folder / self.model, dncnn(depth=3, seed=seed))


class Fill(Verb):
    name, source, target = "fill", "in.tif", "out.tif"

    def make(self, folder, seed):
        from fill import NODATA, heights, model_weights, save
        z = heights(150, 150) + seed
        z[40:60, 30:70] = NODATA
        save(folder / self.source, z, options=("TILED=YES",))
        weights = model_weights()
        first = next(iter(weights))
        weights[first] = weights[first] + np.float32(0.01 * seed)
        write_safetensors(folder / self.model, weights)

    def words(self, input, model, output, home):
        return "fill", f"{input}/{self.source}", f"{output}/{self.target}", "--model", f"{model}/{self.model}", "--steps", "3", "--tile", "64", "--overlap", "8"


class Detect(Verb):
    name, model, writers = "detect", "graph.json", (0,)

    def make(self, folder, seed):
        np.save(folder / self.source, np.random.default_rng(seed).integers(0, 255, (3000, 1024, 8), np.uint8))
        (folder / self.model).write_text(json.dumps({"nodes": [{"kind": "minmax"}, {"kind": "rx", "eps": 1e-6 * seed}]}))

    def words(self, input, model, output, home):
        return "detect", f"{input}/{self.source}", f"{output}/{self.target}", "--pipeline", f"{model}/{self.model}"


class Train(Verb):
    name, source, target, writers = "train", "images", "out.safetensors", (0,)

    def make(self, folder, seed):
        (folder / "images").mkdir()
        for i in range(3):
            image = to_integers(picture(56, 64, 3, seed + i) * 0.8, np.uint8)
            write_png(folder / "images" / f"{i}.png", image, level=0)
        write_safetensors(folder / self.model, dncnn(depth=3, seed=seed))

    def words(self, input, model, output, home):
        keys = {"network": {"weights": f"{model}/{self.model}"}, "data": {"folders": [f"{input}/images"], "crop": 16, "sigma": 0.1}, "batch": 4, "steps": 3,
                "output": f"{output}/{self.target}", "checkpoint": {"every": 2, "folder": f"{output}/checkpoints"}, "precision": "fp32"}
        return "train", write_config(home / "config.json", keys, {})


class Launches:
    def __init__(self, bench, launcher, program, verb):
        self.bench, self.launcher, self.program, self.verb = bench, launcher, program, verb
        self.home = bench.path(verb.name)
        self.good, self.other, self.empty, self.out = (self.home / name for name in ("good", "other", "empty", "out"))
        for folder in (self.good, self.other, self.empty, self.out):
            folder.mkdir(parents=True)
        verb.make(self.good, 1)
        verb.make(self.other, 2)
        self.script = self.home / "rank.sh"
        self.script.write_text('if [ "$OMPI_COMM_WORLD_RANK" = "$ODD" ]; then exec 9<"$ONE"; program=$ODD_PROGRAM; else exec 9<"$OTHERS"; fi\nexec "${program:-' + program + '}" "$@"\n')

    def run(self, words, odd=1, one="/", others="/", program="", ranks=3):
        for folder in (self.out, self.empty):
            shutil.rmtree(folder)
            folder.mkdir()
        begin = time.monotonic()
        status, out, err = self.launcher.run(ranks, "sh", self.script, *words, "--device", "cpu", "--threads", "1", "--quiet", seconds=30,
                                             env={"ODD": str(odd), "ONE": str(one), "OTHERS": str(others), "ODD_PROGRAM": str(program)})
        return status, out, err, time.monotonic() - begin

    def refused(self, what, says, words, **launch):
        status, out, err, took = self.run(words, **launch)
        lines, name = said(err), f"{self.verb.name}: {what} on rank {launch.get('odd', 1)}"
        good = status == 1 and out == "" and len(lines) == 1 and says in lines[0]
        self.bench.check(good, f"{name}: {lines[0][:90] if good else (status, out, err[:500])} ({took:.1f} s)")
        left = [str(p) for folder in (self.out, self.empty, self.good) for p in folder.rglob("*") if p.name.startswith((self.verb.target, "checkpoint")) or ".tmp" in p.name]
        self.bench.check(not [p for p in left if pathlib.Path(p).is_file()], f"{name}: writes nothing: {left}")

    def check_odd_files(self):
        """What one rank sees is not what the others see."""
        verb = self.verb
        for odd in (0, 1):
            for what, says, one in (("no input", "rank", self.empty), ("another input", "rank", self.other)):
                self.refused(what, says, verb.words(NINE, self.good, self.out, self.home), odd=odd, one=one, others=self.good)
            for what, says, one in (("no model", f"rank {odd}: ", self.empty), ("another model", "rank", self.other)):
                self.refused(what, says, verb.words(self.good, NINE, self.out, self.home), odd=odd, one=one, others=self.good)

    def check_outputs(self):
        """/proc is a folder in which nobody can write; a rank that writes nothing need not."""
        for odd in (0, 1):
            words = self.verb.words(self.good, self.good, NINE, self.home)
            if odd in self.verb.writers:
                self.refused("an output that cannot be written", "/proc/self/fd/9/", words, odd=odd, one="/proc", others=self.out)
            else:
                status, out, err, took = self.run(words, odd=odd, one="/proc", others=self.out)
                self.bench.check(status == 0 and not said(err), f"{self.verb.name}: rank {odd} writes nothing, and cannot: {status} {err[:300]} ({took:.1f} s)")

    def check_programs(self, programs):
        words = self.verb.words(self.good, self.good, self.out, self.home)
        for what, says, program in programs:
            self.refused(what, says, words, program=program)

    def check(self, programs):
        status, out, err, took = self.run(self.verb.words(self.good, self.good, self.out, self.home))
        self.bench.check(status == 0 and not said(err), f"{self.verb.name}: works where all is well: {status} {err[:500]} ({took:.1f} s)")
        self.check_odd_files()
        self.check_outputs()
        self.check_programs(programs)


def make_programs(bench, program):
    """Programs of another version, and of another build of the same size: only a constant differs."""
    data = pathlib.Path(program).read_bytes()
    version = bench.run("--version").out.strip()
    made = []
    for what, says, old, new in (("another version", "another version", version.encode() + b"\0", version[:-1].encode() + b"9\0"), ("another build", "another build", b"", b"")):
        path = bench.path(what.replace(" ", "-"))
        text = data.replace(old, new) if old else change_build(data)
        if text is None or text == data:
            continue
        path.write_bytes(text)
        path.chmod(0o755)
        made.append((what, says, path))
    return made


def change_build(data):
    """The program with another build identity (the note that linkers write); None without one."""
    at = data.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    return None if at < 0 else data[:at + 16] + bytes(255 - b for b in data[at + 16:at + 36]) + data[at + 36:]


def check_many_ranks(bench, launcher, program):
    """More ranks than blocks of an image, files, tiles or blocks: some have nothing to do, and a note says so; a batch cannot be shared so."""
    net = write_safetensors(bench.path("net.safetensors"), dncnn(depth=3))
    np.save(bench.path("five.npy"), to_integers(picture(5, 12), np.uint8))
    words = ("denoise", bench.path("five.npy"), bench.path("five-out.npy"), "--model", net, "--threads", "1")
    bench.check(bench.run(*words[:2], bench.path("five-one.npy"), *words[3:], "--quiet").status == 0, "five rows, one rank")
    status, out, err = launcher.run(7, program, *words)
    same = status == 0 and bench.path("five-out.npy").read_bytes() == bench.path("five-one.npy").read_bytes()
    bench.check(same and len(said(err)) == 1 and "nothing to do" in said(err)[0], f"7 ranks, 5 rows of 12 pixels: {status} {err[:500]}")
    np.save(bench.path("cube.npy"), np.random.default_rng(1).integers(0, 255, (4, 30, 8), np.uint8))
    status, out, err = launcher.run(7, program, "detect", bench.path("cube.npy"), bench.path("scores.npy"), "--threads", "1")
    bench.check(status == 0 and len([line for line in said(err) if "nothing to do" in line]) == 1 and bench.path("scores.npy").exists(), f"7 ranks, a cube of 4 rows: {status} {err[:500]}")


def main():
    bench, launcher, program, tool = open_bench()
    begin = time.monotonic()
    has_gdal = bench.has_gdal()
    try:
        import osgeo  # noqa: F401
    except ImportError:
        has_gdal = False
    check_many_ranks(bench, launcher, program)
    programs = make_programs(bench, program)
    bench.check(len(programs) == 2, f"other programs: {[p[0] for p in programs]}")
    for verb in (Strips(), Folder(), Fill(), Detect(), Train()):
        if verb.name == "fill" and not has_gdal:
            print("fill: left out without GDAL and its Python module")
            continue
        Launches(bench, launcher, program, verb).check(programs)
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
