"""bench.py PROGRAM: the studies print one well-formed line per point, and planned bytes equal counted bytes."""
import json
import sys

import numpy as np

from support import DATA, Bench, dncnn, read_safetensors, write_safetensors

MODEL = "random:dncnn"
SHARED = ("command", "version", "device", "device_name", "precision", "threads", "study", "engine", "model", "flop", "input",
          "plan", "measured")


def lines(bench, *args):
    result = bench.run("bench", *args, "--device", "cpu", "--threads", "2", "--repeats", "2")
    bench.check(result.status == 0, f"runs: {result}")
    points = [json.loads(line) for line in result.out.splitlines()]
    for point in points:
        what = f"bench {' '.join(map(str, args))}: {point.get('input')} batch {point.get('batch')}"
        bench.check(all(key in point for key in SHARED) and point["command"] == "bench" and point["engine"] == "tessera",
                    f"{what}: has the shared keys")
        planned, counted = point["plan"]["peak_bytes"], point["measured"]["peak_bytes"]
        bench.check(planned == counted and sum(v for k, v in planned.items() if k != "total") == planned["total"],
                    f"{what}: planned {planned['total']} bytes are counted {counted['total']}")
        bench.check(point["measured"]["seconds"] > 0 and point["flop"] > 0, f"{what}: takes time")
    return points


def check_dem(bench):
    """The diffusion sampler, with the network of the committed dump, which takes three channels, changed to two."""
    weights = {k: v for k, v in read_safetensors(DATA / "networks" / "diffusion.safetensors").items() if k.startswith("denoise_fn.")}
    first = "denoise_fn.input_blocks.0.0.weight"
    weights[first] = np.repeat(weights[first], 2, 1)[:, :2]
    model = write_safetensors(bench.path("diffusion.safetensors"), weights)
    small = ("--models", model, "--tile", 32, "--steps", 3, "--seconds", 0)
    precisions = ["fp32", "bf16"] if bench.has_bf16() else ["fp32"]
    points = lines(bench, "dem", *small, "--batches", "3,1", "--precisions", ",".join(precisions))
    told = [(p["precision"], p["sampler"], p["batch"]) for p in points]
    bench.check(told == [(p, s, b) for p in precisions for s in ("dpmpp", "ddim", "ddpm") for b in (3, 1)],
                f"dem: a line for each precision, sampler and batch: {told}")
    for p in points:
        m, count = p["measured"], p["batch"] * p["steps"]
        bench.check(p["study"] == "dem" and p["steps"] == 3 and m["repeats"] == 2 and m["driver_bytes"] > 0, f"dem: {p}")
        bench.check(abs(m["tile_steps_per_second"] * m["seconds"] - count) < 1e-6 * count and
                    abs(m["ms_per_step"] - 1e3 * m["seconds"] / 3) < 1e-6 * m["ms_per_step"] and
                    abs(m["tflops"] * 1e12 * m["seconds"] - p["flop"]) < 1e-6 * p["flop"], f"dem: the figures belong together: {m}")
        bench.check(not {"gpu_busy", "joules", "joules_per_tile_step"} & m.keys(), "dem: what is not measured is left out")
    if points:
        one, three = (next(p for p in points if p["batch"] == b) for b in (1, 3))
        bench.check(abs(three["flop"] - 3 * one["flop"]) < 1e-6 * three["flop"], "dem: work grows with the batch")
    timed = lines(bench, "dem", "--models", model, "--tile", 32, "--steps", 1, "--seconds", 0.3, "--batches", 1, "--samplers", "ddim",
                  "--precision", "fp32")
    bench.check(len(timed) == 1 and timed[0]["measured"]["repeats"] >= 2, "dem: --seconds and --precision")
    bench.check_refused(bench.run("bench", "dem", "--samplers", "euler"), 2, "--samplers euler", "dpmpp")
    bench.check_refused(bench.run("bench", "dem", "--tile", 33, "--models", model), 2, "--tile 33", "multiple")
    bench.check_refused(bench.run("bench", "dem", "--precisions", "fp16", "--device", "cpu", "--models", model), 1, "fp16")
    bench.check_refused(bench.run("bench", "dem", "--models", MODEL), 1, "diffusion")
    bench.check_refused(bench.run("bench", "dem", *small, "--memory", "1M", "--batches", 64), 1, "--memory", "64 tiles")


def check_stats(bench):
    """Phase 1 of hyperspectral pipelines: every workload from the host's memory and in place, with the planned bytes."""
    result = bench.run("bench", "stats", "--only", "channels", "--device", "cpu", "--threads", "2", "--repeats", "2", "--seconds", 0)
    points = [json.loads(line) for line in result.out.splitlines()]
    told = [(p["input"]["channels"], p["source"]) for p in points]
    bench.check(result.status == 0 and told == [(c, s) for c in (10, 50, 100, 200) for s in ("host", "device")],
                f"stats: a line for each workload and source: {told} {result.err}")
    for p in points:
        m, load = p["measured"], p["input"]
        size = load["samples"] * load["height"] * load["width"] * load["channels"] * 4
        bench.check(p["plan"]["peak_bytes"] == m["peak_bytes"], f"stats: planned bytes are counted: {p}")
        bench.check(p["plan"]["passes"] == 1 and load["distinct"] == load["samples"] and m["seconds"] > 0 and load["seconds"] > 0 and
                    abs(m["gb_per_second"] * m["seconds"] - 1e-9 * size) < 1e-15 * size, f"stats: {p}")
        bench.check("of_link_time" not in m, "stats: the CPU has no link")
    result = bench.run("bench", "stats", "--only", "channels-20x32x32x10-", "--device", "cpu", "--repeats", "2", "--seconds", 0, "--phase", "both",
                       "--precisions", "fp32")
    points = [json.loads(line) for line in result.out.splitlines()]
    told = [(p["phase"], p["plan"].get("condensed"), p["source"]) for p in points]
    kinds = (("statistics", None), ("training", False), ("training", True))
    bench.check(result.status == 0 and told == [(*k, s) for s in ("host", "device") for k in kinds], f"stats: both phases: {told} {result.err}")
    trained = [p for p in points if p["phase"] == "training"]
    for p in trained:  # 20 cubes in batches of 16: two steps
        m = p["measured"]
        bench.check(p["plan"]["steps"] == 2 and p["precision"] == "fp32" and p["plan"]["peak_bytes"] == m["peak_bytes"] and
                    m["repeats"] == 2 and abs(m["samples_per_second"] * m["seconds"] - 32) < 1e-9, f"stats: an epoch: {p}")
    bench.check(all(0 < p["measured"]["condense_seconds"] for p in trained if p["plan"]["condensed"]), "stats: condensing is timed")
    bench.check(len({(p["measured"]["loss"], p["plan"]["condensed"]) for p in trained}) == 2, "stats: cubes from anywhere are trained alike")
    queued = bench.run("bench", "stats", "--only", "channels-20x32x32x10-", "--device", "cpu", "--repeats", "2", "--seconds", 0, "--phase", "2", "--precisions", "fp32",
                       env={"TESSERA_QUEUE": "1"})
    losses = [json.loads(line)["measured"]["loss"] for line in queued.out.splitlines()]
    bench.check(losses == [p["measured"]["loss"] for p in trained], f"stats: steps that are queued one ahead are the same: {losses} {queued.err}")
    bench.check_refused(bench.run("bench", "stats", "--phase", "3", "--device", "cpu"), 2, "--phase 3", "both")
    few = bench.run("bench", "stats", "--only", "size-10x128", "--device", "cpu", "--repeats", "1", "--seconds", 0, "--memory", "1M")
    bench.check_refused(few, 1, "does not fit")
    bench.check_refused(bench.run("bench", "stats", "--only", "nothing", "--device", "cpu"), 2, "--only nothing", "guide")


def check_device(bench):
    """Small jobs in processes of their own, predictions for machines that are not here, and what is refused."""
    def device_lines(*args):
        result = bench.run("bench", "device", "--repeats", 1, *args)
        bench.check(result.status == 0, f"device runs: {result}")
        return [json.loads(line) for line in result.out.splitlines()]
    for point in device_lines("--only", "rx 64"):
        m, p = point.get("measured", {}), point.get("predicted", [])
        bench.check(point["study"] == "device" and point["verb"] == "detect" and point["arguments"][0] == "detect" and
                    0 < m["cpu_seconds"] and 0 < m["auto_seconds"] and point["reason"], f"device: a measured job: {point}")
        bench.check(p and p[0]["device"] == "cpu" and p[0]["seconds"] > 0 and
                    p[0]["seconds"] >= p[0]["compute_seconds"] + p[0]["fixed_seconds"] - 1e-9, f"device: its prediction: {p}")
    fast = {"kind": "cuda", "device": "fast", "flops": 1e15, "bytes_per_second": 1e13, "link": {"up": 1e12, "down": 1e12},
            "open_seconds": 0, "job_seconds": 0, "ops": {"device close": {"overhead_seconds": 0, "seconds_per_pixel": 1e-18}}}
    slow = dict(fast, device="slow", open_seconds=1000)
    files = []
    for machine in (fast, slow):
        files.append(bench.path(machine["device"] + ".json"))
        files[-1].write_text(json.dumps(machine))
    points = device_lines("--machine", ",".join(map(str, files)))
    bench.check(len([p for p in points if "error" not in p]) >= 40 and len({p.get("verb") for p in points if "verb" in p}) >= 4,
                f"device: {len(points)} jobs of all verbs are predicted")
    for point in points:
        if "error" in point:
            continue
        one, other = point["machines"]
        bench.check(one["machine"] == "fast" and other["chosen"] == "cpu" and other["speedup"] == 1 and one["speedup"] >= 1 and
                    "measured" not in point, f"device: a machine that takes a day to open is not chosen: {point}")
    bench.check(any(p["machines"][0]["chosen"] != "cpu" for p in points if "machines" in p), "device: a fast machine is chosen")
    bench.check_refused(bench.run("bench", "device", "--only", "nothing of this name"), 2, "--only", "denoise small")
    broken = bench.path("broken.json")
    broken.write_text('{"kind": "cuda"}')
    result = bench.run("bench", "device", "--only", "rx 64", "--machine", broken)
    bench.check("broken.json" in result.out and "flops" in result.out, f"device: a broken machine file: {result}")


def main():
    bench = Bench(sys.argv[1])
    check_stats(bench)
    points = lines(bench, "size", "--models", MODEL, "--height", 64, "--widths", "64:96:16,100")
    bench.check([p["input"]["width"] for p in points] == [64, 80, 96, 100], "every width has its line")
    bench.check(all(p["plan"]["tiles"] == 1 for p in points), "whole images")
    totals = [p["plan"]["peak_bytes"]["total"] for p in points]
    bench.check(totals == sorted(totals), f"memory grows with the width: {totals}")

    file = write_safetensors(bench.path("net.safetensors"), dncnn())
    target = bench.path("lines.jsonl")
    result = bench.run("bench", "size", "--models", f"{file},{MODEL}", "--height", 32, "--widths", "32", "--repeats", 1, "--json",
                       target)
    written = [json.loads(line) for line in target.read_text().splitlines()]
    bench.check(result.status == 0 and not result.out and [p["model"] for p in written] == [str(file), MODEL],
                f"--json FILE takes the lines, weight files serve too: {result}")

    limited = lines(bench, "size", "--models", MODEL, "--height", 256, "--widths", "256", "--memory", "25M", "--halo", "exact")
    bench.check(len(limited) == 1 and limited[0]["plan"]["tiles"] > 1 and
                limited[0]["measured"]["peak_bytes"]["total"] <= 25 << 20, "--memory cuts the image and is kept")

    points = lines(bench, "batch", "--models", MODEL, "--height", 64, "--patches", "16,32", "--batches", "1,3,8")
    for patch, count in ((16, 16), (32, 4)):
        mine = [p for p in points if p["patch"] == patch]
        told = {(p["batch"], p["transfer"]) for p in mine}
        wanted = {(b, t) for b in (1, 3, 8) if b <= count for t in (False, True)}
        bench.check(wanted <= told, f"patch {patch}: every batch that the image fills, with and without transfer")
        last = mine[-1]
        bench.check(last.get("auto") is True and 0 < last["share_of_best"] <= 1 and
                    last["best_images_per_second"] == max(p["images_per_second"] for p in mine if not p["transfer"]),
                    f"patch {patch}: the last line holds --batch auto against the best")

    bench.check_refused(bench.run("bench", "width"), 2, "width", "size, batch, dem, device, stats or scaling")
    check_dem(bench)
    check_device(bench)
    bench.check_refused(bench.run("bench", "size", "--widths", "9:1:2"), 2, "--widths")
    bench.check_refused(bench.run("bench", "batch", "--patches", "12"), 2, "--patches 12")
    bench.check_refused(bench.run("bench", "size", "--models", "random:nothing"), 2, "random:drunet")
    bench.check_refused(bench.run("bench", "size", "--models", "nothing"), 1, "nothing")
    bench.check_refused(bench.run("bench", "size", "--json", "/nowhere/lines"), 1, "/nowhere/lines")
    bench.finish()


main()
