#!/usr/bin/env python3
"""Statistics of pixels with many bands: NumPy (and PyTorch if there is one) beside moments_rates, in one run.

    numpy_stats.py MOMENTS_RATES [PIXELS [CHANNELS [SIDE [LOCAL_CHANNELS [OUTER [INNER]]]]]]

Covariance: numpy.cov in float64 of float32 pixels; torch.cov in float64 and float32. Score: ((x - mu) F') squared and summed,
float32. Local: the rings of a row of pixels by one gather, their covariances by one batched product, then one batched solve;
LINES rows of the image are timed, and their time is scaled to SIDE rows. Times are the best of some runs, except the
wall time of moments_rates, which is a median; processor times are given because other programs may use the machine."""
import json
import subprocess
import sys
import time

import numpy as np

RUNS, LINES = 3, 4


class Times:
    """Seconds of a clock, and of all processors together."""

    def __init__(self, wall, cpu):
        self.wall, self.cpu = wall, cpu

    def times(self, factor):
        return Times(self.wall * factor, self.cpu * factor)

    def least(self, other):
        return Times(min(self.wall, other.wall), min(self.cpu, other.cpu))

    def against(self, mine):
        return (f"{self.wall:.3f} s (cpu {self.cpu:.3f}): {self.wall / mine.wall:.2f} times"
                f" (cpu {self.cpu / mine.cpu:.2f})")

    def __str__(self):
        return f"tessera {self.wall:.3f} s (cpu {self.cpu:.3f})"


def best(function, runs=RUNS):
    result = Times(1e9, 1e9)
    for _ in range(runs):
        start, used = time.perf_counter(), time.process_time()
        function()
        result = result.least(Times(time.perf_counter() - start, time.process_time() - used))
    return result


def ours(program, *arguments):
    line = subprocess.run([program, "cpu", *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    record = json.loads(line)
    return Times(record["ms"] * 1e-3, record["cpu_ms"] * 1e-3)


def covariance(x):
    """Faster than numpy.cov, whose intermediate arrays lie the other way round."""
    centred = x.astype(np.float64)
    centred -= centred.mean(0)
    return centred.T @ centred / (len(x) - 1)


def local_rx(cube, outer, inner, rows, epsilon=1e-6):
    """All pixels of a row at once, every product by BLAS. The ring is clipped to the image by weights of zero."""
    height, width, bands = cube.shape
    half, hole = outer // 2, inner // 2
    padded = np.pad(cube.astype(np.float64), ((half, half), (half, half), (0, 0))).reshape(-1, bands)
    inside = np.pad(np.ones((height, width)), half).ravel()
    v, u = np.mgrid[-half:half + 1, -half:half + 1]
    ring = np.maximum(abs(v), abs(u)) > hole
    offsets = (v[ring] + half) * (width + 2 * half) + u[ring] + half
    scores = []
    for y in rows:
        places = (y * (width + 2 * half) + np.arange(width))[:, None] + offsets
        pixels, weights = padded[places], inside[places]  # (width, ring, bands), (width, ring)
        count = weights.sum(1)
        mean = (weights[:, None, :] @ pixels)[:, 0] / count[:, None]
        pixels -= mean[:, None, :]
        pixels *= weights[:, :, None]
        spread = pixels.transpose(0, 2, 1) @ pixels / (count - 1)[:, None, None] + epsilon * np.eye(bands)
        d = cube[y].astype(np.float64) - mean
        scores.append(np.einsum("wb,wb->w", d, np.linalg.solve(spread, d[:, :, None])[:, :, 0]))
    return np.stack(scores)


def main():
    program = sys.argv[1]
    pixels, channels, side, bands, outer, inner = (
        list(map(int, sys.argv[2:])) + [1000000, 100, 100, 189, 21, 5][len(sys.argv) - 2:])
    rng = np.random.default_rng(1)
    x = (100 + 10 * rng.standard_normal((pixels, channels), dtype=np.float32))
    print(f"covariance of {pixels} x {channels}:")
    mine = ours(program, "moments", pixels, channels)
    numpy = best(lambda: np.cov(x, rowvar=False, dtype=np.float64), 1)
    plain = best(lambda: covariance(x))
    mine = mine.least(ours(program, "moments", pixels, channels))
    print(f"  {mine}, numpy.cov {numpy.against(mine)}, centred.T @ centred {plain.against(mine)}")
    try:
        import torch
        t = torch.from_numpy(x)
        for kind in (torch.float64, torch.float32):
            print(f"  torch.cov in {kind} {best(lambda: torch.cov(t.to(kind).T)).against(mine)}")
    except ImportError:
        pass
    factor, mu = rng.standard_normal((channels, channels), dtype=np.float32), x.mean(0)
    mine = ours(program, "score", pixels, channels)
    numpy = best(lambda: np.square((x - mu) @ factor.T).sum(1))
    mine = mine.least(ours(program, "score", pixels, channels))
    print(f"score: {mine}, numpy {numpy.against(mine)}")
    cube = (100 + 10 * rng.standard_normal((side, side, bands), dtype=np.float32))
    rows = np.linspace(0, side - 1, LINES).astype(int)
    mine = ours(program, "local", side, bands, outer, inner)
    numpy = best(lambda: local_rx(cube, outer, inner, rows), 2).times(side / LINES)
    print(f"local {side}x{side}x{bands}, {outer}/{inner}: {mine}, numpy {numpy.against(mine)}")


if __name__ == "__main__":
    main()
