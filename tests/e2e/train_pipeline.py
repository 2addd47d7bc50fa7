"""train_pipeline.py PROGRAM [DEVICE]: training of hyperspectral pipelines, and `detect` with the result.

The validation improves; an affine pipeline needs only a few pixels; a run that was killed, or has other workers, gives the same bits; memory is as planned; `detect` takes the file;
every mistake is one line. With PyTorch, losses are compared step by step (bench/peers/check_pipelines.py); TESSERA_TORCH names a Python
that has it.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np

from support import Bench, read_metadata, write_config

SIDE, BANDS = 24, 20
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
PEER = pathlib.Path(__file__).resolve().parent.parent.parent / "bench" / "peers" / "check_pipelines.py"


def cube(seed, side=SIDE):
    rng, u = np.random.default_rng(seed), np.linspace(0, 1, BANDS)
    x = 100 * np.exp(-(u - 0.5) ** 2 / 0.1) * rng.uniform(0.7, 1.3, (side, side, 1)) + rng.normal(0, 10, (side, side, BANDS))
    mask = (rng.uniform(0, 1, (side, side)) < 0.05).astype(np.uint8)
    x[mask > 0] = 150 * np.exp(-(u - 0.3) ** 2 / 0.05) + 150 * np.exp(-(u - 0.7) ** 2 / 0.05)
    return x, mask


def make_cubes(bench):
    for folder, seeds in (("cubes", range(6)), ("held", range(20, 22))):
        bench.path(folder).mkdir()
        for seed in seeds:
            x, mask = cube(seed, SIDE + seed % 3)
            np.save(bench.path(folder) / f"{seed:02d}.npy", np.clip(x, 0, 65535).astype(np.uint16 if seed % 2 else np.float32))
            np.save(bench.path(folder) / f"{seed:02d}_mask.npy", mask)


def config(bench, name, **changes):
    keys = {"pipeline": "selector", "data": {"folders": ["cubes"], "workers": 1}, "batch": 2, "epochs": 4,
            "output": f"{name}.safetensors", "checkpoint": {"every": 2}, "device": DEVICE, "log": f"{name}.log"}
    return write_config(bench.path(f"{name}.json"), keys, changes)


def train(bench, name, *options, **changes):
    return bench.record("train", config(bench, name, **changes), *options)


def tensors(bench, name):
    """The bytes of all tensors; metadata hold seconds."""
    data = bench.path(f"{name}.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def logged(bench, name):
    lines = [json.loads(line) for line in bench.path(f"{name}.log").read_text().splitlines()]
    return [(line["step"], line["loss"], line["gradient_norm"], line["rate"]) for line in lines if "loss" in line]


def check_result(bench):
    checked = {"epochs": 20, "validation__folder": "held", "optimizer": {"rate": 3e-3}}
    record = train(bench, "found", **checked)
    if not record:
        return
    planned, measured = (record[k]["peak_bytes"]["total"] for k in ("plan", "measured"))
    bench.check(measured <= planned <= 1.01 * measured + (768 << 10), f"planned {planned} bytes, measured {measured}")
    plan = bench.record("plan", "train", bench.path("found.json"))
    bench.check(plan and plan["plan"]["peak_bytes"] == record["plan"]["peak_bytes"] and plan["train"]["images"] == 6 and
                plan["train"]["steps"] == 60 and plan["train"]["trained_nodes"] == ["selector", "rx", "score_to_logit"],
                "plan train predicts the same")
    lines = [json.loads(line) for line in bench.path("found.log").read_text().splitlines()]
    curve = [line["validation_auroc"] for line in lines if "validation_auroc" in line]
    losses = [line["loss"] for line in lines if "loss" in line]
    bench.check(len(losses) == 60 and losses[-1] < losses[0], f"losses: {losses[0]} to {losses[-1]}")
    bench.check(len(curve) == 20 and curve[-1] > max(0.9, curve[0]) and record["train"]["result"]["validation_auroc"] == curve[-1],
                f"validation improves: {curve}")
    metadata = read_metadata(bench.path("found.safetensors"))
    bench.check(json.loads(metadata["config"])["pipeline"] == "selector" and "tessera_pipeline" in metadata, "metadata of the result")
    scored = bench.record("detect", bench.path("held"), bench.path("scores"), "--pipeline", bench.path("found.safetensors"),
                          "--truth", bench.path("held"), "--device", DEVICE)
    bench.check(scored and abs(scored["quality"]["auroc"] - curve[-1]) < 1e-6, "detect finds what the validation found")
    record = train(bench, "more", pipeline="found.safetensors", epochs=1)
    bench.check(record and record["train"]["passes"] == 0 and record["train"]["result"]["steps"] == 3, "training goes on from a file")
    record = train(bench, "early", **{**checked, "validation__patience": 2, "epochs": 200})
    bench.check(record and record["train"]["result"]["steps"] < 600 and
                record["train"]["result"]["steps"] == record["train"]["result"]["best_step"] + 9, "a run ends early")


def check_kinds(bench):
    graph = {"nodes": [{"kind": "minmax"}, {"kind": "pca", "components": 5}, {"kind": "orthogonality", "weight": 0.1},
                       {"kind": "linear", "channels": 20}, {"kind": "mse", "target": "minmax"},
                       {"kind": "residual", "target": "minmax"}, {"kind": "quantile"}]}
    record = train(bench, "residual", pipeline=graph, train=["pca", "linear"])
    bench.check(record and record["train"]["trained_nodes"] == ["pca", "linear"], "nodes are named")
    for name in ("residual", "svdd"):
        if name == "svdd":
            train(bench, name, pipeline="svdd", average=0.9)
        scored = bench.record("detect", bench.path("held") / "20.npy", bench.path("s.npy"), "--pipeline",
                              bench.path(f"{name}.safetensors"), "--device", DEVICE)
        bench.check(scored and np.all(np.isfinite(np.load(bench.path("s.npy")))), f"{name} scores")


def check_false_alarms(bench):
    """The threshold belongs to the trained scores: the share of pixels of the set that reaches it is the rate."""
    graph = {"nodes": [{"kind": "minmax"}, {"kind": "selector"}, {"kind": "rx", "trainable": True}, {"kind": "score_to_logit"},
                       {"kind": "bce"}, {"kind": "false_alarm", "rate": 0.02}]}
    train(bench, "alarm", pipeline=graph, optimizer={"rate": 1e-2})
    found = bench.record("detect", bench.path("cubes"), bench.path("alarms"), "--pipeline", bench.path("alarm.safetensors"),
                         "--device", DEVICE)
    if found:
        share = found["detect"]["anomalous_pixels"] / found["detect"]["pixels"]
        bench.check(abs(share - 0.02) < 0.001, f"{share} of the pixels are anomalies")


def check_equal(bench):
    for pipeline in ("selector", "svdd"):
        if not train(bench, "one", pipeline=pipeline):
            return
        for name, changes in (("workers", {"data__workers": 3}), ("all", {"recompute": "all"})):
            if train(bench, name, pipeline=pipeline, **changes):
                bench.check(tensors(bench, "one") == tensors(bench, name), f"{pipeline}: the same bits: {name}")
        if DEVICE == "cpu" and bench.record("train", config(bench, "ahead", pipeline=pipeline, checkpoint__every=5), env={"TESSERA_QUEUE": "1"}):
            bench.check(tensors(bench, "one") == tensors(bench, "ahead") and logged(bench, "one") == logged(bench, "ahead"),
                        f"{pipeline}: steps that are queued one ahead: the same bits and losses")
        path, folder = config(bench, "killed", pipeline=pipeline), bench.path("killed-checkpoints")
        for _ in range(2):
            resume = ("--resume",) if list(folder.glob("*.ckpt")) else ()
            before = len(resume) and max(p.name for p in folder.glob("*.ckpt"))
            process = bench.start("train", path, "--quiet", *resume)
            while process.poll() is None and max([p.name for p in folder.glob("*.ckpt")] or [""]) == (before or ""):
                time.sleep(0.001)
            process.kill()
            process.wait()
        if bench.record("train", path, "--resume"):
            bench.check(tensors(bench, "one") == tensors(bench, "killed"), f"{pipeline}: killed twice and resumed: the same bits")
        if pipeline == "selector":
            np.save(bench.path("cubes") / "00b.npy", np.ones((SIDE, SIDE, BANDS), np.float32))
            np.save(bench.path("cubes") / "00b_mask.npy", np.ones((SIDE, SIDE), np.uint8))
            bench.check_refused(bench.run("train", path, "--resume", "--quiet"), 1, "cubes", "run's start")
            for name in ("00b.npy", "00b_mask.npy"):
                (bench.path("cubes") / name).unlink()
        for name in ("one", "workers", "all", "ahead", "killed"):
            shutil.rmtree(bench.path(f"{name}-checkpoints"), ignore_errors=True)


def check_condensed(bench):
    """An affine pipeline with squared losses is trained on a few pixels for each whole cube. Another loss, of no weight, needs all pixels."""
    bench.path("whole").mkdir()
    for seed in range(5):
        x, mask = cube(40 + seed)
        x[..., 3] = 7  # a band without variance
        np.save(bench.path("whole") / f"{seed}.npy", np.clip(x, 0, 65535).astype(np.uint16 if seed % 2 else np.float32))
        np.save(bench.path("whole") / f"{seed}_mask.npy", mask)
    nodes = [{"kind": "snv"}, {"kind": "pca", "components": 6, "trainable": True}, {"kind": "orthogonality", "weight": 0.1},
             {"kind": "linear", "channels": BANDS}, {"kind": "mse", "target": "snv_copy"}, {"kind": "residual", "target": "snv_copy"}]
    nodes[1:1] = [{"kind": "zscore", "name": "snv_copy"}]
    keys = {"data__folders": ["whole"], "batch": 2, "epochs": 4, "optimizer": {"rate": 1e-2}}
    few = train(bench, "few", pipeline={"nodes": nodes}, **keys)
    every = train(bench, "every", pipeline={"nodes": nodes + [{"kind": "bce", "weight": 1e-12}]}, **keys)
    crops = train(bench, "crops", pipeline={"nodes": nodes}, **{**keys, "data__crop": SIDE - 1})
    if not few or not every or not crops:
        return
    bench.check([r["train"]["condensed"] for r in (few, every, crops)] == [True, False, False], "what is condensed")
    for record in (few, every):
        planned, measured = (record[k]["peak_bytes"]["total"] for k in ("plan", "measured"))
        bench.check(measured <= planned <= 1.01 * measured + (768 << 10), f"planned {planned} bytes, measured {measured}")
    one, other = ([json.loads(line)["loss"] for line in bench.path(f"{n}.log").read_text().splitlines()] for n in ("few", "every"))
    worst = max(abs(a - b) / abs(b) for a, b in zip(one, other))
    bench.check(len(one) == len(other) == 10 and one[-1] < 0.9 * one[0] and worst < 1e-5, f"condensed losses: {worst}: {one} {other}")
    workers = train(bench, "workers", pipeline={"nodes": nodes}, **{**keys, "data__workers": 3})
    bench.check(workers and tensors(bench, "few") == tensors(bench, "workers"), "condensed: the same bits with other workers")
    path = config(bench, "stopped", pipeline={"nodes": nodes}, **keys)
    process = bench.start("train", path, "--quiet")
    while process.poll() is None and not list(bench.path("stopped-checkpoints").glob("*.ckpt")):
        time.sleep(0.001)
    process.kill()
    process.wait()
    if bench.record("train", path, "--resume"):
        bench.check(tensors(bench, "few") == tensors(bench, "stopped"), "condensed: resumed with the same bits")


def losses_of(bench, name, **changes):
    result = bench.run("train", config(bench, name, **changes), "--quiet")
    shutil.rmtree(bench.path(f"{name}-checkpoints"), ignore_errors=True)
    if result.status and "bf16 matrix instructions" in result.err:
        return None
    bench.check(result.status == 0, f"{name}: {result.err}")
    return [json.loads(line)["loss"] for line in bench.path(f"{name}.log").read_text().splitlines()] if result.status == 0 else None


def check_precision(bench):
    """Losses in 16 bits agree with fp32's over an epoch; matrices of `linear` and `mlp` are rounded, those of `pca` and `rx` are not."""
    layers = [{"kind": "linear", "name": n, "channels": c, "seed": k} for k, (n, c) in enumerate((("a", 10), ("b", 5), ("c", BANDS)))]
    autoencoder = {"nodes": [{"kind": "minmax"}, *layers, {"kind": "mse", "target": "minmax"}, {"kind": "residual", "target": "minmax"}]}
    pca = {"nodes": [{"kind": "minmax"}, {"kind": "pca", "components": 5, "trainable": True}, {"kind": "orthogonality", "weight": 0.1},
                     {"kind": "rx"}, {"kind": "score_to_logit", "trainable": True}, {"kind": "bce"}]}
    for name, graph, rounded in (("autoencoder", autoencoder, True), ("svdd", "svdd", True), ("pca", pca, False)):
        # The first steps in fp16 may be skipped, until the loss scale fits: small steps, so that this does not matter.
        for precision, rate in (("bf16", 1e-3),) if DEVICE == "cpu" else (("bf16", 1e-3), ("fp16", 1e-5)):
            keys = {"pipeline": graph, "batch": 1, "epochs": 1, "data__shuffle": False, "optimizer": {"rate": rate}}
            exact = losses_of(bench, "exact", precision="fp32", **keys)
            losses = losses_of(bench, "rounded", precision=precision, **keys)
            if not exact or losses is None:
                print(f"{name}: not trained in {precision}, which the CPU does not have")
                continue
            worst = max(abs(a - b) / abs(a) for a, b in zip(exact, losses))
            bench.check(len(losses) == 6 and worst < 0.01, f"{name} in {precision}: losses {losses}, in fp32 {exact}")
            bench.check(precision == "fp16" or (worst > 0) == rounded, f"{name} in {precision}: rounded where it should be: {worst}")


def check_refused(bench):
    bench.path("bare").mkdir()
    np.save(bench.path("bare") / "a.npy", cube(1)[0].astype(np.float32))
    chain = [{"kind": "minmax"}, {"kind": "rx"}, {"kind": "score_to_logit"}]
    for words, changes in ((("a.npy", "NAME_mask"), {"data__folders": ["bare"]}),
                           (("pipeline", "selectr", "did you mean selector"), {"pipeline": "selectr"}),
                           (("no node is trainable", "train"), {"pipeline": {"nodes": chain + [{"kind": "bce"}]}}),
                           (("no loss", "bce"), {"pipeline": {"nodes": chain}, "train": ["rx"]}),
                           (("train[0]", "rxx"), {"train": ["rxx"]}),
                           (("train[0]", "minmax", "not trained"), {"train": ["minmax"]}),
                           (("data.crop", "8 to 4096"), {"data__crop": 4}),
                           ((".npy", "crop", "90 x 90"), {"data__crop": 90}),
                           (("data.sigma", "pipeline"), {"data__sigma": 0.1}),
                           (("phases", "pipeline"), {"phases": [{"steps": 3}]}),
                           (("loss.kind", "pipeline"), {"loss": {"kind": "mse"}}),
                           (("network.architecture", "pipeline"), {"network": {"architecture": "unet"}}),
                           (("epochs", "steps"), {"steps": 5}),
                           (("epochs", "drunet"), {"pipeline": None, "network": {"architecture": "drunet"}}),
                           (("each image", "zscore"), {"pipeline": {"nodes": [{"kind": "zscore", "over": "image"}] + chain[1:] +
                                                                    [{"kind": "bce"}]}, "train": ["rx"]}),
                           (("train", "trim", "trainable"), {"pipeline": {"nodes": [{"kind": "rx", "trim": 2}, {"kind": "bce"}]},
                                                             "train": ["rx"]}),
                           (("validation.folder", "NAME_mask"), {"validation__folder": "bare"})):
        keys = {**changes}
        path = config(bench, "bad", **{k: v for k, v in keys.items() if v is not None})
        if "pipeline" in keys and keys["pipeline"] is None:
            told = json.loads(path.read_text())
            del told["pipeline"]
            path.write_text(json.dumps(told))
        result = bench.run("train", path, "--quiet")
        bench.check_refused(result, 2 if "did you mean selector" in words else 1, *words)
        shutil.rmtree(bench.path("bad-checkpoints"), ignore_errors=True)
    if DEVICE == "cpu":
        bench.check_refused(bench.run("train", config(bench, "bad", precision="fp16"), "--quiet"), 1, "fp16", "fp32")


def check_torch(bench, program):
    for python in filter(None, (os.environ.get("TESSERA_TORCH"), sys.executable)):
        done = subprocess.run([python, PEER, program, DEVICE], capture_output=True, text=True)
        if done.returncode != 77:
            bench.check(done.returncode == 0 and done.stdout.count("largest relative") == 4, done.stdout + done.stderr)
            return
    print("not compared with PyTorch, which is not there")


def main():
    bench = Bench(sys.argv[1])
    if DEVICE != "cpu":
        bench.need_device(DEVICE)
    make_cubes(bench)
    check_result(bench)
    check_kinds(bench)
    check_false_alarms(bench)
    check_equal(bench)
    check_condensed(bench)
    check_precision(bench)
    check_refused(bench)
    check_torch(bench, sys.argv[1])
    bench.finish()


main()
