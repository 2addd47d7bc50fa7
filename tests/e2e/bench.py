"""bench.py PROGRAM: the studies print one well-formed line per point, and planned bytes equal counted bytes."""
import json
import sys

from support import Bench, dncnn, write_safetensors

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


def main():
    bench = Bench(sys.argv[1])
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

    bench.check_refused(bench.run("bench", "width"), 2, "width", "size or batch")
    bench.check_refused(bench.run("bench", "size", "--widths", "9:1:2"), 2, "--widths")
    bench.check_refused(bench.run("bench", "batch", "--patches", "12"), 2, "--patches 12")
    bench.check_refused(bench.run("bench", "size", "--models", "random:nothing"), 2, "random:drunet")
    bench.check_refused(bench.run("bench", "size", "--models", "nothing"), 1, "nothing")
    bench.check_refused(bench.run("bench", "size", "--json", "/nowhere/lines"), 1, "/nowhere/lines")
    bench.finish()


main()
