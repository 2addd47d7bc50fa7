"""scaling_tables.py PROGRAM: the tables of docs/scaling.md, simulated by `tessera bench scaling`."""
import json
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
V100, H200 = (BENCH / "machines" / f"{name}-cluster.json" for name in ("v100", "h200"))
PUBLISHED = json.loads((BENCH / "peers" / "deepinv_scaling.json").read_text())
ALL = (1, 2, 4, 8, 16, 32, 64)


def simulate(machine, ranks, *words):
    command = [sys.argv[1], "bench", "scaling", "--machine", machine, "--simulate", ",".join(map(str, ranks)), *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(head, rows):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")


def pair(simulated, published):
    return f"{simulated:.3g} / {published:g} = {simulated / published:.2f}" if published else f"{simulated:.3g} / 0"


def published():
    deepinv = ("--scheme", "deepinv", "--problems", "deblur", "--square")
    rows = []
    for side, table_of in PUBLISHED["strong"]["sizes"].items():
        for p, (ranks, physics, denoiser, total) in zip(simulate(V100, [r[0] for r in table_of], *deepinv, "--sizes", side), table_of):
            rows.append((f"{side}²", ranks, pair(p["gradient_seconds"] + p["gradient_communication_seconds"], physics),
                         pair(p["denoiser_seconds"] + p["denoiser_communication_seconds"], denoiser), pair(p["seconds"], total)))
    table(("image", "GPUs", "physics: simulated / published", "denoiser", "iteration"), rows)
    rows = []
    for name, what, words in (("image", "4096²", (*deepinv, "--sizes", 4096, "--patches", 512, "--batches", 4)),
                              ("volume", "512³", ("--scheme", "deepinv", "--problems", "tomo3d", "--sizes", 512))):
        table_of = PUBLISHED[name]["rows"]
        for p, (ranks, computing, communication, wall) in zip(simulate(V100, [r[0] for r in table_of], *words), table_of):
            own = p["gradient_seconds"] + p["denoiser_seconds"]
            rows.append((what, ranks, pair(own, computing), pair(p["communication_seconds"], communication), pair(own + p["communication_seconds"], wall)))
    table(("problem", "GPUs", "computing: simulated / published", "communication", "wall"), rows)


def milli(seconds):
    return f"{1e3 * seconds:.3g}"


def ours(machine, name, ranks, *words, avoid=8):
    rows = []
    for p, fewer in zip(simulate(machine, ranks, *words), simulate(machine, ranks, *words, "--avoid", avoid)):
        lost = max(p["seconds"] - p["gradient_seconds"] - p["denoiser_seconds"], 0)
        rows.append((name, p["ranks"], milli(p["seconds"]), milli(p["gradient_seconds"]), milli(p["denoiser_seconds"]), milli(lost), f"{p['speedup']:.1f}",
                     f"{p['denoiser_speedup']:.1f}", f"{100 * p['efficiency']:.0f}", f"{100 * p['weak_efficiency']:.0f}",
                     f"{p['bytes_per_rank'] / 2**20:.0f}" + ("" if p["fits"] else " (too many)"), p["binds"], f"{fewer['speedup']:.1f}"))
    return rows


HEAD = ("problem", "GPUs", "ms", "gradient", "denoiser", "communication", "speedup", "of the denoiser", "efficiency %", "weak %", "MiB a rank", "binds",
        "speedup with fewer exchanges")


def main():
    published()
    for machine in (V100, H200):
        print(f"\n{json.loads(machine.read_text())['device']}")
        rows = ours(machine, "deblur 4096²", ALL, "--problems", "deblur", "--sizes", 4096, "--square")
        rows += ours(machine, "deblur 1024 x 683", ALL[:6], "--problems", "deblur", "--sizes", 1024)
        rows += ours(machine, "tomo2d 2048²", ALL, "--problems", "tomo2d", "--sizes", 2048)
        rows += ours(machine, "tomo3d 512³, rows", ALL[1:], "--problems", "tomo3d", "--sizes", 512)
        rows += ours(machine, "tomo3d 512³, slices", ALL[1:], "--problems", "tomo3d", "--sizes", 512, "--slabs")
        table(HEAD, rows)


main()
