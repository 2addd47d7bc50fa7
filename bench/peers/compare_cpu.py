"""Compares Tessera with PyTorch on the CPU in one run: the same network, weights, image and threads.

    python bench/peers/compare_cpu.py [--size 512] [--threads 2] [--networks drunet,dncnn] > compare.jsonl

Every measurement runs in its own process. PyTorch runs in both layouts, in fp32 and with its two bf16 modes (autocast,
oneDNN's fast-math); the best of them is the peer. Memory is the growth of the resident peak from after loading to the
end, on both sides. Prints one JSON line per measurement; the table of ratios goes to standard error.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TORCH = {"fp32": ["--mode=fp32"], "bf16": ["--mode=autocast", "--mode=fastmath"]}


def make_inputs(folder, network, size):
    code = ("import sys, numpy, torch; sys.path.insert(0, sys.argv[1]); from networks import NETWORKS\n"
            "torch.manual_seed(0); torch.save(NETWORKS[sys.argv[2]]().state_dict(), sys.argv[3])\n"
            "numpy.save(sys.argv[4], torch.rand(int(sys.argv[5]), int(sys.argv[5]), 3).numpy())\n")
    weights, image = folder / f"{network}.pth", folder / "image.npy"
    subprocess.run([sys.executable, "-c", code, HERE, network, weights, image, str(size)], check=True)
    return weights, image


def peer(args, network, weights, layout, mode):
    command = [sys.executable, HERE / "torch_cpu.py", network, str(args.size), f"--layout={layout}", mode,
               f"--threads={args.threads}", f"--weights={weights}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(args, network, weights, image, precision, folder, extra=("--tile", "whole")):
    records = []
    for _ in range(args.repeats):
        command = [args.tessera, "denoise", image, folder / "out.npy", "--model", weights, "--sigma", "0.1", "--quiet",
                   "--precision", precision, "--threads", str(args.threads), "--device", "cpu", *extra, "--json", "-"]
        records.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    devices = {r["device"] for r in records}
    if devices != {"cpu"}:
        sys.exit(f"compare_cpu.py compares CPUs, but tessera ran on {devices}")
    measured = [r["measured"] for r in records]
    return {"study": "cpu", "engine": "tessera", "version": records[0]["version"], "network": network, "size": args.size,
            "mode": precision, "threads": args.threads, "device": "cpu", "device_name": records[0]["device_name"],
            "seconds": statistics.median(m["seconds"] for m in measured), "best": min(m["seconds"] for m in measured),
            "repeats": args.repeats, "options": " ".join(extra), "weight_bytes": records[0]["plan"]["peak_bytes"]["weights"],
            "growth_bytes": max(m["resident_bytes"] - m["loaded_bytes"] for m in measured)}


def tell(network, size, precision, mine, best):
    print(f"{network} {size}x{size} {precision} on {mine['device_name']} ({mine['options']}): tessera {mine['seconds']:.2f} s, "
          f"{mine['growth_bytes'] / 2**20:.0f} MiB; PyTorch {best['version']} ({best['layout']}, {best['mode']}) "
          f"{best['seconds']:.2f} s, {best['growth_bytes'] / 2**20:.0f} MiB; "
          f"speed {best['seconds'] / mine['seconds']:.2f}x, memory {mine['growth_bytes'] / best['growth_bytes']:.2f}x",
          file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default=str(HERE.parent.parent / "build" / "tessera"))
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--networks", default="drunet,dncnn")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for network in args.networks.split(","):
            weights, image = make_inputs(folder, network, args.size)
            for precision in args.precisions.split(","):
                theirs = [peer(args, network, weights, layout, mode)
                          for layout in ("nhwc", "nchw") for mode in TORCH[precision]]
                mine = ours(args, network, weights, image, precision, folder)
                best = min(theirs, key=lambda line: line["seconds"])
                # The same job within half of PyTorch's growth (less 3 MiB for stacks and tables), tiles as they come.
                half = best["growth_bytes"] // 2 - 3 * 2**20
                limited = mine
                if mine["growth_bytes"] > best["growth_bytes"] / 2:
                    limited = ours(args, network, weights, image, precision, folder,
                                   ("--memory", str(mine["weight_bytes"] + half)))
                for line in theirs + [mine] + ([limited] if limited is not mine else []):
                    print(json.dumps(line), flush=True)
                for line in [mine] + ([limited] if limited is not mine else []):
                    tell(network, args.size, precision, line, best)


if __name__ == "__main__":
    main()
