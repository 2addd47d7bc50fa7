"""Compares Tessera with PyTorch on one card in one run of a few minutes: the same networks, sizes and batches.

    python bench/studies/compare_gpu.py build/tessera --out OUT [--quick] [--parts whole,limits,size,batch] [--peers OUT/torch.jsonl]

Writes OUT/tessera.jsonl and OUT/torch.jsonl (all lines, as measured) and OUT/table.txt, which is also printed. Tessera's
networks at 2048^2 are timed before and after PyTorch's, to notice a card that slows down meanwhile. --peers reads
PyTorch's lines of an earlier run instead of measuring again: for work on a kernel, not for figures to publish.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

PEER = pathlib.Path(__file__).resolve().parent.parent / "peers" / "torch_cuda.py"
NETWORKS = ("drunet", "unet", "dncnn")
MIB = 1 << 20
QUICK_WIDTHS = "1024,1092,1228,1296,2048"


class Run:
    def __init__(self, args):
        self.args, self.out = args, pathlib.Path(args.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.ours, self.theirs, self.rows = [], [], []
        self.old = [json.loads(line) for line in open(args.peers)] if args.peers else None
        for name in ("tessera.jsonl", "torch.jsonl"):
            (self.out / name).write_text("")

    def lines(self, command, keep, file, **mark):
        """Runs a program, keeps its JSON lines; one that fails is told and the rest goes on."""
        started = time.perf_counter()
        result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [{**json.loads(line), **mark} for line in result.stdout.splitlines() if line.startswith("{")]
        with open(self.out / file, "a") as target:
            target.writelines(json.dumps(line) + "\n" for line in lines)
        keep.extend(lines)
        words = " ".join(str(word) for word in command[1:])
        print(f"# {time.perf_counter() - started:5.1f} s  {words}", file=sys.stderr, flush=True)
        if result.returncode:
            self.say(f"FAILED ({result.returncode}): {words}: {result.stderr.strip().splitlines()[-1:]}")
        return lines

    def tessera(self, study, *options, **mark):
        a = self.args
        return self.lines([a.program, "bench", study, "--device", a.device, "--height", a.height, "--repeats", a.repeats, *options],
                          self.ours, "tessera.jsonl", **mark)

    def torch(self, part, *options):
        if self.args.no_torch:
            return []
        if self.old is not None:
            return []
        extra = ["--quick"] if self.args.quick else []
        if not self.args.device.startswith("cuda"):
            extra += ["--device", "cpu", "--patches", self.args.patches or "64"]
        return self.lines([sys.executable, PEER, "--parts", part, "--height", self.args.height, *extra, *options], self.theirs,
                          "torch.jsonl")

    def peers(self, **keys):
        return [p for p in (self.old if self.old is not None else self.theirs) if all(p.get(k) == v for k, v in keys.items())]

    def say(self, text=""):
        self.rows.append(text)
        print(text, flush=True)


def total(point):
    return point["measured"]["peak_bytes"]["total"]


def seconds(point):
    return point["measured"]["seconds"]


def ratio(a, b):
    return f"{a / b:.2f}x" if a and b else "-"


def tell_ceiling(run):
    run.torch("ceiling")
    rates = {p["what"]: p["measured"] for p in run.peers(study="ceiling")}
    if rates:
        run.say(f"card: {run.peers(study='ceiling')[0]['device_name']}; 8192^3 matrix product fp16 {rates['float16']['tflops']:.0f}, "
                f"bf16 {rates['bfloat16']['tflops']:.0f} TFLOP/s; copy {rates['copy']['bytes_per_second'] * 1e-12:.2f} TB/s")
    return max((r["tflops"] for r in rates.values() if "tflops" in r), default=None)


def tell_whole(run, matrix):
    """Three networks, whole image: the table's heart."""
    side = run.args.height
    run.say(f"\n{side}x{side} colour, whole image | tessera ms (before / after torch) | torch.compile ms | speed | TFLOP/s | of the matrix "
            "rate | tessera MiB (planned, counted, driver) | torch MiB | memory")
    for name in NETWORKS:
        options = ("--models", f"random:{name}", "--widths", side)
        before = run.tessera("size", *options, moment="before")
        run.torch("whole", "--models", name)
        after = [] if run.args.quick else run.tessera("size", *options, moment="after")
        if not before:
            continue
        mine = min(before + after, key=seconds) if run.args.best else (after or before)[-1]
        peer = next(iter(run.peers(study="whole", model=f"random:{name}")), None)
        times = " / ".join(f"{1e3 * seconds(p):.2f}" for p in before + after)
        rate = 1e-12 * mine["flop"] / seconds(mine)
        share = f"{100 * rate / matrix:.0f} %" if matrix else "-"
        mine_bytes = (mine["plan"]["peak_bytes"]["total"], total(mine), mine["measured"]["driver_bytes"])
        run.say(" | ".join([f"{name:7}", times, f"{1e3 * seconds(peer):.2f}" if peer else "-",
                            ratio(peer and seconds(peer), seconds(mine)), f"{rate:.1f}", share,
                            ", ".join(f"{n / MIB:.0f}" for n in mine_bytes), f"{total(peer) / MIB:.0f}" if peer else "-",
                            ratio(total(mine), peer and total(peer))]))


def tell_limits(run):
    """DRUNet within less memory, against the whole image."""
    if not run.args.device.startswith("cuda"):
        return
    side = run.args.height
    whole = [p for p in run.ours if p["model"] == "random:drunet" and p["input"]["width"] == side and p["plan"]["tiles"] == 1]
    run.say("\nDRUNet within a limit | tiles, halo | counted MiB | driver MiB | ms | against the whole image")
    for limit, halo in (("1G", "exact"), ("400M", "auto")):
        for p in run.tessera("size", "--models", "random:drunet", "--widths", side, "--memory", limit, "--halo", halo, limit=limit):
            run.say(f"--memory {limit} --halo {halo} | {p['plan']['tiles']}, {p['plan']['halo']} | {total(p) / MIB:.0f} | "
                    f"{p['measured']['driver_bytes'] / MIB:.0f} | {1e3 * seconds(p):.2f} | "
                    f"{ratio(seconds(p), seconds(whole[-1]) if whole else None)}")


def tell_size(run):
    widths = run.args.widths or (QUICK_WIDTHS if run.args.quick else None)
    chosen = ("--widths", widths) if widths else ()
    ours = run.tessera("size", *chosen)
    run.torch("size", *chosen)
    run.say("\nsize study | widths | largest |planned - counted| | largest |planned - driver| (allowed: 1 % + 8 MiB) | grows | largest "
            "step between neighbours | torch default: largest step | speed against fp16 channels-last, least and most")
    for name in NETWORKS:
        mine = sorted((p for p in ours if p["model"] == f"random:{name}"), key=lambda p: p["input"]["width"])
        if not mine:
            continue
        planned = [p["plan"]["peak_bytes"]["total"] for p in mine]
        counted = [abs(a - total(p)) / a for a, p in zip(planned, mine)]
        driver = [abs(a - p["measured"]["driver_bytes"]) for a, p in zip(planned, mine)]
        kept = all(d <= 0.01 * a + 8 * MIB for a, d in zip(planned, driver))
        default = sorted(run.peers(study="size", engine="torch-default", model=f"random:{name}"), key=lambda p: p["input"]["width"])
        half = {p["input"]["width"]: seconds(p) for p in
                run.peers(study="size", engine="torch-fp16-channels-last", model=f"random:{name}")}
        speeds = [half[p["input"]["width"]] / seconds(p) for p in mine if p["input"]["width"] in half]
        run.say(f"{name:7} | {len(mine)} | {100 * max(counted):.3f} % | {max(driver) / MIB:.1f} MiB ({'kept' if kept else 'NOT kept'}) | "
                f"{'yes' if planned == sorted(planned) else 'NO'} | {100 * steps(planned):.1f} % | "
                f"{f'{steps([total(p) for p in default]):.2f}x' if len(default) > 1 and total(default[0]) else '-'} | "
                f"{f'{min(speeds):.2f}x, {max(speeds):.2f}x' if speeds else '-'}")


def steps(values):
    """The largest relative change between neighbours, up or down."""
    return max((max(a, b) / min(a, b) - 1 for a, b in zip(values, values[1:])), default=0)


def tell_batch(run):
    chosen = ("--patches", run.args.patches or "128") if run.args.patches or run.args.quick else ()
    ours = run.tessera("batch", *chosen)
    if not run.args.quick:
        run.torch("batch-compile")
    run.torch("batch")
    run.say("\nbatch study, DRUNet, images a second | batch 1 | 8 | best | batch 8 of the best | with transfer, best | torch's best | speed | "
            "auto takes | of the best")
    for patch in sorted({p["patch"] for p in ours}):
        mine = [p for p in ours if p["patch"] == patch and not p.get("auto")]
        resident = {p["batch"]: p["images_per_second"] for p in mine if not p["transfer"]}
        best = max(resident.values())
        moved = max((p["images_per_second"] for p in mine if p["transfer"]), default=0)
        automatic = next(p for p in ours if p["patch"] == patch and p.get("auto"))
        peers = run.peers(study="batch", patch=patch, transfer=False)
        peer = max(peers, key=lambda p: p["images_per_second"], default=None)
        run.say(f"patch {patch} | {resident.get(1, 0):.1f} | {resident.get(8, 0):.1f} | {best:.1f} | {100 * resident.get(8, 0) / best:.0f} % | "
                f"{moved:.1f} | " + (f"{peer['images_per_second']:.1f} ({peer['engine']}, batch {peer['batch']})" if peer else "-") +
                f" | {ratio(best, peer and peer['images_per_second'])} | batch {automatic['batch']} | "
                f"{100 * automatic['share_of_best']:.1f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--out", default="build/compare_gpu")
    parser.add_argument("--quick", action="store_true", help="five widths, patches of 128, nothing timed twice")
    parser.add_argument("--parts", default="whole,limits,size,batch")
    parser.add_argument("--peers", help="PyTorch's lines of an earlier run")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--best", action="store_true", help="of before and after take the faster; without it the later")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--height", type=int, default=2048)
    parser.add_argument("--widths")
    parser.add_argument("--patches")
    parser.add_argument("--repeats", type=int, default=11)
    run = Run(parser.parse_args())
    parts = run.args.parts.split(",")
    matrix = tell_ceiling(run)
    if "whole" in parts:
        tell_whole(run, matrix)
    if "limits" in parts:
        tell_limits(run)
    if "size" in parts:
        tell_size(run)
    if "batch" in parts:
        tell_batch(run)
    (run.out / "table.txt").write_text("\n".join(run.rows) + "\n")


if __name__ == "__main__":
    main()
