"""trace.py PROGRAM: --trace and --profile. A trace is valid, its spans nest, every layer is there, and neither option changes
a result.
"""
import json
import sys

import numpy as np

from support import Bench, draw, leftovers, picture, read_safetensors, to_integers, write_config, write_png

DNCNN = {"architecture": "dncnn", "widths": [16], "depth": 5, "norm": "batch"}


def read_trace(bench, name):
    """The spans and the figures of a trace, after checks that every trace must pass."""
    trace = json.loads(bench.path(name).read_text())
    events = trace["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    figures = [event for event in events if event["ph"] == "C"]
    names = [event for event in events if event["ph"] == "M"]
    bench.check(trace["displayTimeUnit"] == "ms" and len(spans) + len(figures) + len(names) == len(events),
                f"{name}: spans, figures and names of tracks alone")
    bench.check(all(event["ts"] >= 0 and event["dur"] >= 0 and event["name"] and event["cat"] for event in spans),
                f"{name}: {len(spans)} spans have names, starts and durations")
    tracks = {(event["pid"], event["tid"]) for event in spans}
    named = {(event["pid"], event.get("tid")) for event in names if event["name"] == "thread_name"}
    bench.check(tracks <= named, f"{name}: every track has a name: {tracks - named}")
    for track in tracks:
        check_nested(bench, name, track, [s for s in spans if (s["pid"], s["tid"]) == track])
    return trace, spans, figures


def check_nested(bench, name, track, spans):
    """In whole ns. A span lies in the one before it that has not ended, or after it."""
    spans = [(round(1000 * s["ts"]), round(1000 * (s["ts"] + s["dur"])), s["name"]) for s in spans]
    spans.sort(key=lambda s: (s[0], -s[1]))
    open_ends, bad = [], []
    for start, end, what in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            bad.append(what)
        open_ends.append(end)
    bench.check(not bad, f"{name}: spans of track {track} nest: {bad[:5]}")


def check_times(bench, name, trace, spans, categories):
    """Layers take no longer than the job, on one thread after another, and the expected kinds of span are there."""
    job = [s for s in spans if s["cat"] == "job"]
    layers = [s for s in spans if s["cat"] == "op" and s["tid"] == 0 and s["pid"] == 0]
    bench.check(len(job) == 1 + max(s["pid"] for s in spans), f"{name}: one job in each rank")
    total = sum(s["dur"] for s in layers)
    bench.check(0 < total <= job[0]["dur"], f"{name}: {total:.0f} us of layers in a job of {job[0]['dur']:.0f}")
    there = {s["cat"] for s in spans}
    bench.check(categories <= there, f"{name}: has {categories - there or 'all kinds of spans'}")
    bench.check(trace["otherData"]["left_out"] == 0, f"{name}: nothing was left out")


def layer_names(path):
    return {name.rsplit(".", 1)[0] for name in read_safetensors(path)}


def check_profile(bench, record, what, one_thread=True):
    profile = record.get("profile")
    if not bench.check(profile is not None, f"{what}: the record has a profile"):
        return
    layers = profile["layers"]
    seconds = [layer["seconds"] for layer in layers]
    bench.check(0 < len(layers) <= 10 and profile["layer_count"] >= len(layers) and seconds == sorted(seconds, reverse=True),
                f"{what}: at most ten of {profile['layer_count']} layers, the slowest first")
    most = record["measured"].get("wall_seconds", np.inf) if one_thread else np.inf
    bench.check(sum(seconds) <= profile["seconds"] * (1 + 1e-9) <= most * (1 + 1e-9),
                f"{what}: the layers' {sum(seconds):.3f} s are a part of {profile['seconds']:.3f} s, and those of the job's")
    bench.check(all(abs(layer["share"] - layer["seconds"] / profile["seconds"]) < 1e-6 and layer["calls"] > 0 for layer in layers),
                f"{what}: shares are those of the sum")
    ops = profile["ops"]
    bench.check(sum(op["layers"] for op in ops) == profile["layer_count"] and len({op["op"] for op in ops}) == len(ops) and
                abs(sum(op["seconds"] for op in ops) / profile["seconds"] - 1) < 1e-6 and {layer["op"] for layer in layers} <= {op["op"] for op in ops},
                f"{what}: the kinds of ops are all layers together: {ops}")
    limit = profile["limit"]
    for layer in layers:
        if "bound" not in layer:
            bench.check(layer["op"] in ("project", "backproject", "fft", "filter", "spread"), f"{what}: {layer} has no rate")
            continue
        parts = {kind: layer[f"{kind}_per_second"] / limit[f"{kind}_per_second"] for kind in ("flops", "bytes")}
        if not (layer["bound"] == max(parts, key=parts.get) and abs(layer["of_limit"] - max(parts.values())) <= 1e-6 * layer["of_limit"]):
            bench.check(False, f"{what}: {layer} against {limit}")


def check_denoise(bench, model):
    write_png(bench.path("noisy.png"), to_integers(np.clip(picture(150, 130) + 0.1 * draw(3, (150, 130, 3)), 0, 1), np.uint8))
    common = ("denoise", bench.path("noisy.png"))
    options = ("--model", model, "--sigma", "0.1", "--tile", "64", "--halo", "8")
    plain = bench.record(*common, bench.path("plain.png"), *options)
    for name, env, kinds in (("host", {}, {"op", "loop", "read", "write", "batch"}),
                             ("queue", {"TESSERA_QUEUE": "1"}, {"op", "read", "write", "batch", "upload", "download", "device"})):
        record = bench.record(*common, bench.path(f"{name}.png"), *options, "--trace", bench.path(f"{name}.json"), "--profile", env=env)
        if not record or not plain:
            continue
        bench.check(bench.path("plain.png").read_bytes() == bench.path(f"{name}.png").read_bytes(), f"{name}: the same image with a trace")
        trace, spans, _ = read_trace(bench, f"{name}.json")
        check_times(bench, name, trace, spans, kinds)
        ran = {s["name"] for s in spans if s["cat"] == "op"}
        missing = layer_names(model) - ran
        bench.check(not missing, f"{name}: every layer of the network is in the trace: {missing}")
        check_profile(bench, record, name, name == "host")
    bench.check("profile" not in plain, "no profile unless it is asked for")
    shown = bench.run(*common, bench.path("host.png"), *options, "--profile")
    bench.check(shown.status == 0 and "\nprofile   " in shown.out and "GFLOP/s" in shown.out, f"--profile prints layers: {shown}")
    folder = bench.path("folder")
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.png").write_bytes(bench.path("noisy.png").read_bytes())
    if bench.record("denoise", folder, bench.path("all"), *options, "--trace", bench.path("folder.json")):
        _, spans, _ = read_trace(bench, "folder.json")
        bench.check(sum(s["name"] == "finish a file" for s in spans) == 3, "folder: three files were written")
        bench.check(max(s["tid"] for s in spans) < 16, "folder: threads that come and go share tracks")


def check_other_verbs(bench):
    small = ("--problem", "deblur", "--size", "48", "--iterations", "3", "--seed", "1")
    plain = bench.record("reconstruct", bench.path("plain.npy"), *small)
    record = bench.record("reconstruct", bench.path("traced.npy"), *small, "--trace", bench.path("rec.json"), "--profile")
    if plain and record:
        bench.check(bench.path("plain.npy").read_bytes() == bench.path("traced.npy").read_bytes(), "reconstruct: the same image")
        trace, spans, figures = read_trace(bench, "rec.json")
        check_times(bench, "reconstruct", trace, spans, {"op", "batch", "write"})
        bench.check([f["name"] for f in figures] == ["psnr_db"] * 3, "reconstruct: the PSNR of each iteration")
        check_profile(bench, record, "reconstruct")
    bench.path("images").mkdir()
    for seed in range(3):
        write_png(bench.path("images") / f"{seed}.png", to_integers(picture(56, 64, 3, seed) * 0.8, np.uint8))
    keys = {"network": DNCNN, "data": {"folders": ["images"], "crop": 24, "sigma": 0.1, "workers": 2}, "batch": 4, "steps": 12,
            "optimizer": {"rate": 3e-3}, "device": "cpu"}
    runs = {}
    for name, options in (("trained", ()), ("watched", ("--trace", bench.path("train.json"), "--profile"))):
        path = write_config(bench.path(f"{name}.cfg.json"), {**keys, "output": f"{name}.safetensors"}, {})
        runs[name] = bench.record("train", path, *options)
    if all(runs.values()):
        one, two = (read_safetensors(bench.path(f"{name}.safetensors")) for name in runs)
        bench.check(one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one), "train: the same weights")
        trace, spans, figures = read_trace(bench, "train.json")
        check_times(bench, "train", trace, spans, {"op", "read"})
        names = {(s["name"], s["args"]["op"]) for s in spans if s["cat"] == "op" and "args" in s}
        layers = {name.rsplit(".", 1)[0] for name, value in one.items() if value.ndim == 4}
        bench.check({(layer, op) for layer in layers for op in ("conv", "convgrad")} <= names,
                    f"train: each convolution forward and its gradient: {sorted(names)[:8]}")
        bench.check([f["name"] for f in figures] == ["loss"] * 12, "train: the loss of each step")
        check_profile(bench, runs["watched"], "train")
    cube = bench.path("cube.npy")
    np.save(cube, draw(5, (40, 50, 12)).astype(np.float32))
    if bench.record("detect", cube, bench.path("scores.npy"), "--trace", bench.path("detect.json")):
        trace, spans, _ = read_trace(bench, "detect.json")
        check_times(bench, "detect", trace, spans, {"op", "read", "write"})
    study = bench.run("bench", "size", "--models", "random:dncnn", "--widths", "64", "--height", "64", "--repeats", "1",
                      "--trace", bench.path("study.json"), "--device", "cpu")
    if bench.check(study.status == 0, f"bench runs: {study}"):
        read_trace(bench, "study.json")


def check_refused(bench, model):
    noisy = bench.path("noisy.png")
    words = ("denoise", noisy, bench.path("out.png"), "--model", model, "--sigma", "0.1")
    bench.check_refused(bench.run(*words, "--trace", noisy), 2, "--trace", "file of this job")
    bench.check_refused(bench.run(*words, "--trace", bench.path("x.json"), "--json", bench.path("x.json")), 2, "--trace", "--json")
    bench.check_refused(bench.run(*words, "--trace", bench.path("none/x.json")), 1, "--trace", "No such file")
    bench.check_refused(bench.run(*words, "--trace", bench.folder), 1, "--trace", "directory")
    bench.check_refused(bench.run(*words, "--trace", "/dev/null"), 1, "--trace", "regular file")
    cubes = bench.path("cubes")
    cubes.mkdir()
    for name in ("a.npy", "b.npy"):
        (cubes / name).write_bytes(bench.path("cube.npy").read_bytes())
    kept = {path: path.read_bytes() for path in (bench.path("folder/1.png"), bench.path("images/1.png"), cubes / "b.npy")}
    for path, line in zip(kept, (("denoise", bench.path("folder"), bench.path("others"), "--model", model, "--sigma", "0.1"),
                                 ("train", bench.path("trained.cfg.json")), ("detect", cubes, bench.path("others")))):
        for option in ("--json", "--trace"):
            bench.check_refused(bench.run(*line, option, path), 2, option, path.name, "another name")
        bench.check(path.read_bytes() == kept[path], f"{line[0]} keeps a file of a folder that it reads")
    bench.check_refused(bench.run("plan", *words, "--profile"), 2, "plan", "--profile")
    bench.check(not bench.path("out.png").exists() and not leftovers(bench.folder), "nothing was written")


def main():
    bench = Bench(sys.argv[1])
    model = bench.path("model.safetensors")
    write_small_model(bench, model)
    check_denoise(bench, model)
    check_other_verbs(bench)
    check_refused(bench, model)
    bench.finish()


def write_small_model(bench, path):
    """A network of a few layers, trained for one step."""
    bench.path("first").mkdir()
    write_png(bench.path("first") / "0.png", to_integers(picture(48, 48), np.uint8))
    keys = {"network": {**DNCNN, "norm": "none"}, "data": {"folders": ["first"], "crop": 24, "sigma": 0.1}, "batch": 1, "steps": 1,
            "optimizer": {"rate": 1e-3}, "device": "cpu", "output": str(path)}
    bench.record("train", write_config(bench.path("first.json"), keys, {}))


main()
