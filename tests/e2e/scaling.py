"""scaling.py PROGRAM: the simulated study of ranks. Its figures belong together, a simulated machine gives deepinv's published times, and errors of
machine files name the key."""
import json
import pathlib
import sys

from support import Bench

MACHINES = pathlib.Path(__file__).parents[2] / "bench" / "machines"
V100, H200 = MACHINES / "v100-cluster.json", MACHINES / "h200-cluster.json"
KEYS = {"study", "engine", "problem", "input", "ranks", "busy_ranks", "rows", "seconds", "gradient_seconds", "denoiser_seconds", "communication_seconds", "speedup",
        "efficiency", "denoiser_speedup", "bytes_per_rank", "simulated", "checked", "machine", "scheme", "binds", "lost_seconds"}

# numpex/benchmark_invprob_largescale, results of deepinv on V100-SXM2-32GB, 4 a node: seconds of an iteration. Strong scaling of multi-frame
# super-resolution, tiles of 448 with halos of 32, batches of 32: {side: {GPUs: (physics, denoiser, total)}}. One GPU does not cut the image.
STRONG = {
    2048: {1: (.0168, .8782, .9114), 2: (.0109, .6608, .6882), 4: (.0059, .3737, .3959), 8: (.0065, .2178, .2408), 16: (.0129, .1176, .1468),
           32: (.0123, .0647, .0932), 64: (.0133, .0648, .0940)},
    4096: {1: (.0627, 3.5358, 3.6602), 2: (.0399, 2.8153, 2.9170), 4: (.0215, 1.3909, 1.4756), 8: (.0226, .6740, .7591), 16: (.0513, .4109, .5241),
           32: (.0516, .2499, .3633), 64: (.0507, .1496, .2617)},
    8192: {2: (.1563, 9.1705, 9.5669), 4: (.0842, 4.6898, 5.0167), 8: (.0855, 2.4074, 2.7395), 16: (.1864, 1.4145, 1.8410), 32: (.1918, .7736, 1.2067),
           64: (.1963, .4911, .9273)}}
# Its study of communication: {GPUs: (computing, wall)}. Its wall has no part that every rank repeats, and its communication includes waiting for
# slower ranks, which is not simulated. Tiles of 512 in batches of 4; volumes of 512 in tiles of 8 x 256 x 256.
IMAGE = {1: (4.434, 4.439), 2: (2.272, 2.304), 4: (1.128, 1.160), 8: (.5605, .607), 16: (.2858, .374), 32: (.1488, .234), 64: (.0816, .167)}
VOLUME = {2: (86.07, 86.98), 4: (43.05, 44.59), 8: (21.26, 22.13), 16: (10.67, 11.34), 32: (5.354, 5.779), 64: (2.775, 3.003)}
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
    for side, table in STRONG.items():
        for p, (physics, denoiser, total) in zip(simulate(bench, V100, table, *deepinv, "--sizes", side), table.values()):
            what = f"deepinv {side} on {p['ranks']}"
            compare(bench, f"{what}: physics", p["gradient_seconds"] + p["gradient_communication_seconds"], physics)
            compare(bench, f"{what}: denoiser", p["denoiser_seconds"] + p["denoiser_communication_seconds"], denoiser)
            compare(bench, f"{what}: iteration", p["seconds"], total)
    for p, (computing, wall) in zip(simulate(bench, V100, IMAGE, *deepinv, "--sizes", 4096, "--patches", 512, "--batches", 4), IMAGE.values()):
        own = p["gradient_seconds"] + p["denoiser_seconds"]
        compare(bench, f"image on {p['ranks']}: computing", own, computing)
        compare(bench, f"image on {p['ranks']}: wall", own + p["communication_seconds"], wall)
    for p, (computing, wall) in zip(simulate(bench, V100, VOLUME, "--scheme", "deepinv", "--problems", "tomo3d", "--sizes", 512), VOLUME.values()):
        compare(bench, f"volume on {p['ranks']}: computing", p["denoiser_seconds"], computing)
        compare(bench, f"volume on {p['ranks']}: wall", p["seconds"], wall)


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
    check_one_rank(bench)
    check_published(bench)
    check_refused(bench)
    bench.finish()
