"""rank_strips.py PROGRAM DIST_TOOL MODULE bits|whole|faults: one image that several ranks share, under a real mpirun. The result is that of one rank, byte for
byte; the memory of a rank is its strip's, and what was planned. Skips without mpirun or without the MPI module."""
import json
import os
import shutil
import signal
import sys
import time

import numpy as np

from rank_launcher import open_bench, ranks_of, said
from support import dncnn, drunet, leftovers, picture, to_integers, unet, write_png, write_safetensors

SHARED = ("seconds", "rank", "strips", "rows_of_tiles", "idle_ranks")  # what may depend on the ranks
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

    def check(self, ranks, kind="strips"):
        """The record of `ranks` ranks."""
        bench, output = self.bench, self.bench.path(self.target)
        output.unlink(missing_ok=True)
        status, out, err = self.launcher.run(ranks, self.program, "denoise", self.words[0], output, *self.words[1:])
        if not bench.check(status == 0, f"{ranks} ranks: {self.name}: {status} {err[:500]}"):
            return None
        record = self.read()
        file = record["denoise"]["files"][0]
        parts = file.get(kind, [])
        rows = [part["first_row"] for part in parts] + [file["height"]]
        bench.check(output.read_bytes() == self.result, f"{ranks} ranks: {self.name}: the same bytes")
        bench.check(entry(record) == entry(self.record) and record.get("quality") == self.record.get("quality"),
                    f"{ranks} ranks: {self.name}: the same record: {entry(record)} {entry(self.record)}")
        bench.check(len(parts) + file["idle_ranks"] == ranks == record["ranks"] and rows[0] == 0 and sorted(set(rows)) == rows
                    and all(b - a == part["rows"] for a, b, part in zip(rows, rows[1:], parts)), f"{ranks} ranks: {self.name}: parts {parts}")
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


def check_models(job, bench):
    """Every network with any number of ranks, heights that end inside of a step, and fewer strips than ranks."""
    for model in ("dncnn", "unet", "drunet"):
        for source, counts in (("u8.npy", (2, 4, 7)), ("odd.npy", (3,)), ("low.npy", (6,))):
            one = job(source, "out.npy", "--model", bench.path(f"{model}.safetensors"))
            for ranks in counts:
                record = one.check(ranks)
                if source == "low.npy" and model == "drunet" and record:
                    file = record["denoise"]["files"][0]
                    bench.check(file["idle_ranks"] == 4 and "the other 4 have nothing to do" in record["plan"]["reason"], f"idle ranks: {file} {record['plan']}")


def check_features(job, bench):
    """What needs the whole image, or rows around a strip, or a format that one process writes."""
    gray, colour = ("--model", bench.path("gray.safetensors")), ("--model", bench.path("drunet.safetensors"))
    truth = ("--truth", bench.path("clean.npy"))
    for source, target, words, ranks in (
            ("u8.npy", "out.png", (*colour, *truth), 3), ("u8.npy", "out.npy", (*colour, "--sigma", "0.1", *truth), 2), ("u8.npy", "out.npy", (*gray, "--add-noise", "0.1"), 3),
            ("f32.npy", "out.npy", colour, 4), ("f32.npy", "out.png", (*colour, "--dither"), 3), ("holes.npy", "out.npy", (*gray, "--sigma", "0.05", "--range", "0,4000"), 4),
            ("holes.npy", "out.png", (*gray, "--sigma", "0.05", "--range", "0,4000"), 3), ("photons.npy", "out.npy", gray, 4), ("photons.npy", "out.png", gray, 3),
            ("volume.npy", "out.npy", (*gray, "--axes", "DHW"), 3), ("planes.npy", "out.npy", (*colour, "--axes", "CHW"), 3),
            ("exposures.npy", "out.npy", (*gray, "--axes", "DHW"), 3), ("bands.npy", "out.npy", (*gray, "--axes", "HWC"), 3), ("alpha.png", "out.png", colour, 4),
            ("u8.npy", "out.npy", (*colour, "--sigma", bench.path("levels.npy"), "--strength", "0.7"), 3)):
        one = job(source, target, *words)
        bench.check(source != "photons.npy" or entry(one.record)["levels"] == "by brightness", f"{source}: levels {entry(one.record)}")
        one.check(ranks)


def check_tiles(job, bench):
    """Tiles are those of one rank: where they are asked for, and where a strip does not fit."""
    colour, gray = ("--model", bench.path("drunet.safetensors"), "--sigma", "0.1"), ("--model", bench.path("gray.safetensors"))
    for source, target, words, ranks in (
            ("u8.npy", "out.npy", (*colour, "--tile", "40"), 3), ("u8.npy", "out.png", (*colour, "--tile", "40x30", "--truth", bench.path("clean.npy")), 2),
            ("holes.npy", "out.npy", (*gray, "--sigma", "0.05", "--range", "0,4000", "--tile", "40"), 4), ("photons.npy", "out.png", (*gray, "--tile", "40"), 3),
            ("volume.npy", "out.npy", (*gray, "--axes", "DHW", "--tile", "40"), 3)):
        job(source, target, *words).check(ranks, "rows_of_tiles")
    np.save(bench.path("wide.npy"), to_integers(picture(260, 700), np.uint8))
    dncnn_words = ("--model", bench.path("dncnn.safetensors"), "--memory", "14M")
    one = job("wide.npy", "out.npy", *dncnn_words)
    bench.check(one.record["plan"]["tiles"] > 1, f"one rank cuts it: {one.record['plan']}")
    one.check(2, "rows_of_tiles")


def check_memory(bench, launcher, program):
    """A strip of a fourth of the rows needs about a fourth of the activations, and `plan` says the same as the run."""
    activations = {}
    for ranks in (1, 2, 4):
        words = (bench.path("tall.npy"), bench.path("tall-out.npy"), "--model", bench.path("drunet.safetensors"), "--sigma", "0.1", "--threads", "1", "--json", "-", "--quiet")
        np.save(words[0], to_integers(picture(1024, 64), np.uint8))
        plans = []
        for verb in (("denoise",), ("plan", "denoise")):
            status, out, err = launcher.run(ranks, program, *verb, *words)
            bench.check(status == 0 and not said(err), f"{verb} with {ranks} ranks: {status} {err[:300]}")
            plans.append(json.loads(out))
        done, planned = plans
        bench.check(done["plan"]["peak_bytes"] == planned["plan"]["peak_bytes"] == done["measured"]["peak_bytes"], f"{ranks} ranks: plan {planned['plan']} and run {done['plan']}")
        activations[ranks] = planned["plan"]["peak_bytes"]["activations"]
    bench.check(activations[2] < 0.54 * activations[1] and activations[4] < 0.29 * activations[1], f"activations of a rank: {activations}")


def check_refusals(bench, launcher, program):
    """One line, and nothing is written. The descriptor 9 of rank 1 is another folder than that of the others."""
    script, other, out = bench.path("rank.sh"), bench.path("other"), bench.path("x.npy")
    models = bench.path("models")
    script.write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec 9<"$ONE"; else exec 9<"$OTHERS"; fi\nexec {program} "$@"\n')
    other.mkdir()
    models.mkdir()
    shutil.copy(bench.path("drunet.safetensors"), models)
    image, nine = bench.path("u8.npy"), "/proc/self/fd/9"
    broken = bench.path("broken.png")
    write_png(broken, to_integers(picture(200, 60), np.uint8))
    broken.write_bytes(broken.read_bytes()[:-3000])
    for expected, says, words in (
            (1, "rank 1: /proc/self/fd/9/drunet.safetensors", ("denoise", image, out, "--model", nine + "/drunet.safetensors")),
            (1, "rank 1: /proc/self/fd/9/x.npy", ("denoise", image, nine + "/x.npy", "--model", bench.path("drunet.safetensors"))),
            (1, "broken.png", ("denoise", broken, out, "--model", bench.path("drunet.safetensors"), "--sigma", "0.1")),
            (1, "is too little", ("denoise", image, out, "--model", bench.path("drunet.safetensors"), "--memory", "6M")),
            (2, "--tile", ("denoise", image, out, "--tile", "-3"))):
        status, printed, err = launcher.run(3, "sh", script, *words, "--quiet", env={"ONE": str(other), "OTHERS": str(models)})
        lines = said(err)
        bench.check(status == expected and printed == "" and len(lines) == 1 and says in lines[0], f"{says}: {status} {printed} {err[:500]}")
        bench.check(not out.exists() and not any(other.iterdir()) and not leftovers(bench.folder) and not (models / "x.npy").exists(), f"{says}: writes nothing")


def check_trace(bench, launcher, program):
    """One file has the spans of all ranks."""
    outputs = [bench.path(name) for name in ("plain.npy", "traced.npy")]
    for output, options in zip(outputs, ((), ("--trace", bench.path("trace.json")))):
        status, _, err = launcher.run(3, program, "denoise", bench.path("u8.npy"), output, "--model", bench.path("drunet.safetensors"), "--sigma", "0.1",
                                      "--threads", "1", "--quiet", *options)
        bench.check(status == 0, f"3 ranks, {options}: {status} {err[:500]}")
    bench.check(outputs[0].read_bytes() == outputs[1].read_bytes(), "3 ranks: the same bytes with a trace")
    trace = json.loads(bench.path("trace.json").read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    layers = [{s["name"] for s in spans if s["pid"] == rank and s["cat"] == "op"} for rank in range(3)]
    bench.check(trace["otherData"]["ranks"] == 3 and len(layers[0]) > 4 and layers[0] == layers[1] == layers[2], f"the layers of each rank: {layers[0]}")
    bench.check(all(any(s["pid"] == rank and s["cat"] == "exchange" and s["name"] == "wait for rows" for s in spans) for rank in range(3)),
                "each rank waits for rows of its neighbours")
    jobs = [s for s in spans if s["cat"] == "job"]
    bench.check(len(jobs) == 3 and max(s["ts"] for s in jobs) < min(s["ts"] + s["dur"] for s in jobs), f"the ranks ran at the same time: {jobs}")


def check_stop(bench, launcher, program):
    """A rank that is asked to stop does not leave the others waiting, whatever it does; a lost rank ends the job."""
    np.save(bench.path("long.npy"), to_integers(picture(1100, 400), np.uint8))
    for how, words in ((signal.SIGINT, ()), (signal.SIGINT, ("--tile", "128")), (signal.SIGKILL, ())):
        output = bench.path("stopped.npy")
        process = launcher.start(3, program, "denoise", bench.path("long.npy"), output, "--sigma", "0.1", "--threads", "1", "--quiet", *words)
        deadline, pids = time.monotonic() + 30, {}
        while (len(pids) < 3 or not leftovers(bench.folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(0.3)
        bench.check(len(pids) == 3 and process.poll() is None, f"{how.name} {words}: the job runs")
        if process.poll() is None:
            os.kill(pids[2], how)
        status, out, err = launcher.end(process, 60)
        bench.check(status not in (0, None) and ("stopped" in err if how == signal.SIGINT else "rank 2" in err), f"{how.name} {words}: {status} {err[:500]}")
        bench.check(not output.exists(), f"{how.name}: no half-written output")
        if how == signal.SIGINT:
            bench.check(not leftovers(bench.folder), f"{how.name} {words}: no temporary file")


def main():
    bench, launcher, program, _ = open_bench()
    begin = time.monotonic()
    make_inputs(bench)

    def job(*words):
        return Job(bench, launcher, program, *words)

    parts = {"bits": lambda: (check_models(job, bench), check_memory(bench, launcher, program)),
             "whole": lambda: (check_features(job, bench), check_tiles(job, bench)),
             "faults": lambda: (check_trace(bench, launcher, program), check_refusals(bench, launcher, program),
                                check_stop(bench, launcher, program))}
    parts[sys.argv[4]]()
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
