"""One image over processes of PyTorch on the CPU, as tools for large images do it: each process takes a strip of rows with a halo on
both sides, and the first one gathers the results. Prints a JSON line for each number of processes, with the keys of `tessera bench scaling`.

    python torch_ranks.py --ranks 1,2 --size 1024 [--network drunet] [--halo 32] [--threads 1] [--repeats 3]

The halo is computed twice, and the result differs from that of the whole image by what lies beyond it. Processes talk by
torch.distributed (gloo). Seconds are those of the last process, in the median of the repeats. "bytes_per_rank" is the growth of
the resident memory of the process that grows most, weights included. Layouts are tried with one process; the faster one is taken for all.
"""
import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

from networks import NETWORKS
from torch_cpu import status


def strip(rank, ranks, rows, halo):
    """The rows of a rank, and how many of them at each end are halo. Rows are whole multiples of 8, as the network's levels need."""
    edges = [rows * r // ranks // 8 * 8 for r in range(ranks)] + [rows]
    first, last = max(edges[rank] - halo, 0), min(edges[rank + 1] + halo, rows)
    return first, last, edges[rank] - first, last - edges[rank + 1]


def work(rank, ranks, args, layout, folder):
    torch.set_num_threads(args.threads)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{ranks}-{layout}", rank=rank, world_size=ranks)
    before = status("VmRSS")
    torch.manual_seed(0)
    model = NETWORKS[args.network]().eval()
    image = torch.rand(1, 3, args.size, args.size)
    first, last, above, below = strip(rank, ranks, args.size, args.halo)
    x = image[:, :, first:last].contiguous()
    if layout == "nhwc":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    times = []
    with torch.inference_mode():
        for _ in range(args.repeats + 1):
            dist.barrier()
            begun = time.perf_counter()
            y = model(x, 0.1)
            y = y[:, :, above:y.shape[2] - below].contiguous()
            computed = time.perf_counter()
            if ranks > 1:
                parts = [torch.empty(1, 3, *strip_shape(r, ranks, args)) for r in range(ranks)] if rank == 0 else None
                gather(y, parts, rank, ranks)
            dist.barrier()
            times.append((time.perf_counter() - begun, computed - begun))
    grown = status("VmHWM") - before
    everyone = [None] * ranks
    dist.all_gather_object(everyone, (times[1:], grown))
    if rank == 0:
        pathlib.Path(folder, "found.json").write_text(json.dumps(everyone))
    dist.destroy_process_group()


def strip_shape(rank, ranks, args):
    first, last, above, below = strip(rank, ranks, args.size, args.halo)
    return last - first - above - below, args.size


def gather(y, parts, rank, ranks):
    """gloo gathers equal parts only, and strips may differ by some rows."""
    if rank:
        dist.send(y, 0)
    else:
        parts[0].copy_(y)
        for r in range(1, ranks):
            dist.recv(parts[r], r)


def measure(ranks, args, layout):
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(work, (ranks, args, layout, folder), nprocs=ranks)
        everyone = json.loads(pathlib.Path(folder, "found.json").read_text())
    passes = [max(each[0][i][0] for each in everyone) for i in range(args.repeats)]
    computing = [max(each[0][i][1] for each in everyone) for i in range(args.repeats)]
    return {"seconds": statistics.median(passes), "pass_seconds": passes, "denoiser_seconds": statistics.median(computing),
            "bytes_per_rank": max(each[1] for each in everyone)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--network", default="drunet")
    parser.add_argument("--halo", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--layout", choices=("nchw", "nhwc"), help="the faster one without it")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    alone = {layout: measure(1, args, layout) for layout in ([args.layout] if args.layout else ["nchw", "nhwc"])}
    layout = min(alone, key=lambda name: alone[name]["seconds"])
    base = alone[layout]
    for ranks in map(int, args.ranks.split(",")):
        found = base if ranks == 1 else measure(ranks, args, layout)
        speedup, inside = base["seconds"] / found["seconds"], base["denoiser_seconds"] / found["denoiser_seconds"]
        print(json.dumps({"command": "bench", "study": "scaling", "engine": "pytorch", "version": torch.__version__, "device": "cpu", "precision": "fp32",
                          "scheme": f"strips with a halo of {args.halo} rows", "layout": layout, "simulated": False, "measures": "denoiser",
                          "problem": "deblur", "model": f"random:{args.network}", "threads": args.threads,
                          "input": {"depth": 1, "height": args.size, "width": args.size, "channels": 3}, "ranks": ranks, "busy_ranks": ranks,
                          "rows": args.size, **found, "communication_seconds": found["seconds"] - found["denoiser_seconds"], "base_ranks": 1,
                          "speedup": speedup, "efficiency": speedup / ranks, "denoiser_speedup": inside,
                          "denoiser_efficiency": inside / ranks}), flush=True)


if __name__ == "__main__":
    main()
