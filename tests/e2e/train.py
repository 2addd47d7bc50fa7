"""train.py PROGRAM [KILLS] [DEVICE]: training of small networks from a configuration file.

The result denoises; a run that was killed, stopped or divided otherwise gives the same bits; memory is as planned and
limits are kept; every mistake is one line. KILLS: how often a run is killed with SIGKILL (default 5). On a card (DEVICE cuda)
only runs that are killed and stopped are tried, with more steps, so that kills meet them. DEVICE card uses the CPU as a card
(TESSERA_QUEUE=1): its steps are queued one ahead, and everything is as on the CPU.
"""
import json
import os
import random
import shutil
import signal
import struct
import sys
import time

import numpy as np

from support import Bench, picture, psnr, read_metadata, read_safetensors, to_integers, write_config, write_png

DRUNET = {"architecture": "drunet", "widths": [8, 8, 16, 16], "blocks": 1}
DNCNN = {"architecture": "dncnn", "widths": [16], "depth": 5, "norm": "batch"}
NOISE = 0.1
CARD = sys.argv[3:] == ["card"]
DEVICE = sys.argv[3] if len(sys.argv) > 3 and not CARD else "cpu"
STEPS = 100 if DEVICE == "cpu" else 4000  # of a run that is stopped


def make_images(bench):
    for name, seeds in (("images", range(6)), ("held", range(20, 22))):
        bench.path(name).mkdir()
        for seed in seeds:
            smooth = picture(56 + 8 * (seed % 3), 64, 3, seed) * 0.8
            write_png(bench.path(name) / f"{seed}.png", to_integers(smooth, np.uint8))


def config(bench, name, **changes):
    """Writes a configuration with changes, as write_config. Returns its path."""
    keys = {"network": DRUNET, "data": {"folders": ["images"], "crop": 24, "sigma": NOISE, "workers": 2}, "batch": 4,
            "steps": 60, "optimizer": {"rate": 3e-3}, "average": 0.9, "output": f"{name}.safetensors",
            "checkpoint": {"every": 7}, "device": DEVICE, "log": f"{name}.log"}
    return write_config(bench.path(f"{name}.json"), keys, changes)


def weights(bench, name):
    return read_safetensors(bench.path(f"{name}.safetensors"))


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k].view(np.uint32), b[k].view(np.uint32)) for k in a)


def train(bench, name, *options, **changes):
    return bench.record("train", config(bench, name, **changes), *options)


def log_of(bench, name):
    lines = [json.loads(line) for line in bench.path(f"{name}.log").read_text().splitlines()]
    return [(line["step"], line.get("loss"), line.get("psnr_db")) for line in lines]


def check_kept(bench, record, limit=None):
    planned, measured = (record[k]["peak_bytes"]["total"] for k in ("plan", "measured"))
    # A file is decoded only now and then, so its decoder may be in no peak.
    bench.check(measured <= planned <= 1.01 * measured + (128 << 10), f"planned {planned} bytes, measured {measured}")
    if limit:
        bench.check(planned <= limit, f"the plan keeps the limit of {limit} bytes")


# --- results --------------------------------------------------------------------------------------------------------

def check_denoises(bench, name):
    clean = picture(96, 96, 3, 40) * 0.8
    noisy = clean + NOISE * np.random.default_rng(1).standard_normal(clean.shape)
    np.save(bench.path("noisy.npy"), noisy.astype(np.float32))
    record = bench.record("denoise", bench.path("noisy.npy"), bench.path("out.npy"), "--sigma", NOISE, "--model",
                          bench.path(f"{name}.safetensors"), "--device", "cpu")
    if record:
        before, after = psnr(noisy, clean), psnr(np.load(bench.path("out.npy")), clean)
        bench.check(after > before + 2, f"{name}: denoises from {before:.2f} dB to {after:.2f} dB")


def check_results(bench):
    record = train(bench, "drunet", validation__folder="held", validation__every=20, steps=240, batch=8)
    if record:
        check_kept(bench, record)
        result, told = record["train"]["result"], read_metadata(bench.path("drunet.safetensors"))
        bench.check(set(record["plan"]) >= {"batch", "crop", "micro_batches", "recompute", "reason", "peak_bytes",
                                            "seconds_per_step", "calibrated", "tflop_per_step"}, "keys of the plan")
        bench.check(record["train"]["images"] == 6 and result["steps"] == result["updates"] == 240 and
                    result["best_psnr_db"] >= result["psnr_db"] and "interrupted" not in record, "keys of the result")
        bench.check(set(record["plan"]["peak_bytes"]) >= {"weights", "activations", "gradients", "optimizer"},
                    "categories of memory")
        bench.check(float(told["sigma_max"]) == NOISE and json.loads(told["config"])["steps"] == 240 and
                    json.loads(told["training"])["psnr_db"] == result["psnr_db"], "metadata of the weights")
        psnrs = [p for _, _, p in log_of(bench, "drunet") if p]
        bench.check(len(psnrs) == 12 and psnrs[-1] > psnrs[0], f"validation improves: {psnrs[0]} to {psnrs[-1]} dB")
        plan = bench.record("plan", "train", bench.path("drunet.json"))
        bench.check(plan and plan["plan"]["peak_bytes"] == record["plan"]["peak_bytes"] and "measured" not in plan,
                    "plan train predicts the same bytes")
        again = bench.record("train", bench.path("drunet.json"), "--resume")
        bench.check(again and again["train"]["result"] == result and
                    read_metadata(bench.path("drunet.safetensors")) == told, "resuming a finished run writes it again")
        check_denoises(bench, "drunet")
    record = train(bench, "dncnn", network=DNCNN, steps=240, batch=8, loss={"kind": "rmse"})
    if record:
        check_kept(bench, record)
        check_denoises(bench, "dncnn")
        whole = weights(bench, "dncnn")
        half = train(bench, "dncnn", "--resume", network=DNCNN, steps=240, batch=8, loss={"kind": "rmse"},
                     output_type="fp16")
        bench.check(half and all(np.array_equal(v, whole[k].astype(np.float16)) for k, v in weights(bench, "dncnn").items()),
                    "a finished run is written again in fp16")
    shown = bench.run("train", config(bench, "shown", steps=3))
    bench.check(shown.status == 0 and "step 3 of 3: loss" in shown.err, f"progress without validation: {shown.err!r}")


def check_equal(bench):
    """Threads, workers and the layout of the work do not change the result."""
    reference = train(bench, "one", network=DNCNN, steps=20, data__workers=1)
    if not reference:
        return
    for name, options, changes in (("threads", ("--threads", 1), {}), ("workers", (), {"data__workers": 3}),
                                   ("cache", (), {"data__cache": 0}), ("all", (), {"recompute": "all"}),
                                   ("blocks", (), {"recompute": "blocks"})):
        changes = {"network": DNCNN, "steps": 20, "data__workers": 1, **changes}
        if train(bench, name, *options, **changes):
            bench.check(same(weights(bench, "one"), weights(bench, name)), f"the same bits: {name}")


def check_memory(bench):
    wide = {"network": {**DRUNET, "widths": [16, 16, 32, 32]}, "batch": 16, "data__crop": 48, "steps": 4}
    free = train(bench, "free", **wide)
    if not free:
        return
    half = free["plan"]["peak_bytes"]["total"] // 2
    record = train(bench, "half", "--memory", half, **wide)
    if record:
        check_kept(bench, record, half)
        plan = record["plan"]
        bench.check((plan["micro_batches"] > 1 or plan["recompute"] != "none") and "MiB" in plan["reason"],
                    f"half the memory: {plan['reason']}")
        a, b = weights(bench, "free"), weights(bench, "half")
        bench.check(all(np.allclose(a[k], b[k], atol=1e-4) for k in a), "half the memory: the same result but for rounding")
    small = bench.run("train", config(bench, "small", **wide), "--memory", "2M")
    bench.check_refused(small, 1, "--memory", "batch")
    enough = small.err.split("use --memory ")[-1].split(",")[0]
    bench.check(bench.run("plan", "train", config(bench, "small", **wide), "--memory", enough).status == 0,
                f"the limit that the refusal names, {enough}, is enough")
    bench.path("large").mkdir()
    for i in range(4):
        write_png(bench.path("large") / f"{i}.png", to_integers(picture(512, 512, 3, i), np.uint8))
    large = bench.run("train", config(bench, "validated", validation__folder="large"), "--memory", "8M")
    bench.check_refused(large, 1, "--memory", "validation.folder")
    free = train(bench, "cached", data__folders=["large"], steps=4)
    half = free["plan"]["peak_bytes"]["total"] // 2 if free else 0
    record = train(bench, "uncached", "--memory", half, data__folders=["large"], steps=4)
    if record:
        check_kept(bench, record, half)
        bench.check(same(weights(bench, "cached"), weights(bench, "uncached")),
                    "half the memory: images that are not kept are decoded again, with the same bits")
    record = train(bench, "phases", steps=20, phases=[{"share": 0.5}, {"crop": 40}], batch=8)
    if record:
        check_kept(bench, record)
        phases = record["plan"]["phases"]
        bench.check([p["crop"] for p in phases] == [24, 40] and [p["batch"] for p in phases] == [8, 3] and
                    [p["steps"] for p in phases] == [10, 10], f"phases with larger crops: {phases}")


# --- stopping -------------------------------------------------------------------------------------------------------

def event_steps(folder):
    """Steps of "loss" in all event files in order, as TensorBoard shows them: a restart removes what it does again."""
    steps = []
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at + 12 <= len(data):
            length = struct.unpack("<Q", data[at:at + 8])[0]
            event = data[at + 12:at + 12 + length]
            at += 16 + length
            if len(event) < 11 or event[9] != 0x10:  # wall_time takes 9 bytes; then a step, or no step
                continue
            step, shift, place = 0, 0, 10
            while True:
                step |= (event[place] & 127) << shift
                shift, place = shift + 7, place + 1
                if event[place - 1] < 128:
                    break
            if event[place] == 0x3A:  # session_log: START
                steps = [s for s in steps if s < step]
            elif b"\x0a\x04loss" in event:
                steps.append(step)
    return steps


STOPPED = {"steps": STEPS, "phases": [{"steps": STEPS * 3 // 5}, {"steps": STEPS * 2 // 5, "crop": 32, "batch": 3}], "network": DNCNN,
           "validation__folder": "held", "validation__every": 10 if CARD else STEPS // 100, "schedule": {"kind": "plateau", "patience": 3},
           "checkpoint__every": STEPS * 7 // 100}


def forget(bench, name):
    for path in bench.folder.glob(f"{name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def started(bench, name, resume, **popen):
    """A run whose checkpoint folder is there: it takes signals then."""
    path = bench.path(f"{name}.json")
    process = bench.start("train", path, "--quiet", *(("--resume",) if resume else ()), **popen)
    while not bench.path(f"{name}-checkpoints").exists() and process.poll() is None:
        time.sleep(0.001)
    return process


def checkpoints(bench, name):
    folder = bench.path(f"{name}-checkpoints")
    return sorted(folder.glob("*.ckpt")) if folder.exists() else []


def finish(bench, name, what):
    """Resumes to the end, and compares weights, log and events with the uninterrupted run's."""
    options = ("--resume",) if checkpoints(bench, name) else ()
    if not bench.record("train", bench.path(f"{name}.json"), *options):
        return
    bench.check(same(weights(bench, "whole"), weights(bench, name)), f"{what}: the same bits")
    bench.check(log_of(bench, "whole") == log_of(bench, name), f"{what}: the log continues")
    bench.check(event_steps(bench.path("whole-events")) == event_steps(bench.path(f"{name}-events")),
                f"{what}: the event files continue")
    kept = checkpoints(bench, name)
    left = [p for p in bench.path(f"{name}-checkpoints").glob(".tmp*/new") if p.stat().st_size]
    bench.check(len(kept) == 2 and not left, f"{what}: two checkpoints are kept: {[k.name for k in kept]} {left}")


def check_stopped(bench, kills):
    begin = time.monotonic()
    if not train(bench, "whole", tensorboard="whole-events", **STOPPED):
        return
    took = time.monotonic() - begin
    bench.check(event_steps(bench.path("whole-events")) == list(range(10, STEPS + 1, 10)), "event files")
    moments = random.Random(int(os.environ.get("TRAIN_SEED", "1")))
    config(bench, "killed", tensorboard="killed-events", **STOPPED)
    steps = []
    while len(steps) < kills:
        process = started(bench, "killed", bool(checkpoints(bench, "killed")))
        time.sleep(moments.uniform(0, took / 2))
        if process.poll() is not None:  # the end was reached: the kills that are left are of another run
            bench.check(process.returncode == 0, f"killed run: status {process.returncode}")
            finish(bench, "killed", f"killed after the steps {steps}")
            forget(bench, "killed")
            config(bench, "killed", tensorboard="killed-events", **STOPPED)
            continue
        process.kill()
        process.wait()
        last = checkpoints(bench, "killed")
        steps.append(int(last[-1].stem[5:]) if last else 0)
    finish(bench, "killed", f"killed after the steps {steps}")
    if train(bench, "again", tensorboard="killed-events", **STOPPED):
        bench.check(event_steps(bench.path("killed-events")) == list(range(10, STEPS + 1, 10)), "event files of a new run replace those of an earlier one")
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        name, what = f"signal{number}", signal.Signals(number).name
        config(bench, name, tensorboard=f"{name}-events", **STOPPED)
        for _ in range(kills):
            if not stop_once(bench, name, number, status, moments.uniform(0.05, 0.3) * took):
                break
        finish(bench, name, what)


def stop_once(bench, name, number, status, seconds):
    """False when the run came to its end first."""
    with open(bench.path("stderr.txt"), "w+") as err:
        process = started(bench, name, bool(checkpoints(bench, name)), stdout=err, stderr=err)
        time.sleep(seconds)
        process.send_signal(number)
        got = process.wait(300)
        err.seek(0)
        text = err.read().strip()
    kept = checkpoints(bench, name)
    if got == -number and not text:
        print("ended before it listened to signals")
        return True
    if got == 0:
        return False
    return bench.check(got == status and "\n" not in text and "--resume" in text and kept and
                       f"after step {int(kept[-1].stem[5:])} of {STEPS}" in text and
                       not bench.path(f"{name}.safetensors").exists(), f"status {got}, {text}, {[k.name for k in kept]}")


def check_first_step(bench):
    """Ctrl-C as soon as the run has a checkpoint folder, usually before its first step."""
    config(bench, "early", tensorboard="early-events", **STOPPED)
    record = bench.path("early-record.json")
    process = bench.start("train", bench.path("early.json"), "--quiet", "--json", record)
    while not bench.path("early-checkpoints").exists() and process.poll() is None:
        time.sleep(0.0005)
    process.send_signal(signal.SIGINT)
    status = process.wait(300)
    bench.check(status == 130 and checkpoints(bench, "early"), f"stopped at once: status {status}")
    told = json.loads(record.read_text())
    bench.check(told.get("interrupted") is True and told["train"]["steps"] == STEPS, "the record says that it was interrupted")
    finish(bench, "early", "stopped at once")


# --- mistakes -------------------------------------------------------------------------------------------------------

def check_refusals(bench):
    def refused(name, *words, options=(), **changes):
        path = config(bench, name, **changes)
        bench.check_refused(bench.run("train", path, "--quiet", *options), 1, *words)
        return path

    refused("unknown", "optimizer.rat", optimizer__rat=1)
    refused("unknown", "optimiser", optimiser={})
    refused("type", "batch", batch="many")
    refused("type", "steps", steps=1.5)
    refused("range", "data.sigma", data__sigma=[0.3, 0.1])
    refused("unused", "network.depth", network={**DRUNET, "depth": 5})
    refused("crop", "data.crop", "multiple of 8", data__crop=20)
    refused("nothing", "output", output=None)
    refused("missing", "data.folders[0]", "nowhere", data__folders=["nowhere"])
    refused("missing", "validation.folder", "nowhere", validation__folder="nowhere")
    refused("missing", "network.weights", "nowhere", network={"weights": "nowhere.safetensors"})
    refused("missing", "output", "nowhere", output="nowhere/a.safetensors")
    refused("loss", "loss.kind", loss__kind="bce")
    refused("micro", "micro_batches", micro_batches=3)
    bench.path("broken.json").write_text('{"batch": 4,')
    bench.check_refused(bench.run("train", bench.path("broken.json")), 1, "broken.json")
    bench.check_refused(bench.run("train", bench.path("none.json")), 1, "none.json")
    if os.geteuid() != 0:
        bench.path("locked").mkdir(mode=0o555)
        refused("locked", "output", "locked", output="locked/a.safetensors")
        refused("locked", "log", "locked", log="locked/a.log")
    refused("none", "no checkpoint", options=("--resume",))

    bench.path("empty").mkdir()
    refused("empty", "empty", data__folders=["empty"])
    for name, image in (("tiny", to_integers(picture(16, 16), np.uint8)), ("text", None), ("cut", None)):
        shutil.copytree(bench.path("images"), bench.path(name))
        if image is not None:
            write_png(bench.path(name) / "bad.png", image)
    (bench.path("text") / "bad.png").write_text("no image")
    whole = (bench.path("images") / "0.png").read_bytes()
    (bench.path("cut") / "bad.png").write_bytes(whole[:len(whole) // 2])  # its head is good: fails when it is drawn
    refused("tiny", "tiny/bad.png", "16 x 16", data__folders=["tiny"])
    refused("text", "text/bad.png", data__folders=["text"])
    refused("cut", "cut/bad.png", data__folders=["cut"], checkpoint__every=1)
    refused("cutheld", "cut/bad.png", validation__folder="cut", validation__every=2)


def check_not_finite(bench):
    path = config(bench, "nan", optimizer__rate=1e30, optimizer__clip=0, checkpoint__every=1, schedule__warmup=0)
    bench.check_refused(bench.run("train", path, "--quiet"), 1, "step", "loss", "optimizer.rate")
    kept = checkpoints(bench, "nan")
    bench.check(kept and not bench.path("nan.safetensors").exists(), f"the last good checkpoint is kept: {kept}")
    bench.check_refused(bench.run("train", path, "--quiet", "--resume"), 1, "step", "loss", "optimizer.rate")


def check_checkpoints(bench):
    if not train(bench, "state", steps=20):
        return
    path = bench.path("state.json")
    bench.check_refused(bench.run("train", path, "--quiet"), 1, "state-checkpoints", "--resume")
    text = path.read_text()
    for changes, word in (({"network": {**DRUNET, "blocks": 2}}, "network"), ({"network": DNCNN}, "network"),
                          ({"optimizer__rate": 1e-5}, "optimizer.rate"), ({"batch": 2}, "batch")):
        config(bench, "state", **{"steps": 20, **changes})
        bench.check_refused(bench.run("train", path, "--quiet", "--resume"), 1, "step-000000020.ckpt", word)
    path.write_text(text)
    before, kept = weights(bench, "state"), checkpoints(bench, "state")
    kept[1].write_bytes(kept[1].read_bytes()[:-1000])
    result = bench.run("train", path, "--resume")
    bench.check(result.status == 0 and kept[1].name in result.err and same(before, weights(bench, "state")),
                f"a damaged checkpoint is skipped, and the older one gives the same bits: {result.err!r}")
    for checkpoint in checkpoints(bench, "state"):
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    result = bench.run("train", path, "--quiet", "--resume")
    bench.check_refused(result, 1, "step-000000020.ckpt", "checksum")


def check_card(bench, kills):
    """Steps are queued one ahead but before validations, checkpoints and ends of phases."""
    shutil.copytree(bench.path("images"), bench.path("cut"))
    whole = (bench.path("images") / "0.png").read_bytes()
    (bench.path("cut") / "bad.png").write_bytes(whole[:len(whole) // 2])  # its head is good: fails when it is drawn
    growing = {"network": DNCNN, "loss": {"kind": "mse"}, "optimizer": {"kind": "sgd", "rate": 3, "clip": 0},
               "schedule": {"kind": "constant", "warmup": 0}, "checkpoint__every": 3}
    cut = {"data__folders": ["cut"], "batch": 1, "checkpoint__every": 2}
    told, results = {"0": [], "1": []}, {}
    for queue, said in told.items():
        os.environ["TESSERA_QUEUE"] = queue
        results[queue] = train(bench, f"run{queue}", tensorboard=f"run{queue}-events", **STOPPED)
        for changes, words in ((growing, ("the loss is", "the last checkpoint is of step 3")), (cut, ("cut/bad.png",))):
            result = bench.run("train", config(bench, "bad", **changes), "--quiet")
            bench.check_refused(result, 1, *words)
            said.append((result.err, [c.name for c in checkpoints(bench, "bad")]))
            forget(bench, "bad")
    bench.check(told["0"] == told["1"], f"runs end at the same step and for the same reason: {told}")
    if all(results.values()):
        planned = [results[queue]["plan"]["peak_bytes"]["total"] for queue in told]
        bench.check(planned[1] > planned[0], f"one more batch is planned, for the step ahead: {planned}")
        bench.check(same(weights(bench, "run0"), weights(bench, "run1")), "steps ahead: the same bits")
        bench.check(log_of(bench, "run0") == log_of(bench, "run1"), "steps ahead: the same log")
        bench.check(event_steps(bench.path("run0-events")) == event_steps(bench.path("run1-events")), "steps ahead: the same event files")
    check_stopped(bench, kills)
    check_first_step(bench)


def main():
    bench, kills = Bench(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    make_images(bench)
    if DEVICE != "cpu":
        bench.need_device(DEVICE)
        check_stopped(bench, kills)
        check_first_step(bench)
        return bench.finish()
    if CARD:
        check_card(bench, kills)
        return bench.finish()
    check_results(bench)
    check_equal(bench)
    check_memory(bench)
    check_stopped(bench, kills)
    check_first_step(bench)
    check_refusals(bench)
    check_not_finite(bench)
    check_checkpoints(bench)
    bench.finish()


main()
