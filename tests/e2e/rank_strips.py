"""rank_strips.py PROGRAM DIST_TOOL MODULE bits|whole|faults: one image that several ranks share, under a real mpirun. The result is that of one rank, byte for
byte; the memory of a rank is its strip's, and what was planned. Skips without mpirun or without the MPI module."""
import json
import os
import shutil
import signal
import sys
import time

import numpy as np

from rank_job import Job, entry, make_inputs
from rank_launcher import open_bench, ranks_of, said
from support import leftovers, picture, to_integers, write_png

def check_models(job, bench):
    """Every network with any number of ranks, heights that end inside of a step, and fewer strips or blocks than ranks."""
    for model in ("dncnn", "unet", "drunet"):
        for source, counts in (("u8.npy", (2, 3, 4, 6, 7)), ("odd.npy", (3,)), ("low.npy", (7,))):
            one = job(source, "out.npy", "--model", bench.path(f"{model}.safetensors"))
            for ranks in counts:
                record = one.check(ranks, None)
                if source == "low.npy" and model == "drunet" and record:
                    file = record["denoise"]["files"][0]
                    bench.check(file["idle_ranks"] == 1 and len(file["blocks"]) == 6 and "the other 1 have nothing to do" in record["plan"]["reason"],
                                f"idle ranks: {file} {record['plan']}")


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
        one.check(ranks, "strips", (ranks, 1))


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
        status, printed, err = launcher.run(3, "sh", script, *words, "--quiet", env={"ONE": str(other), "OTHERS": str(models), "TESSERA_GRID": "3x1"})
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
    for how, words, grid in ((signal.SIGINT, (), "3x1"), (signal.SIGINT, (), "1x3"), (signal.SIGINT, ("--tile", "128"), "3x1"), (signal.SIGKILL, (), "3x1"), (signal.SIGKILL, (), "1x3")):
        output = bench.path("stopped.npy")
        process = launcher.start(3, program, "denoise", bench.path("long.npy"), output, "--sigma", "0.1", "--threads", "1", "--quiet", *words, env={"TESSERA_GRID": grid})
        deadline, pids = time.monotonic() + 30, {}
        while (len(pids) < 3 or not leftovers(bench.folder)) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
            pids = ranks_of(process.pid)
        time.sleep(0.3)
        bench.check(len(pids) == 3 and process.poll() is None, f"{how.name} {words} {grid}: the job runs")
        if process.poll() is None:
            os.kill(pids[2], how)
        status, out, err = launcher.end(process, 60)
        bench.check(status not in (0, None) and ("stopped" in err if how == signal.SIGINT else "rank 2" in err), f"{how.name} {words} {grid}: {status} {err[:500]}")
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
