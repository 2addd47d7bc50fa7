"""Compares the diffusion sampler of Tessera with PyTorch in one run on one card: the same network, tiles and batches.

    python bench/studies/compare_dem.py build/tessera --out OUT [--batches 1,4,16,64] [--modes LIST] [--compiled reduce-fp16]
        [--compiled-batches 64,1] [--budget 540]

Tessera is measured before and after PyTorch (bench/peers/torch_diffusion.py), to notice a card that slows down meanwhile; the slower
of the two counts, for the fastest precision, against the fastest of PyTorch's modes. PyTorch's default is eager-tf32 (on the CPU eager-fp32).
Compiled modes take minutes for each batch, so they run last, and only for --compiled-batches; after --budget seconds nothing further
begins, and what was left out is said. Writes OUT/lines.jsonl (all lines as measured) and OUT/table.txt, which is also printed.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

PEER = pathlib.Path(__file__).resolve().parent.parent / "peers" / "torch_diffusion.py"
MIB = 1 << 20


class Run:
    def __init__(self, args):
        self.args, self.out, self.started = args, pathlib.Path(args.out), time.perf_counter()
        self.out.mkdir(parents=True, exist_ok=True)
        self.lines, self.rows = [], []
        (self.out / "lines.jsonl").write_text("")

    def say(self, text=""):
        self.rows.append(text)
        print(text, flush=True)

    def run(self, command, **mark):
        """Runs a program and keeps its JSON lines; a failure is said and the rest goes on."""
        words = [str(word) for word in command]
        started = time.perf_counter()
        if started - self.started > self.args.budget:
            self.say(f"LEFT OUT (--budget is over): {' '.join(words[1:])}")
            return
        result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = [{**json.loads(line), **mark} for line in result.stdout.splitlines() if line.startswith("{")]
        self.lines += found
        with open(self.out / "lines.jsonl", "a") as target:
            target.writelines(json.dumps(line) + "\n" for line in found)
        print(f"# {time.perf_counter() - started:5.1f} s  {' '.join(words[1:])}", file=sys.stderr, flush=True)
        if result.returncode:
            self.say(f"FAILED ({result.returncode}): {' '.join(words[1:])}: {(result.stderr.strip().splitlines() or [''])[-1]}")
        for line in found:
            if "error" in line:
                self.say(f"FAILED: {line['engine']} batch {line['batch']}: {line['error']}")

    def tessera(self, **mark):
        a = self.args
        model = ("--models", a.model) if a.model else ()
        self.run([a.program, "bench", "dem", "--device", a.device, "--batches", a.batches, "--steps", a.steps, "--tile", a.tile, "--seconds",
                  a.seconds, "--samplers", a.samplers, *(("--precisions", a.precisions) if a.precisions else ()), *model,
                  "--repeats", a.repeats], **mark)

    def torch(self, mode, batches):
        a = self.args
        self.run([sys.executable, PEER, "--device", a.device, "--modes", mode, "--batches", batches, "--steps", a.steps, "--tile", a.tile,
                  "--seconds", a.seconds, "--repeats", a.repeats, *(("--widths", a.widths) if a.widths else ())])

    def points(self, ours, batch):
        return [p for p in self.lines if "measured" in p and p["batch"] == batch and (p["engine"] == "tessera") == ours]


def rate(point):
    return point["measured"]["tile_steps_per_second"]


def ratio(a, b):
    return f"{a / b:.2f}x" if a and b else "-"


def figures(point):
    """The columns of one point, as far as they were measured."""
    m = point["measured"]
    busy = f"{100 * m['gpu_busy']:.0f} %" if "gpu_busy" in m else "-"
    joules = f"{1e3 * m['joules_per_tile_step']:.2f}" if "joules_per_tile_step" in m else "-"
    return (f"{rate(point):.1f} | {m['ms_per_step']:.3f} | {m['tflops']:.2f} | {100 * m['spread']:.0f} % | {busy} | {joules} | "
            f"{m['peak_bytes']['total'] / MIB:.0f} | {m['driver_bytes'] / MIB:.0f}")


def name(point):
    return " ".join(point[k] for k in ("engine", "precision", "sampler") if k in point) + (f" ({point['moment']})" if "moment" in point else "")


def tell_batch(run, batch):
    ours, theirs = run.points(True, batch), run.points(False, batch)
    run.say(f"\nbatch {batch} | tile-steps/s | ms a step | TFLOP/s | spread | busy | mJ a tile-step | MiB counted | MiB of the driver")
    for point in sorted(ours + theirs, key=rate, reverse=True):
        run.say(f"{name(point)} | {figures(point)}")
    if not ours or not theirs:
        return
    slower = {}
    for point in sorted(ours, key=rate, reverse=True):
        slower[point["precision"], point["sampler"]] = point
    mine, best = max(slower.values(), key=rate), max(theirs, key=rate)
    default = [p for p in theirs if p["engine"] == f"torch-{run.args.default}"]
    planned, counted, driver = (mine["plan"]["peak_bytes"]["total"], mine["measured"]["peak_bytes"]["total"], mine["measured"]["driver_bytes"])
    run.say(f"batch {batch}: {ratio(rate(mine), rate(best))} PyTorch's best ({best['engine']}), "
            f"{ratio(rate(mine), rate(default[0]) if default else None)} its default; memory by the driver's count "
            f"{ratio(driver, best['measured']['driver_bytes'])} of its best's; planned {planned / MIB:.1f}, counted {counted / MIB:.1f}, "
            f"driver {driver / MIB:.1f} MiB ({100 * abs(driver - planned) / planned:.2f} % off)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", default="1,4,16,64")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tile", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--samplers", default="ddim", help="of Tessera; PyTorch's is ddim")
    parser.add_argument("--precisions", help="of Tessera; default: fp16,bf16, on the CPU all")
    parser.add_argument("--model", help="of Tessera; default random:diffusion, which has the shape of PyTorch's")
    parser.add_argument("--widths", help="of PyTorch's network; others than the default only to try this file")
    parser.add_argument("--modes", default="eager-tf32,eager-fp16,eager-bf16,half-fp16,half-bf16,graph-fp16,graph-bf16")
    parser.add_argument("--compiled", default="reduce-fp16", help="compiled modes; empty: none")
    parser.add_argument("--compiled-batches", default="64,1")
    parser.add_argument("--default", help="PyTorch's default mode")
    parser.add_argument("--budget", type=float, default=540, help="seconds")
    parser.add_argument("--once", action="store_true", help="do not measure Tessera again after PyTorch")
    args = parser.parse_args()
    args.default = args.default or ("eager-tf32" if args.device.startswith("cuda") else "eager-fp32")
    args.precisions = args.precisions or ("fp16,bf16" if args.device.startswith("cuda") else None)
    run = Run(args)
    run.tessera(**({} if args.once else {"moment": "before"}))
    run.torch(args.modes, args.batches)
    if not args.once:
        run.tessera(moment="after")
    for mode in filter(None, args.compiled.split(",")):
        for batch in args.compiled_batches.split(","):
            run.torch(mode, batch)
    for batch in args.batches.split(","):
        tell_batch(run, int(batch))
    (run.out / "table.txt").write_text("\n".join(run.rows) + "\n")


main()
