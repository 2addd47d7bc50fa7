"""rank_job.py: one image that a single rank has denoised, and that several ranks share, under a real mpirun: for the tests of strips and of blocks."""
import json

import numpy as np

from rank_launcher import said
from support import dncnn, drunet, leftovers, picture, to_integers, unet, write_png, write_safetensors

SHARED = ("seconds", "rank", "strips", "blocks", "rows_of_tiles", "idle_ranks")  # what may depend on the ranks
SMALL = (32, 32, 32, 64)


def entry(record):
    return {k: v for k, v in record["denoise"]["files"][0].items() if k not in SHARED}


class Job:
    """A job that one rank has done, to be done again by several."""

    def __init__(self, bench, launcher, program, source, target, *words):
        self.bench, self.launcher, self.program, self.target = bench, launcher, program, target
        self.words = (bench.path(source), *words, "--threads", "1", "--json", bench.path("record.json"))
        self.name = f"{source} {target} {' '.join(str(w) for w in words)}"
        folder = bench.path("one")
        folder.mkdir(exist_ok=True)
        alone = bench.run("denoise", self.words[0], folder / target, *self.words[1:])
        bench.check(alone.status == 0, f"one rank: {self.name}: {alone}")
        self.record, self.result = self.read(), (folder / target).read_bytes()
        self.notes = [line.replace("one/", "") for line in said(alone.err)]

    def read(self):
        return json.loads(self.bench.path("record.json").read_text())

    def check(self, ranks, kind="strips", grid=None, speeds=None):
        """The record of `ranks` ranks, whose parts are of one kind; None: strips or blocks, whatever is faster. `grid`: rows and columns of blocks; `speeds`: of the ranks."""
        bench, output = self.bench, self.bench.path(self.target)
        output.unlink(missing_ok=True)
        env = {"TESSERA_GRID": "x".join(map(str, grid))} if grid else {}
        if speeds:
            env["TESSERA_SPEEDS"] = speeds
        status, out, err = self.launcher.run(ranks, self.program, "denoise", self.words[0], output, *self.words[1:], env=env)
        if not bench.check(status == 0, f"{ranks} ranks: {self.name}: {status} {err[:500]}"):
            return None
        record = self.read()
        file = record["denoise"]["files"][0]
        kind = kind or ("blocks" if "blocks" in file else "strips")
        parts = file.get(kind, [])
        rows = sorted({part["first_row"] for part in parts}) + [file["height"]]
        columns = sorted({part.get("first_column", 0) for part in parts}) + [file["width"]]
        bench.check(output.read_bytes() == self.result, f"{ranks} ranks: {self.name}: the same bytes")
        bench.check(entry(record) == entry(self.record) and record.get("quality") == self.record.get("quality"),
                    f"{ranks} ranks: {self.name}: the same record: {entry(record)} {entry(self.record)}")
        expected = [(y, to_y - y, x, to_x - x) for y, to_y in zip(rows, rows[1:]) for x, to_x in zip(columns, columns[1:])]
        found = [(part["first_row"], part["rows"], part.get("first_column", 0), part.get("columns", file["width"])) for part in parts]
        bench.check(len(parts) + file["idle_ranks"] == ranks == record["ranks"] and found == expected and (len(columns) > 2) == (kind == "blocks")
                    and (not grid or tuple(grid) == (len(rows) - 1, len(columns) - 1)), f"{ranks} ranks: {self.name}: parts {parts}")
        bench.check(all(0 < part["measured_bytes"] <= part["planned_bytes"] for part in parts), f"{ranks} ranks: {self.name}: planned bytes of each: {parts}")
        bench.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"{ranks} ranks: {self.name}: counted as planned")
        notes = [line.replace(str(bench.folder) + "/", "") for line in said(err) if "nothing to do" not in line]
        mine = [line.replace(str(bench.folder) + "/", "") for line in self.notes]
        bench.check(notes == mine, f"{ranks} ranks: {self.name}: the same notes: {notes} {mine}")
        bench.check(not leftovers(bench.folder), f"{ranks} ranks: {self.name}: no temporary files")
        return record


def make_inputs(bench):
    rng = np.random.default_rng(7)
    clean = picture(207, 90)
    noisy = clean + rng.normal(0, 0.05, clean.shape)
    holes = (noisy[..., 0] * 4000).astype(np.float32)
    holes[40:150, 20:60] = holes[::7, ::5] = holes[:, 80] = np.nan
    ramp = np.linspace(0.02, 0.9, 96)[None] * np.ones((207, 1)) * (0.7 + 0.3 * np.linspace(0, 1, 207)[:, None])
    arrays = {"u8": to_integers(noisy, np.uint8), "f32": (noisy * 4000 + 100).astype(np.float32), "holes": holes, "clean": to_integers(clean, np.uint8),
              "exposures": np.stack([noisy[..., 0] * s for s in (1, 0.01, 10, 1, 0.1)]).astype(np.float32), "bands": np.repeat(noisy, 6, 2).astype(np.float32),
              "volume": np.stack([noisy[..., 0] * s for s in (1, 0.8, 0.6, 0.5, 0.4)]).astype(np.float32), "planes": to_integers(noisy, np.uint8).transpose(2, 0, 1),
              "levels": (0.02 + 0.1 * clean[..., 1]).astype(np.float32), "photons": np.float32(rng.poisson(ramp * 100) / 100),
              "low": to_integers(noisy[:50], np.uint8), "odd": to_integers(noisy[:131, :67], np.uint8)}
    for name, array in arrays.items():
        np.save(bench.path(f"{name}.npy"), array)
    alpha = np.linspace(0, 1, clean[..., :1].size).reshape(clean.shape[:2] + (1,))
    write_png(bench.path("alpha.png"), to_integers(np.concatenate([noisy, alpha], 2), np.uint8))
    for name, weights in (("drunet", drunet(widths=SMALL)), ("unet", unet(widths=SMALL)), ("dncnn", dncnn(depth=4))):
        write_safetensors(bench.path(f"{name}.safetensors"), weights)
    write_safetensors(bench.path("gray.safetensors"), drunet(channels=1, widths=SMALL))
