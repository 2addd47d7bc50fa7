"""scaling.py PROGRAM: the simulated study of ranks. Its figures belong together, a simulated machine gives deepinv's published times, and errors of
machine files name the key."""
import json
import pathlib
import sys

import numpy as np

from support import Bench

MACHINES = pathlib.Path(__file__).parents[2] / "bench" / "machines"
V100, H200 = MACHINES / "v100-cluster.json", MACHINES / "h200-cluster.json"
KEYS = {"study", "engine", "problem", "input", "ranks", "busy_ranks", "rows", "seconds", "gradient_seconds", "denoiser_seconds", "communication_seconds", "speedup",
        "efficiency", "denoiser_speedup", "bytes_per_rank", "simulated", "checked", "machine", "scheme", "binds", "lost_seconds"}

# deepinv on V100s, 4 a node: see its "source".
PUBLISHED = json.loads((MACHINES.parent / "peers" / "deepinv_scaling.json").read_text())
WITHIN = 0.15


def simulate(bench, machine, ranks, *words):
    result = bench.run("bench", "scaling", "--machine", machine, "--simulate", ",".join(map(str, ranks)), *words)
    bench.check(result.status == 0, f"runs: {words}: {result}")
    points = [json.loads(line) for line in result.out.splitlines()]
    for p in points:
        what = f"{' '.join(map(str, words))} on {p['ranks']}"
        bench.check(KEYS <= p.keys() and p["study"] == "scaling" and p["simulated"] is True, f"{what}: keys {KEYS - p.keys()}")
        parts = p["gradient_seconds"] + p["denoiser_seconds"] + p["communication_seconds"] + p.get("other_seconds", 0)
        bench.check(abs(parts - p["seconds"]) < 1e-9 * p["seconds"], f"{what}: the parts are the whole: {parts} {p['seconds']}")
        bench.check(p["speedup"] <= p["ranks"] / p["base_ranks"] * (1 + 1e-9) or p["scheme"] == "deepinv", f"{what}: speedup {p['speedup']}")
        bench.check(p["busy_ranks"] <= p["ranks"] and min(p["lost_seconds"].values()) >= 0, f"{what}: {p}")
    return points


def check_ours(bench):
    ranks = (1, 2, 3, 4, 8, 16, 32, 64)
    for machine in (V100, H200):
        for problem, size in (("deblur", 4096), ("tomo2d", 2048)):
            points = simulate(bench, machine, ranks, "--problems", problem, "--sizes", size)
            what = f"{machine.name} {problem}"
            bench.check([p["ranks"] for p in points] == list(ranks), f"{what}: a line for each number of ranks")
            if len(points) < len(ranks):
                continue
            seconds, held = [p["seconds"] for p in points], [p["bytes_per_rank"] for p in points]
            bench.check(machine == H200 or all(a > b for a, b in zip(seconds, seconds[1:])), f"{what}: more ranks are faster: {seconds}")
            bench.check(all(a > b for a, b in zip(held, held[1:])), f"{what}: bytes of a rank fall: {held}")
            bench.check(points[0]["communication_seconds"] == 0 and points[0]["sent_bytes"] == 0, f"{what}: one rank sends nothing")
            bench.check(all(p["communication_seconds"] > 0 and p["sent_bytes"] > 0 and 0 < p["weak_efficiency"] <= 1 + 1e-9 for p in points[1:]), f"{what}: others do")
            fewer = simulate(bench, machine, (1, 64), "--problems", problem, "--sizes", size, "--avoid", 8)
            bench.check(fewer[0]["seconds"] == seconds[0] and fewer[1]["seconds"] <= seconds[-1] * (1 + 1e-9), f"{what}: fewer exchanges are not slower: {fewer}")
    photo, square = (simulate(bench, V100, (1,), "--problems", "deblur", "--sizes", 1024, *extra)[0]["input"]["width"] for extra in ((), ("--square",)))
    bench.check((photo, square) == (683, 1024), f"shapes of photographs: {photo} {square}")
    rows, slices = (simulate(bench, V100, (2, 16), "--problems", "tomo3d", "--sizes", 256, *extra)[1] for extra in ((), ("--slabs",)))
    bench.check((rows["cut"], slices["cut"]) == ("rows", "slices") and slices["seconds"] < rows["seconds"], f"volumes: {rows} {slices}")
    whole, bands = (p["gradient_communication_seconds"] for p in (rows, slices))
    bench.check(0 < bands < 0.5 * whole, f"slabs exchange the rows of views that see them: {bands} s, whole views {whole} s")


def check_sent(bench):
    """The rows of the real plan: DnCNN exchanges one row before each of its 20 convolutions, with both neighbours of an inner strip."""
    point = simulate(bench, V100, (1, 4), "--problems", "deblur", "--sizes", 512, "--square", "--models", "random:dncnn")[1]
    bench.check(point["sent_bytes"] == 2 * 512 * (3 + 19 * 64) * 4, f"bytes that a rank sends: {point['sent_bytes']}")


def check_one_rank(bench):
    """One rank takes what the plan of the whole image does: measured rates, without a machine's."""
    links = bench.path("links.json")
    links.write_text(json.dumps({"network": json.loads(V100.read_text())["network"]}))
    result = bench.run("bench", "scaling", "--machine", links, "--simulate", "1,2", "--problems", "deblur", "--sizes", 256, "--square", "--models", "drunet-color-small",
                       "--device", "cpu", "--threads", 1)
    bench.check(result.status == 0, f"rates of this device: {result}")
    points = [json.loads(line) for line in result.out.splitlines()]
    size = bench.run("bench", "size", "--models", "drunet-color-small", "--height", 256, "--widths", 256, "--repeats", 1, "--device", "cpu", "--threads", 1)
    plan = json.loads(size.out.splitlines()[0])["plan"]
    one = points[0]["denoiser_seconds"]
    # `size` runs first and may find better rates, which it keeps for its plan.
    again = bench.run("bench", "scaling", "--machine", links, "--simulate", "1", "--problems", "deblur", "--sizes", 256, "--square", "--models", "drunet-color-small",
                      "--device", "cpu", "--threads", 1)
    one = json.loads(again.out.splitlines()[0])["denoiser_seconds"]
    bench.check(points[0]["op_times"] == "measured on this device" and points[0]["checked"] == "not checked against real runs", f"says where times are from: {points[0]}")
    bench.check(abs(one - plan["seconds"]) < 0.02 * plan["seconds"], f"one rank takes the plan's seconds: {one} {plan['seconds']}")


def compare(bench, what, simulated, published):
    bench.check(abs(simulated / published - 1) <= WITHIN, f"{what}: {simulated:.4f} s, published {published} s")


def check_published(bench):
    deepinv = ("--scheme", "deepinv", "--problems", "deblur", "--square")
    for side, rows in PUBLISHED["strong"]["sizes"].items():
        for p, (_, physics, denoiser, total) in zip(simulate(bench, V100, [r[0] for r in rows], *deepinv, "--sizes", side), rows):
            what = f"deepinv {side} on {p['ranks']}"
            compare(bench, f"{what}: physics", p["gradient_seconds"] + p["gradient_communication_seconds"], physics)
            compare(bench, f"{what}: denoiser", p["denoiser_seconds"] + p["denoiser_communication_seconds"], denoiser)
            compare(bench, f"{what}: iteration", p["seconds"], total)
    rows = PUBLISHED["image"]["rows"]
    for p, (_, computing, _, wall) in zip(simulate(bench, V100, [r[0] for r in rows], *deepinv, "--sizes", 4096, "--patches", 512, "--batches", 4), rows):
        own = p["gradient_seconds"] + p["denoiser_seconds"]
        compare(bench, f"image on {p['ranks']}: computing", own, computing)
        compare(bench, f"image on {p['ranks']}: wall", own + p["communication_seconds"], wall)
    rows = PUBLISHED["volume"]["rows"]
    for p, (_, computing, _, wall) in zip(simulate(bench, V100, [r[0] for r in rows], "--scheme", "deepinv", "--problems", "tomo3d", "--sizes", 512), rows):
        compare(bench, f"volume on {p['ranks']}: computing", p["denoiser_seconds"], computing)
        compare(bench, f"volume on {p['ranks']}: wall", p["seconds"], wall)


def check_plan(bench):
    """plan denoise for ranks of a machine: as the study, and refused for a run."""
    np.save(bench.path("noisy.npy"), np.zeros((512, 256, 3), np.float32))
    words = (bench.path("noisy.npy"), bench.path("out.npy"), "--sigma", 0.1, "--model", "random:drunet")
    record = bench.path("plan.json")
    result = bench.run("plan", "denoise", *words, "--ranks", 4, "--machine", V100, "--json", record)
    bench.check(result.status == 0 and "elsewhere 4 rank(s) of V100" in result.out and "simulated" in result.out, f"plan says it: {result}")
    there = json.loads(record.read_text())["plan"]["elsewhere"]
    bench.check(there["ranks"] == there["busy_ranks"] == 4 and there["rows"] == 128 and there["simulated"] and there["fits"] and
                1 < there["speedup"] <= 4 and abs(there["denoiser_seconds"] + there["communication_seconds"] - there["seconds"]) < 1e-12, f"its figures: {there}")
    np.save(bench.path("thin.npy"), np.zeros((16, 2048, 3), np.float32))
    result = bench.run("plan", "denoise", bench.path("thin.npy"), *words[1:], "--ranks", 4, "--machine", V100, "--json", record)
    there = json.loads(record.read_text())["plan"]["elsewhere"]
    bench.check(there["busy_ranks"] == 4 and there["rows"] * there["columns"] * 4 >= 16 * 2048 and there["blocks_across"] > 1, f"blocks, where strips would be too thin: {there}")
    bench.check_refused(bench.run("denoise", *words, "--ranks", 4, "--machine", V100), 2, "--machine", "plan")
    bench.check_refused(bench.run("plan", "denoise", *words, "--ranks", 4), 2, "--ranks", "--machine")
    bench.check_refused(bench.run("plan", "denoise", *words, "--ranks", 4, "--machine", MACHINES / "h100.json"), 1, "h100.json", "network")


def check_plan_reconstruct(bench):
    """plan reconstruct for ranks of a machine: iterations of the study, with the steps of this recipe, for all problems and priors."""
    record = bench.path("plan.json")
    measured = bench.path("measured.json")
    np.save(bench.path("blurred.npy"), np.zeros((2 * 90, 120, 3), np.float32))
    measured.write_text(json.dumps({"operator": "blur", "angles": [0, 90], "sigma": [2, 1], "measurement": "blurred.npy", "range": [0, 1], "noise": 0.01}))
    points = {}
    for name, words in (("deblur", ("deblur", "--size", 256, "--model", "random:drunet")), ("tomo2d", ("tomo2d", "--size", 256)), ("unknown", (measured,)),
                        ("slices", ("tomo3d", "--size", 64)), ("slabs", ("tomo3d", "--size", 64, "--prior", "volume"))):
        for ranks in (1, 4):
            result = bench.run("plan", "reconstruct", bench.path("out.npy"), "--problem", *words, "--iterations", 5, "--ranks", ranks, "--machine", V100, "--json", record)
            bench.check(result.status == 0 and f"elsewhere {ranks} rank(s) of V100" in result.out and "simulated" in result.out, f"plan {name} says it: {result}")
            there = points[name, ranks] = json.loads(record.read_text())["plan"]["elsewhere"]
            parts = [there[f"{part}_seconds"] for part in ("gradient", "denoiser", "communication")]
            bench.check(there["busy_ranks"] == ranks and abs(sum(parts) - there["seconds"]) < 1e-12 and parts[0] > 0 and parts[1] > 0 and (parts[2] > 0) == (ranks > 1), f"its figures: {there}")
        one, four = points[name, 1], points[name, 4]
        bench.check(four["bytes_per_rank"] < one["bytes_per_rank"] and four["gradient_seconds"] < one["gradient_seconds"], f"{name}: parts fall: {one} {four}")
        bench.check(four["slices" if words[0] == "tomo3d" else "rows"] == {"deblur": 64, "tomo2d": 64, "unknown": four.get("rows"), "slices": 16, "slabs": 16}[name], f"{name}: parts: {four}")
    way = points["unknown", 4].get("blur_exchange", {})
    bench.check(way.get("way") == "halo" and way["because"] == "cost" and way["rows"] > 0 and 0 < way["halo_seconds"] < way["spectrum_seconds"] and 0 < way["halo_bytes"] < way["spectrum_bytes"] and
                not any("blur_exchange" in point for key, point in points.items() if key != ("unknown", 4)), f"blurs by halos between GPUs of a node, and why: {way}")
    study = simulate(bench, V100, [4], "--problems", "deblur", "--sizes", 256, "--square", "--models", "random:drunet")[0]
    plan = points["deblur", 4]
    bench.check(abs(plan["denoiser_seconds"] - 5 * study["denoiser_seconds"]) < 1e-9 and abs(plan["gradient_seconds"] - 7 * study["gradient_seconds"]) < 1e-9 and
                plan["bytes_per_rank"] == study["bytes_per_rank"], f"as the study, with two gradients more for the start: {plan} {study}")
    bench.check_refused(bench.run("reconstruct", bench.path("out.npy"), "--problem", "deblur", "--ranks", 4, "--machine", V100), 2, "--machine", "plan")
    bench.check_refused(bench.run("plan", "reconstruct", bench.path("out.npy"), "--problem", "deblur", "--ranks", 4), 2, "--ranks", "--machine")


def check_refused(bench):
    def refused(words, status, *parts):
        bench.check_refused(bench.run("bench", "scaling", *words), status, *parts)

    def machine(change):
        facts = json.loads(V100.read_text())
        change(facts)
        path = bench.path("bad.json")
        path.write_text(json.dumps(facts))
        return ("--simulate", "1,2", "--machine", path, "--problems", "deblur", "--sizes", 256)

    refused(machine(lambda f: f.pop("network")), 1, "bad.json", "network")
    refused(machine(lambda f: f["network"]["outside"].pop("bytes_per_second")), 1, "bad.json", "network.outside.bytes_per_second")
    refused(machine(lambda f: f["network"]["inside"].update(latency="fast")), 1, "network.inside.latency")
    refused(machine(lambda f: f.update(units="many")), 1, "units")
    refused(machine(lambda f: f["peer"].pop("operators")) + ("--scheme", "deepinv"), 1, "peer.operators")
    refused(("--simulate", "1,2"), 2, "--simulate", "--machine")
    refused(("--machine", V100), 2, "--machine", "--simulate")
    refused(("--simulate", "0", "--machine", V100), 2, "--simulate")
    refused(("--simulate", "1", "--machine", V100, "--problems", "sharpen"), 2, "--problems sharpen", "deblur")
    refused(("--simulate", "1", "--machine", V100, "--scheme", "blocks"), 2, "--scheme blocks", "strips")
    refused(("--ranks", "2", "--problems", "deblur", "--sizes", "64"), 2, "--ranks 2", "mpirun")


if __name__ == "__main__":
    bench = Bench(sys.argv[1])
    check_ours(bench)
    check_sent(bench)
    check_one_rank(bench)
    check_published(bench)
    check_plan(bench)
    check_plan_reconstruct(bench)
    check_refused(bench)
    bench.finish()
