"""rank_train.py PROGRAM DIST_TOOL MODULE curves|stops [DEVICE]: training that several ranks share, under a real mpirun. Skips without mpirun or
without the MPI module.

The loss of every step is that of one rank, for ranks that divide the batch and for those that do not; a run goes on with another
number of ranks after it was stopped by a signal to one of them, or after one of them was killed.
"""
import json
import os
import random
import signal
import sys
import time

import numpy as np

from rank_launcher import open_bench, ranks_of, said
from support import leftovers, picture, read_safetensors, to_integers, write_config, write_png
from tiff import write_tiff as save_map

DRUNET = {"architecture": "drunet", "widths": [8, 8, 16, 16], "blocks": 1}
DNCNN = {"architecture": "dncnn", "widths": [16], "depth": 5}
DEVICE = sys.argv[5] if len(sys.argv) > 5 else "cpu"
CLOSE = 1e-5
SLOW = {"rate": 1e-5}  # rounding grows from step to step where a ReLU changes its side


def make_images(bench):
    for name, seeds in (("images", range(4)), ("held", range(20, 22))):
        bench.path(name).mkdir()
        for seed in seeds:
            write_png(bench.path(name) / f"{seed}.png", to_integers(picture(56, 64, 3, seed) * 0.8, np.uint8))


def config(bench, name, **changes):
    keys = {"network": DNCNN, "data": {"folders": ["images"], "crop": 16, "sigma": 0.1}, "batch": 8, "steps": 20,
            "optimizer": {"rate": 1e-4}, "average": 0.9, "output": f"{name}.safetensors", "checkpoint": {"every": 7},
            "device": DEVICE, "precision": "fp32", "log": f"{name}.log"}
    return write_config(bench.path(f"{name}.json"), keys, changes)


def curve(bench, name):
    """{step: {figure: value}} of the log."""
    lines = [json.loads(line) for line in bench.path(f"{name}.log").read_text().splitlines()]
    found = {}
    for line in lines:
        found.setdefault(line["step"], {}).update({k: line[k] for k in ("loss", "gradient_norm", "psnr_db") if k in line})
    return found


def far(one, other):
    """The largest relative difference of two curves; infinite if they have other steps or figures. Norms may differ by a hundred times
    as much: they follow a few values on one side of a ReLU or the other."""
    if one.keys() != other.keys() or any(one[s].keys() != other[s].keys() for s in one):
        return float("inf")
    return max(abs(one[s][k] - other[s][k]) / abs(one[s][k]) / (100 if k == "gradient_norm" else 1) for s in one for k in one[s])


def train(launcher, program, bench, ranks, name, *options, env=None, **changes):
    path, record = config(bench, name, **changes), bench.path(f"{name}.record")
    status, out, err = launcher.run(ranks, program, "train", path, "--threads", "1", "--json", record, *options, env=env)
    made = json.loads(record.read_text()) if status == 0 else None
    bench.check(status == 0 and out.count("measured") == 1, f"{name}: {status} {out} {err[:600]}")
    return made


def compare(bench, name, other, limit=CLOSE):
    distance = far(curve(bench, name), curve(bench, other))
    bench.check(distance <= limit, f"{other} has the losses of {name}: {distance:.1e}")
    one, two = (read_safetensors(bench.path(f"{n}.safetensors")) for n in (name, other))
    weights = max(np.abs(one[k] - two[k]).max() for k in one)
    bench.check(one.keys() == two.keys() and weights < 100 * limit, f"{other} has the weights of {name}: {weights:.1e}")
    return all(np.array_equal(one[k].view(np.uint32), two[k].view(np.uint32)) for k in one)


# --- curves ---------------------------------------------------------------------------------------------------------

def check_curves(bench, launcher, program):
    """Figures of all steps, with parts of one size and of several; crops that one rank computes are those that it draws."""
    validated = {"validation": {"folder": "held", "every": 10}}
    for network, changes in (("dncnn", {"network": DNCNN, **validated}), ("drunet", {"network": DRUNET, "loss": {"kind": "rmse"}, "optimizer": {"rate": 1e-4, "clip": 0.05}})):
        train(launcher, program, bench, 1, network, **changes)
        for ranks in (2, 3):
            name = f"{network}{ranks}"
            record = train(launcher, program, bench, ranks, name, **changes)
            compare(bench, network, name)
            parts = record["train"]["parts"]
            bench.check(record["ranks"] == ranks and [p["first"] for p in parts] == [8 * r // ranks for r in range(ranks)] and sum(p["crops"] for p in parts) == 8,
                        f"{name}: the ranks share the batch: {parts}")
            bench.check(DEVICE != "cpu" or all(p["measured_bytes"] <= p["planned_bytes"] <= 1.01 * p["measured_bytes"] + (128 << 10) for p in parts[1:]), f"{name}: memory of the ranks: {parts}")
            bench.check(record["plan"]["peak_bytes"]["total"] == max(p["planned_bytes"] for p in parts), f"{name}: the plan is that of the largest part")
    train(launcher, program, bench, 2, "copied", env={"TESSERA_QUEUE": "1"}, network=DNCNN, **validated)
    bench.check(compare(bench, "dncnn2", "copied"), "gradients that are copied between memories have the same bits")


def check_parts(bench, launcher, program):
    """Micro-batches are shared as they are, so that batch norm takes the same statistics."""
    for name, changes in (("plain", {"network": DRUNET}), ("norms", {"network": {**DNCNN, "norm": "batch"}})):
        changes["micro_batches"] = 4
        train(launcher, program, bench, 1, name, **changes)
        for ranks in (2, 3, 4):
            record = train(launcher, program, bench, ranks, f"{name}{ranks}", **changes)
            bench.check([p["micro_batches"] for p in record["train"]["parts"]] == {2: [2, 2], 3: [1, 1, 2], 4: [1, 1, 1, 1]}[ranks], f"{name}: micro-batches of {ranks} ranks")
            distance = far(curve(bench, name), curve(bench, f"{name}{ranks}"))
            bench.check(distance <= CLOSE, f"{name}: {ranks} ranks share micro-batches: {distance:.1e}")
    compare(bench, "plain", "plain4")


def check_maps(bench, launcher, program):
    """Dropout and the samples that are made of one crop go by the place in the batch; each rank has one micro-batch."""
    bench.path("maps").mkdir()
    y, x = np.mgrid[0:80, 0:90]
    for seed in range(2):
        save_map(bench.path("maps") / f"{seed}.tif", (300 + 40 * np.sin(x / (7 + seed)) + 25 * np.cos(y / 5 + x / 11)).astype(np.float32), nodata="-9999")
    changes = {"network": {"architecture": "diffusion", "widths": [8, 16], "blocks": 1}, "data": {"folders": ["maps"], "crop": 32, "repeats": 4}, "steps": 10}
    if not bench.has_gdal():
        return
    for ranks in (1, 2):
        train(launcher, program, bench, ranks, f"maps{ranks}", micro_batches=2, **changes)
    compare(bench, "maps1", "maps2")
    status, out, err = launcher.run(2, program, "train", config(bench, "parts", micro_batches=1, **changes), "--threads", "1", "--quiet")
    bench.check(status == 0, f"a diffusion network: {status} {err[:300]}")


def check_decisions(bench, launcher, program):
    """What a validation decides, and a loss that is not finite, is decided alike on all ranks."""
    changes = {"steps": 30, "average": 0, "schedule": {"kind": "plateau", "patience": 0, "factor": 0.1, "warmup": 0}, "optimizer": {"rate": 1e-30},
               "validation": {"folder": "held", "every": 5, "patience": 2}, "tensorboard": "events"}
    records = [train(launcher, program, bench, ranks, f"settled{ranks}", **changes) for ranks in (1, 2)]
    ends = [record["train"]["result"]["steps"] for record in records if record]
    bench.check(len(ends) == 2 and ends[0] == ends[1] < 30, f"ends when the validation is no better: {ends}")
    compare(bench, "settled1", "settled2")
    status, out, err = launcher.run(3, program, "train", config(bench, "infinite", optimizer={"rate": 1e30, "clip": 0}), "--quiet")
    bench.check(status == 1 and len(said(err)) == 1 and "the loss is" in err, f"a loss that is not finite: {status} {err[:300]}")


def check_refusals(bench, launcher, program):
    for says, changes in (("cannot be shared by 3 ranks", {"batch": 2}), ("micro_batches", {"micro_batches": 3})):
        path = config(bench, "refused", **changes)
        status, out, err = launcher.run(3, program, "train", path, "--quiet")
        bench.check(status == 1 and not out and len(said(err)) == 1 and says in err, f"{says}: {status} {out} {err[:300]}")
    status, out, err = launcher.run(3, program, "plan", "train", config(bench, "refused"), "--json", "-")
    parts = json.loads(out)["train"]["parts"] if status == 0 else None
    bench.check(status == 0 and [p["crops"] for p in parts] == [2, 3, 3] and not bench.path("refused-checkpoints").exists(), f"plan train: {status} {out[:300]} {err[:300]}")
    status, out, err = launcher.run(2, program, "train", config(bench, "dncnn2", network=DNCNN), "--quiet")
    bench.check(status == 1 and len(said(err)) == 1 and "rank" not in said(err)[0], f"checkpoints that are there: {status} {err[:300]}")


# --- runs that end early --------------------------------------------------------------------------------------------

def start(bench, launcher, program, name, ranks, **changes):
    process = launcher.start(ranks, program, "train", config(bench, name, **changes), "--threads", "1", "--quiet")
    log, deadline, pids = bench.path(f"{name}.log"), time.monotonic() + 30, {}
    while time.monotonic() < deadline and process.poll() is None and (len(pids) < ranks or not log.exists() or log.read_text().count("\n") < 1):
        time.sleep(0.02)
        pids = ranks_of(process.pid)
    return process, pids


def check_ends(bench, launcher, program):
    """The run goes on with another number of ranks, and has the curve of a run that was never stopped."""
    changes = {"steps": 120, "batch": 12, "data": {"folders": ["images"], "crop": 32, "sigma": 0.1}, "phases": [{"share": 0.7}, {"crop": 40}], "optimizer": SLOW}
    train(launcher, program, bench, 1, "whole", **changes)
    for how, ranks, later in ((signal.SIGTERM, 3, 2), (signal.SIGKILL, 2, 3), (signal.SIGKILL, 3, 1)):
        name = f"{how.name}{ranks}"
        process, pids = start(bench, launcher, program, name, ranks, **changes)
        victim = random.randrange(ranks)
        bench.check(len(pids) == ranks and process.poll() is None, f"{name}: the ranks train")
        os.kill(pids[victim], how)
        status, out, err = launcher.end(process, 30)
        lines = said(err)
        if how == signal.SIGTERM:
            bench.check(status not in (0, None) and len(lines) == 1 and "the checkpoint is written" in lines[0], f"{name}: rank {victim} stops all: {status} {err[:500]}")
        else:
            bench.check(status not in (0, None), f"{name}: rank {victim} ends all: {status} {err[:500]}")
        bench.check(not bench.path(f"{name}.safetensors").exists(), f"{name}: no result yet")
        folder = bench.path(f"{name}-checkpoints")
        record = train(launcher, program, bench, later, name, "--resume", **changes)
        bench.check(record and 0 < record["train"]["first_step"] < 120, f"{name}: {later} rank(s) go on: {record and record['train']['first_step']}")
        compare(bench, "whole", name)
        bench.check(len(list(folder.glob("*.ckpt"))) == 2 and not leftovers(folder), f"{name}: two checkpoints: {sorted(folder.iterdir())}")


def main():
    bench, launcher, program, tool = open_bench()
    begin = time.monotonic()
    bench.need_device(DEVICE)
    make_images(bench)
    {"curves": lambda: (check_curves(bench, launcher, program), check_parts(bench, launcher, program), check_maps(bench, launcher, program), check_decisions(bench, launcher, program), check_refusals(bench, launcher, program)),
     "stops": lambda: check_ends(bench, launcher, program)}[sys.argv[4]]()
    print(f"{time.monotonic() - begin:.0f} s")
    bench.finish()


main()
