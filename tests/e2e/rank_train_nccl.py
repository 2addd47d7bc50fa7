"""rank_train_nccl.py PROGRAM DIST_TOOL MODULE FOLDER: training that several ranks share on devices with separate memory, whose gradients go by NCCL and are added there, under a real mpirun. Skips
without mpirun or without the MPI module. As in rank_nccl.py, the CPU is used as a card, and FOLDER has a library in place of NCCL.

Losses and weights have the bits of gradients that are added in host memory. A rank whose messages fail does not leave the others waiting.
"""
import json
import os
import pathlib
import sys

import numpy as np

from rank_launcher import open_bench, said
from support import leftovers, picture, read_safetensors, to_integers, write_config, write_png

LIBRARY = pathlib.Path(sys.argv[4]).resolve() / "libnccl.so.2"
DRUNET = {"architecture": "drunet", "widths": [8, 8, 16, 16], "blocks": 1}
NORMS = {"architecture": "dncnn", "widths": [16], "depth": 5, "norm": "batch"}


def train(bench, launcher, program, ranks, name, network, nccl, verb=("train",), env=None):
    keys = {"network": network, "data": {"folders": ["images"], "crop": 16, "sigma": 0.1}, "batch": 8, "steps": 12, "optimizer": {"rate": 1e-4}, "average": 0.9, "output": f"{name}.safetensors",
            "checkpoint": {"every": 7}, "device": "cpu", "precision": "fp32", "log": f"{name}.log"}
    path, record = write_config(bench.path(f"{name}.json"), keys, {}), bench.path(f"{name}.record")
    record.unlink(missing_ok=True)
    status, _, err = launcher.run(ranks, program, *verb, path, "--threads", "1", "--json", record, env={"TESSERA_NCCL": nccl, **(env or {})})
    return status, json.loads(record.read_text()) if record.exists() else None, err


def losses(bench, name):
    lines = [json.loads(line) for line in bench.path(f"{name}.log").read_text().splitlines()]
    return [(line["step"], line["loss"], line["gradient_norm"]) for line in lines if "loss" in line]


def check_bits(bench, launcher, program):
    for name, network in (("drunet", DRUNET), ("norms", NORMS)):
        for ranks in (2, 3):
            made = {}
            for way, nccl in (("pinned", "0"), ("nccl", str(LIBRARY))):
                status, record, err = train(bench, launcher, program, ranks, f"{name}-{ranks}-{way}", network, nccl)
                if not bench.check(status == 0 and record, f"{name}, {ranks} ranks, {way}: {status} {err[:500]}"):
                    return
                made[way] = record
                parts = record["train"]["parts"]
                bytes_of = [record[what]["peak_bytes"]["workspace"] for what in ("plan", "measured")]
                bench.check(bytes_of[0] == bytes_of[1] and all(p["measured_bytes"] <= p["planned_bytes"] for p in parts), f"{name}, {ranks} ranks, {way}: workspace {bytes_of}, {parts}")
                status, planned, err = train(bench, launcher, program, ranks, f"{name}-{ranks}-{way}", network, nccl, ("plan", "train"))
                bench.check(status == 0 and planned["plan"]["peak_bytes"] == record["plan"]["peak_bytes"] and planned["plan"]["exchanges"] == record["plan"]["exchanges"],
                            f"{name}, {ranks} ranks, {way}: plan {planned and planned['plan']}, run {record['plan']}")
            one, two = (read_safetensors(bench.path(f"{name}-{ranks}-{way}.safetensors")) for way in made)
            same = one.keys() == two.keys() and all(one[k].tobytes() == two[k].tobytes() for k in one)
            curves = [losses(bench, f"{name}-{ranks}-{way}") for way in made]
            bench.check(same and curves[0] == curves[1] and len(curves[0]) >= 1, f"{name}, {ranks} ranks: the same weights and losses: {curves}")
            bench.check(made["nccl"]["plan"]["exchanges"] == "NCCL 2.99.1" and made["nccl"]["measured"]["nccl_bytes"] == 0, f"{made['nccl']['plan']}")
            bench.check(made["pinned"]["plan"]["exchanges"] == "pinned memory: TESSERA_NCCL=0", f"{made['pinned']['plan']}")


def check_failure(bench, launcher, program):
    status, _, err = train(bench, launcher, program, 3, "failing", DRUNET, str(LIBRARY), env={"NCCL_STAND_IN": "send"})
    bench.check(status not in (0, None) and any("rank 1: ncclGroupEnd failed: stand-in: system error" in line for line in said(err)), f"a failing group: {status} {err[:500]}")
    bench.check(not leftovers(bench.folder), "a failing group: no temporary files")


def main():
    bench, launcher, program, _ = open_bench()
    os.environ["TESSERA_QUEUE"] = "1"
    bench.path("images").mkdir()
    for seed in range(4):
        write_png(bench.path("images") / f"{seed}.png", to_integers(picture(56, 64, 3, seed) * 0.8, np.uint8))
    check_bits(bench, launcher, program)
    check_failure(bench, launcher, program)
    bench.finish()


main()
