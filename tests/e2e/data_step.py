"""The data step of measured blurs, value by value: with very small relaxation the result of one iteration is the minimum of
1/2 |A z - y|^2 + w/2 |z - x0|^2, which NumPy solves with an explicit matrix."""
import json
import math
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
height, width, noise, sigma = 13, 17, 0.03, 0.1
weight = 0.23 * noise**2 / sigma**2
random = np.random.default_rng(5)
kernels = [random.random((3, 5)), random.random((5, 3)) - 0.2]
kernels = [kernel / kernel.sum() for kernel in kernels]
margin = (2, 2)


def matrix(rows, columns, seen):
    """Circular convolutions of rows x columns pixels, of which those of the slices `seen` are measured."""
    parts = []
    for kernel in kernels:
        part = np.zeros((rows, columns, rows, columns))
        for i in range(kernel.shape[0]):
            for j in range(kernel.shape[1]):
                y, x = np.mgrid[0:rows, 0:columns]
                part[y, x, (y - i + kernel.shape[0] // 2) % rows, (x - j + kernel.shape[1] // 2) % columns] += kernel[i, j]
        parts.append(part[seen].reshape(-1, rows * columns))
    return np.concatenate(parts)


def smooth(side):
    while True:
        rest = side
        for factor in (2, 3, 5, 7):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return side
        side += 1


# Far outside [0, 1] in places: what is clamped, and what is not, shows.
y = np.float32(random.random((2, height, width)) * 1.6 - 0.3)
np.save(bench.path("y.npy"), y.reshape(-1, width))
truth = np.float32(random.random((height, width)))
np.save(bench.path("truth.npy"), truth)
for i, kernel in enumerate(kernels):
    np.save(bench.path(f"k{i}.npy"), kernel)
mean = y.mean(0).astype(np.float64)
for boundary in ("circular", "unknown"):
    entries = {"operator": "blur", "kernels": ["k0.npy", "k1.npy"], "measurement": "y.npy", "truth": "truth.npy", "noise": noise, "boundary": boundary, "range": [0, 1]}
    bench.path("problem.json").write_text(json.dumps(entries))
    rows, columns, top, left = height, width, 0, 0
    if boundary == "unknown":
        rows, columns, (top, left) = smooth(height + 2 * margin[0]), smooth(width + 2 * margin[1]), margin
    seen = np.s_[top:top + height, left:left + width]
    a = matrix(rows, columns, seen)
    around = np.pad(mean, ((top, rows - top - height), (left, columns - left - width)), mode="edge")
    back = (a.T @ y.reshape(-1)).reshape(rows, columns)
    starts = {"zero": 0 * around, "mean": np.clip(around, 0, 1), "adjoint": np.clip(back / back.max(), 0, 1)}
    for init, start in starts.items():
        record = bench.record("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--init", init, "--iterations", 1, "--sigma", sigma, "--relax", 1e-12,
                              *(["--inner", 200] if boundary == "unknown" else []))
        if not record:
            continue
        z = np.linalg.solve(a.T @ a + weight * np.eye(rows * columns), a.T @ y.reshape(-1) + weight * start.reshape(-1))
        z = np.clip(z.reshape(rows, columns), 0, 1)[seen]
        out = np.load(bench.path("out.npy"))
        worst = np.abs(out - z).max()
        bench.check(worst < 2e-3 and 0.05 < (z > 0).mean() < 0.99, f"{boundary}, from {init}: the minimum, within {worst:.1g}")
        baseline = -10 * math.log10(np.mean((np.clip(mean, 0, 1) - truth) ** 2))
        bench.check(abs(record["reconstruct"]["baseline_psnr_db"] - baseline) < 1e-3, f"the baseline is clamped: {baseline:.3f} dB")
        bench.check(abs(record["quality"]["psnr_db"] + 10 * math.log10(np.mean((np.float64(out) - truth) ** 2))) < 1e-3, "PSNR is that of what is written")
bench.finish()
