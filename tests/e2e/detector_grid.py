"""Views whose rows lie between the slices, or whose pixels are smaller than the voxels, are resampled: without that, volumes have stripes
from slice to slice and overshoot at edges, and end below a plain FDK. Balls seen by a cone beam and by parallel rays, means over each pixel."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
SOURCE, DETECTOR, PIXEL, COLUMNS, VIEWS = 60.0, 30.0, 0.3, 36, 40
BALLS = [(0, 0, 0, 2.1, 0.12), (0.9, -0.6, 0.4, 0.5, 0.15), (-1.0, 0.5, -0.7, 0.4, 0.18), (0.2, 1.1, 0.7, 0.4, -0.08)]


def volume(depth, side, voxel, fine=3):
    z, y, x = np.meshgrid(*[((np.arange(n * fine) + 0.5) / fine - n / 2) * voxel for n in (depth, side, side)], indexing="ij")
    whole = sum(m * ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 <= r * r) for a, b, c, r, m in BALLS)
    return whole.reshape(depth, fine, side, fine, side, fine).mean((1, 3, 5))


def orbit(parallel, lift, down):
    angles = 2 * np.pi * np.arange(VIEWS) / VIEWS
    pixel = PIXEL / 1.5 if parallel else PIXEL
    rows = []
    for a in angles:
        s, c = np.sin(a), np.cos(a)
        start = [-s, c, 0] if parallel else [SOURCE * s, -SOURCE * c, 0]
        rows.append([*start, -DETECTOR * s, DETECTOR * c, lift * pixel, pixel * c, pixel * s, 0, 0, 0, -pixel if down else pixel])
    return np.array(rows)


def views(vectors, parallel, rows, fine=3):
    out = []
    for start, centre, u, v in vectors.reshape(-1, 4, 3):
        across = ((np.arange(COLUMNS * fine) + 0.5) / fine - COLUMNS / 2)[None, :, None] * u
        pixels = centre + across + ((np.arange(rows * fine) + 0.5) / fine - rows / 2)[:, None, None] * v
        along = np.broadcast_to(start, pixels.shape) if parallel else pixels - start
        along = along / np.linalg.norm(along, axis=-1, keepdims=True)
        total = 0
        for a, b, c, r, m in BALLS:
            to = np.array([a, b, c]) - pixels
            near = (to * along).sum(-1)
            total = total + m * 2 * np.sqrt(np.maximum(r * r - ((to * to).sum(-1) - near * near), 0))
        out.append(total.reshape(rows, fine, COLUMNS, fine).mean((1, 3)))
    return np.array(out)


def run(rows, depth, side, voxel, lift=0, down=False, parallel=False, **entries):
    """The record and the result."""
    vectors = orbit(parallel, lift, down)
    light = 20000 * np.exp(-views(vectors, parallel, rows))
    measured = -np.log(np.random.default_rng(1).poisson(light).clip(1) / 20000)
    truth = volume(depth, side, voxel)
    for name, array in (("vectors", vectors), ("views", measured.astype("f4")), ("truth", truth.astype("f4"))):
        np.save(bench.path(name + ".npy"), array)
    problem = {"operator": "parallel3d" if parallel else "cone", "vectors": "vectors.npy", "volume": [depth, side, side], "spacing": voxel,
               "measurement": "views.npy", "truth": "truth.npy", **entries}
    with open(bench.path("problem.json"), "w", encoding="utf-8") as file:
        json.dump(problem, file)
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"))
    return record, np.load(bench.path("out.npy")) if record else None


def psnr(record):
    return record["quality"]["psnr_db"]


even, _ = run(26, 18, 26, 0.2)
odd, _ = run(26, 19, 26, 0.2)
kept, _ = run(26, 19, 26, 0.2, resample=False)
if even and odd and kept:
    bench.check("resampled_to" not in even["reconstruct"] and "resampled_to" not in kept["reconstruct"],
                "views that fit are used as they are, and so are others with \"resample\": false")
    bench.check(odd["reconstruct"]["resampled_to"] == [27, COLUMNS], "rows between slices are resampled to these")
    bench.check(psnr(odd) > psnr(kept) + 3 and psnr(odd) > kept["reconstruct"]["baseline_psnr_db"] + 2,
                f"an odd number of slices: {psnr(odd):.2f} dB, as the views are {psnr(kept):.2f}, FDK {kept['reconstruct']['baseline_psnr_db']:.2f}; "
                f"even: {psnr(even):.2f}")
    planned, counted = odd["plan"]["peak_bytes"], odd["measured"]["peak_bytes"]
    bench.check(planned == counted, f"planned {planned['total']} = counted {counted['total']}")
lifted, up = run(26, 18, 26, 0.2, lift=0.4)
if lifted and even:
    bench.check(psnr(lifted) > psnr(even) - 3.5, f"a detector 0.4 pixels higher: {psnr(lifted):.2f} dB")
flipped, down = run(26, 18, 26, 0.2, lift=0.4, down=True)
if lifted and flipped:
    bench.check(abs(psnr(lifted) - psnr(flipped)) < 0.5, f"rows from the top down: {psnr(flipped):.2f} dB")
parallel, _ = run(26, 19, 26, 0.2, parallel=True)
kept, _ = run(26, 19, 26, 0.2, parallel=True, resample=False)
if parallel and kept:
    bench.check(psnr(parallel) > psnr(kept) + 3, f"parallel rays: {psnr(parallel):.2f} dB, as the views are {psnr(kept):.2f}")
coarse, _ = run(26, 12, 18, 0.3)
kept, _ = run(26, 12, 18, 0.3, resample=False)
if coarse and kept:
    bench.check(coarse["reconstruct"]["resampled_to"][1] < COLUMNS and psnr(coarse) > psnr(kept) + 3,
                f"voxels of 1.5 pixels: {psnr(coarse):.2f} dB, as the views are {psnr(kept):.2f}, FDK {kept['reconstruct']['baseline_psnr_db']:.2f}")
record, _ = run(26, 10, 14, 0.4)
said = bench.run("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json")).err
truth = np.load(bench.path("truth.npy"))
_, fine = run(26, 20, 28, 0.2)
if record and fine is not None:
    found = 10 * np.log10(truth.max() ** 2 / np.mean((fine.reshape(10, 2, 14, 2, 14, 2).mean((1, 3, 5)) - truth) ** 2))
    fdk = record["reconstruct"]["baseline_psnr_db"]
    bench.check("\"volume\": [20, 28, 28] with \"spacing\": 0.2," in said and found > psnr(record) + 5 and found > fdk + 2,
                f"voxels of 2 pixels: {psnr(record):.2f} dB, FDK {fdk:.2f}, as the note advises {found:.2f}: {said!r}")
said = bench.run("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json")).err
bench.check("more exact" not in said, f"voxels of a pixel: {said!r}")
bench.finish()
