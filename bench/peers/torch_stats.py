#!/usr/bin/env python3
"""Hyperspectral pipelines in PyTorch beside `tessera bench stats`, in one run.

    torch_stats.py TESSERA [--phase 1|2|both] [--only TEXT] [--source host|device|both] [--device cpu|cuda|auto] [--seconds S] [--threads N] [--json FILE]

Phase 1 is min-max, two PCAs and RX; phase 2, an epoch of training, is in torch_stats_train.py. In phase 1 PyTorch
computes what tessera does, in one pass over the batches: count, least, largest, mean and centred products, merged by
Chan's formula in float64, then the eigenvectors; nothing waits for the device between batches. It is timed with the
products in float64, float32 and, on a card, TF32, each eager and compiled (torch.compile); the best counts, whatever its error,
which is printed: the largest difference of the covariance from float64's, over the largest value. Cubes are random, of the same
sizes; from the host they are pinned and copied on a stream of their own, two batches ahead. The ratio is by the clock, and
needs a machine that does nothing else; the cpu ratio is of processor times."""
import argparse
import json
import os
import subprocess
import time

import torch

import torch_stats_train


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tessera")
    parser.add_argument("--phase", default="both", choices=("1", "2", "both"))
    parser.add_argument("--source", default="both", choices=("host", "device", "both"), help="where the cubes are")
    parser.add_argument("--only", default="guide")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", help="all records, one a line")
    return parser.parse_args()


def ours(args, device):
    command = [args.tessera, "bench", "stats", "--device", device, "--only", args.only, "--phase", args.phase, "--seconds", str(args.seconds), "--threads", str(args.threads),
               "--quiet"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [record for record in map(json.loads, lines) if "measured" in record and args.source in (record["source"], "both")]


def moments(x, product_type):
    """Of one batch; everything stays on its device."""
    x = x.reshape(-1, x.shape[-1])
    mean = x.mean(0, dtype=torch.float64)
    centred = x.to(product_type) - mean.to(product_type)
    rest = centred.sum(0, dtype=torch.float64) / len(x)  # what rounding the mean left
    second = (centred.T @ centred).double() - len(x) * torch.outer(rest, rest)
    return mean + (rest if product_type != torch.float64 else 0 * rest), second, x.amin(), x.amax()


def fit(batches, one):
    """batches: an iterable of tensors on the device that computes."""
    count, mean, second, least, largest = 0, None, None, None, None
    for x in batches:
        n = x.numel() // x.shape[-1]
        m, s, low, high = one(x)
        if count == 0:
            mean, second, least, largest = m, s, low, high
        else:
            step = m - mean
            mean = mean + step * (n / (count + n))
            second = second + s + torch.outer(step, step) * (count * n / (count + n))
            least, largest = torch.minimum(least, low), torch.maximum(largest, high)
        count += n
    second, least, largest = second.cpu(), least.cpu(), largest.cpu()  # a card is slow at such small matrices
    covariance = second / (count - 1) / (largest - least).double() ** 2
    vectors = torch.linalg.eigh(covariance)[1][:, -min(20, len(mean)):]
    inner = vectors.T @ covariance @ vectors
    vectors = torch.linalg.eigh(inner)[1][:, -max(1, min(10, len(mean) // 2)):]
    return torch.linalg.inv(vectors.T @ inner @ vectors + 1e-6 * torch.eye(vectors.shape[1], dtype=torch.float64)), second


def streamed(host):
    """Batches copied from pinned memory on a second stream, into two buffers."""
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()
    buffers = [torch.empty_like(host[0], device="cuda") for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]
    copied = [torch.cuda.Event() for _ in range(2)]

    def copy(i):
        with torch.cuda.stream(side):
            side.wait_event(used[i % 2])
            buffers[i % 2][: len(host[i])].copy_(host[i], non_blocking=True)
            copied[i % 2].record(side)

    for i in range(min(2, len(host))):
        copy(i)
    for i in range(len(host)):
        here.wait_event(copied[i % 2])
        yield buffers[i % 2][: len(host[i])]
        used[i % 2].record(here)
        if i + 2 < len(host):
            copy(i + 2)


def timed(function, seconds):
    """The median by a clock, and the least processor time of all threads, as tessera's record has them."""
    times, used = [], []
    function()
    begin = time.perf_counter()
    while len(times) < 2 or (len(times) < 9 and time.perf_counter() - begin < seconds):
        start, before = time.perf_counter(), time.process_time()
        function()
        used.append(time.process_time() - before)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2], min(used)


def variants(device):
    kinds = [("fp64", torch.float64, False), ("fp32", torch.float32, False)]
    return kinds + ([("tf32", torch.float32, True)] if device == "cuda" else [])


def error_of(one, x):
    want = moments(x, torch.float64)[1]
    return float((one(x)[1] - want).abs().max() / want.abs().max())


def peers(device, record, seconds):
    """(seconds, processor seconds, name, error) of all variants on this workload."""
    load = record["input"]
    side, channels, batch, samples = load["height"], load["channels"], load["batch"], load["samples"]
    sizes = [min(batch, samples - i) for i in range(0, samples, batch)]  # cubes of each batch, as tessera's
    distinct = max(1, min(len(sizes), load["distinct"] // batch))
    host = [torch.empty(sizes[0], side, side, channels, pin_memory=device == "cuda").normal_(100, 10) for _ in range(distinct)]
    from_device = record["source"] == "device" or device == "cpu"
    stored = [x.cuda() for x in host] if device == "cuda" and from_device else host
    host, stored = ([kept[i % distinct][:size] for i, size in enumerate(sizes)] for kept in (host, stored))
    results = []
    for name, product_type, tf32 in variants(device):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for compiled in (False, True):
            def one(x, product_type=product_type):
                return moments(x, product_type)
            try:
                call = torch.compile(one, dynamic=True) if compiled else one
                run = (lambda: fit(stored, call)) if from_device else (lambda: fit(streamed(host), call))
                with torch.no_grad():
                    results.append((*timed(run, seconds), name + ("+compile" if compiled else ""), error_of(call, stored[0].to(device))))
            except Exception as problem:  # a machine without a compiler
                print(f"  {name}{'+compile' if compiled else ''}: {str(problem).splitlines()[0][:100]}")
    torch.backends.cuda.matmul.allow_tf32 = False
    return results


def main():
    args = arguments()
    devices = [args.device] if args.device != "auto" else ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    torch.set_num_threads(args.threads)
    log = open(args.json, "w", buffering=1) if args.json else None
    rows = []
    for device in devices:
        told, trained = None, {}  # PyTorch's epochs, for the records of all precisions
        for record in ours(args, device):
            place = record["workload"], record["source"]
            if record["phase"] == "statistics":
                results = peers(device, record, args.seconds)
            else:
                results = trained[place] = trained.get(place) or torch_stats_train.peers(device, record, timed, streamed, args.seconds)
            rows.append((record, device, min(results), min(r[1] for r in results)))
            for seconds, used, name, error in results if results is not told else ():
                line = {"study": "stats", "engine": "pytorch", "variant": name, "phase": record["phase"], "workload": record["workload"], "sweep": record["sweep"],
                        "input": record["input"], "device": device, "source": record["source"], "seconds": seconds, "processor_seconds": used, "error": error,
                        "version": torch.__version__}
                if log:
                    print(json.dumps(line), file=log)
            if log:
                print(json.dumps(record), file=log)
            if record["phase"] == "statistics" or results is not told:
                told = results
                print(f"{record['workload']} {record['phase']} {device} {record['source']}: "
                      + ", ".join(f"{n} {s * 1e3:.2f} ms ({e:.0e})" for s, _, n, e in results), flush=True)
    print(f"\n{'workload':34s} {'phase':24s} {'device':6s} {'cubes on':8s} {'tessera':>12s} {'PyTorch':>12s} {'best':14s} {'ratio':>6s} {'cpu ratio':>9s} {'of link':>8s}")
    for record, device, best, used in rows:
        mine = record["measured"]
        link = mine.get("of_link_time")
        shared = format(used / mine["processor_seconds"], "9.2f") if device == "cpu" else " " * 9  # a card's time is not the CPU's
        phase = record["phase"] if record["phase"] == "statistics" else f"training {record['precision']}" + " condensed" * record["plan"]["condensed"]
        print(f"{record['workload']:34s} {phase:24s} {device:6s} {record['source']:8s} {mine['seconds'] * 1e3:9.3f} ms {best[0] * 1e3:9.3f} ms {best[2]:14s}"
              f" {best[0] / mine['seconds']:6.2f} {shared} {'' if link is None else format(link, '8.2f')}")


if __name__ == "__main__":
    main()
