"""compare_ranks.py PROGRAM --out DIR [--ranks 1,2] [--size 512] [--turns 3]: one image over ranks on the CPU, Tessera and PyTorch in one run.

Both compute in turns, one thread for each rank, with the same network in fp32. Tessera exchanges rows inside the network
(`tessera bench scaling`), PyTorch computes strips with a halo (bench/peers/torch_ranks.py). Of all turns the median of each number of
ranks is kept. Writes scaling_ranks.jsonl and scaling_pytorch.jsonl into DIR, for `tessera report`. Needs PyTorch in the Python that runs it.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def lines_of(command):
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                           env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    if found.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{found.stderr}")
    return [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]


def middle(turns):
    """The line of the median seconds for each number of ranks, with the speedup over the median of the first number."""
    kept = []
    for ranks in sorted({line["ranks"] for turn in turns for line in turn}):
        each = sorted((line for turn in turns for line in turn if line["ranks"] == ranks), key=lambda line: line["seconds"])
        line = dict(each[(len(each) - 1) // 2], turn_seconds=[one["seconds"] for one in each])
        base = (kept or [line])[0]
        for prefix in ("", "denoiser_"):
            speedup = base[f"{prefix}seconds"] / line[f"{prefix}seconds"]
            line[f"{prefix}speedup"], line[f"{prefix}efficiency"] = speedup, speedup * base["ranks"] / ranks
        kept.append(line)
    return kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--size", default="512")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    most = max(map(int, args.ranks.split(",")))
    ours = ["mpirun", "--oversubscribe", "-n", most, args.program, "bench", "scaling", "--problems", "deblur", "--sizes", args.size, "--square", "--threads", "1", "--device",
            "cpu", "--precision", "fp32", "--model", "random:drunet", "--ranks", args.ranks, "--repeats", "3", "--quiet", "--json", "-"]
    theirs = [sys.executable, ROOT / "bench/peers/torch_ranks.py", "--ranks", args.ranks, "--size", args.size, "--repeats", "2"]
    turns = [(lines_of(ours), lines_of(theirs)) for _ in range(args.turns)]
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for name, kept in (("ranks", middle([t[0] for t in turns])), ("pytorch", middle([t[1] for t in turns]))):
        (out / f"scaling_{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
        for line in kept:
            print(f"{line['engine']:8} {line['ranks']:3} ranks {line['seconds']:8.3f} s, speedup {line['speedup']:.2f}, {line['bytes_per_rank'] / 2**20:7.0f} MiB a rank")


main()
