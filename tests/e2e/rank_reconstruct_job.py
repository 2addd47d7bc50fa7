"""rank_reconstruct_job.py: a reconstruction that one rank has done, to be done again by several, for the tests of ranks."""
import json
import os

import numpy as np

from rank_launcher import said
from support import dncnn, drunet, leftovers, write_safetensors

NEAR = 5e-6  # |one - many| / |one| for blurs by halos: strips are transformed at another length than the image, and deblurring amplifies this rounding: bench/studies/blur_ranks.py


class Job:
    """A reconstruction that one rank has done, to be done again by several."""

    def __init__(self, bench, launcher, program, problem, *words, close=0, shared=()):
        """`shared`: further words for several ranks."""
        self.bench, self.launcher, self.program, self.close, self.shared = bench, launcher, program, close, tuple(shared)
        self.words = ("--problem", problem, *words, "--threads", "1", "--json", bench.path("record.json"), "--quiet")
        self.name = f"{os.path.basename(str(problem))} {' '.join(os.path.basename(str(w)) for w in words)}"
        status, out, err = self.run(None)
        if bench.check(status == 0, f"one rank: {self.name}: {status} {err[:500]}"):
            self.record, self.results = self.read(), self.arrays()
            bench.check(all(a.any() for a in self.results), f"one rank: {self.name}: makes something")

    def outputs(self):
        names = [self.bench.path("out.npy"), self.bench.path("saved.npy"), self.bench.path("side.npy")]
        return names, (names[0], "--save-measurement", names[1], "--side-by-side", names[2])

    def run(self, ranks, *verb, env=None):
        names, words = self.outputs()
        for name in names:
            name.unlink(missing_ok=True)
        command = (*(verb or ("reconstruct",)), *words, *self.words)
        if ranks:
            return self.launcher.run(ranks, self.program, *command, *self.shared, env=env or {})
        done = self.bench.run(*command)
        return done.status, done.out, done.err

    def read(self):
        return json.loads(self.bench.path("record.json").read_text())

    def arrays(self):
        return [np.load(name).astype(np.float64) for name in self.outputs()[0]]

    def check(self, ranks, env=None):
        """With the tolerance of the way that the record names, if there is a choice."""
        bench = self.bench
        status, _, err = self.run(ranks, env=env)
        if not bench.check(status == 0 and not said(err), f"{ranks} ranks: {self.name}: {status} {err[:500]}"):
            return None
        record, results = self.read(), self.arrays()
        close = max(NEAR, self.close) if record["reconstruct"].get("blur_exchange", {}).get("way") == "halo" else self.close
        apart = [float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in zip(self.results, results)]
        bench.check(max(apart) <= close, f"{ranks} ranks: {self.name}: result, measurement and pictures differ by {apart}")
        own, alone = record["reconstruct"], self.record["reconstruct"]
        for key in self.record.get("quality", {}):
            bench.check(abs(record["quality"][key] - self.record["quality"][key]) <= max(1e-5, 10 * close), f"{ranks} ranks: {self.name}: {key} {record['quality']} {self.record['quality']}")
        curves = [[step.get("psnr_db", 0) for step in r["iterations"]] for r in (own, alone)]
        bench.check(np.allclose(*curves, rtol=max(1e-6, close)), f"{ranks} ranks: {self.name}: the same iterations: {curves}")
        bench.check(abs(own.get("baseline_psnr_db", 0) - alone.get("baseline_psnr_db", 0)) <= 1e-5 and own["stopped"] == alone["stopped"], f"{ranks} ranks: {self.name}: {own}")
        if ranks == 1:
            return record
        parts = own["parts"]
        unit = "slice" if "slices" in parts[0] else "row"
        ends = [part[f"first_{unit}"] for part in parts] + [record["input"]["depth" if unit == "slice" else "height"]]
        bench.check(len(parts) == ranks == record["ranks"] and ends[0] == 0 and all(b - a == p[f"{unit}s"] > 0 for a, b, p in zip(ends, ends[1:], parts)), f"{ranks} ranks: parts {parts}")
        bench.check(all(p["measured_bytes"] == p["planned_bytes"] for p in parts), f"{ranks} ranks: {self.name}: planned bytes are counted: {parts}")
        bench.check(record["plan"]["peak_bytes"]["total"] == max(p["planned_bytes"] for p in parts) == record["measured"]["peak_bytes"]["total"],
                    f"{ranks} ranks: {self.name}: the most of all: {record['plan']} {record['measured']}")
        bench.check(own["parts_reason"].startswith(f"{ranks} ranks have "), f"{ranks} ranks: reason: {own}")
        for key in ("range", "noise", "noise_estimate", "sigma", "step"):
            bench.check(np.allclose(own.get(key, 0), alone.get(key, 0), rtol=1e-5), f"{ranks} ranks: {self.name}: {key} {own.get(key)} {alone.get(key)}")
        bench.check(own.get("masked") == alone.get("masked"), f"{ranks} ranks: {self.name}: left out {own.get('masked')} {alone.get('masked')}")
        bench.check(not leftovers(bench.folder), f"{ranks} ranks: {self.name}: no temporary files")
        return record


def models(bench):
    """Networks of one channel: colours are denoised one by one. DRUNet's strips begin at multiples of 32 rows, DnCNN's of 12."""
    write_safetensors(bench.path("drunet.safetensors"), drunet(channels=1, widths=(32, 32, 32, 64)))
    write_safetensors(bench.path("dncnn.safetensors"), dncnn(channels=1, depth=3))
    return ("--model", bench.path("drunet.safetensors")), ("--model", bench.path("dncnn.safetensors"))
