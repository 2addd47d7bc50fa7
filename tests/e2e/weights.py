"""weights.py PROGRAM: measured problems with different parts: blurs with different noise, scans in different units of length,
angles in radians."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(7)


def solve(arrays, entries, *options):
    """The result, the record's part, and what was said."""
    for name, array in arrays.items():
        np.save(bench.path(name + ".npy"), np.ascontiguousarray(array))
    bench.path("problem.json").write_text(json.dumps(entries))
    words = ("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--iterations", 4, *options)
    record = bench.record(*words)
    return np.load(bench.path("out.npy")), (record or {}).get("reconstruct", {}), bench.run(*words).err


def db(a, b):
    return -10 * np.log10(np.mean((np.float64(a) - b) ** 2) + 1e-12)


# --- a second blur that is noisy ------------------------------------------------------------------------------------

side = 72
y, x = np.mgrid[0:side, 0:side] / side
truth = 0.2 + 0.3 * x + 0.3 * (np.hypot(y - 0.4, x - 0.6) < 0.25) - 0.1 * ((7 * x + 4 * y) % 1 < 0.4)
v, u = np.mgrid[-5:6, -5:6]
kernel = np.exp(-(u**2 + v**2) / 8)
kernel /= kernel.sum()
response = np.fft.fft2(np.roll(np.pad(kernel, ((0, side - 11), (0, side - 11))), (-5, -5), (0, 1)))
blurred = np.real(np.fft.ifft2(np.fft.fft2(truth) * response))
good = np.float32(blurred + 0.01 * random.standard_normal(truth.shape))
bad = np.float32(blurred + 0.1 * random.standard_normal(truth.shape))
for boundary in ("circular", "unknown"):
    entries = {"operator": "blur", "kernels": ["k.npy"], "measurement": "y.npy", "boundary": boundary}
    alone, _, _ = solve({"y": good, "k": kernel}, entries)
    both, own, _ = solve({"y": np.vstack([good, bad]), "k": kernel}, {**entries, "kernels": ["k.npy"] * 2})
    middle = (slice(8, -8), slice(8, -8))
    bench.check(db(both[middle], truth[middle]) > db(alone[middle], truth[middle]) - 0.5,
                f"{boundary}: a noisy second blur does no harm: {db(alone[middle], truth[middle]):.2f}, {db(both[middle], truth[middle]):.2f} dB")
    weights = own.get("weights", [0, 0])
    bench.check(weights[0] == 1 and 0.05 < weights[1] < 0.2, f"it counts by its noise: {weights}")
_, own, _ = solve({"y": np.vstack([good, good[::-1]]), "k": kernel}, {**entries, "kernels": ["k.npy"] * 2})
bench.check("weights" not in own, "blurs alike have no weights")

# --- units of length --------------------------------------------------------------------------------------------------

turns = np.arange(12) * np.pi / 6
vectors = np.array([[60 * np.sin(t), -60 * np.cos(t), 0, -30 * np.sin(t), 30 * np.cos(t), 0, np.cos(t), np.sin(t), 0, 0, 0, 1] for t in turns])
views = np.float32(np.abs(random.standard_normal((12, 20, 24))).cumsum(2) * 0.01 + 1)
results = {}
for unit in (0.001, 1, 1000):
    entries = {"operator": "cone", "vectors": "vectors.npy", "volume": [12, 16, 16], "spacing": 0.8 * unit, "measurement": "y.npy"}
    image, own, _ = solve({"y": views, "vectors": vectors * unit}, entries)
    results[unit] = image * unit, own["noise"]
for unit in (0.001, 1000):
    off = np.abs(results[unit][0] - results[1][0]).max() / np.abs(results[1][0]).max()
    bench.check(off < 0.01 and abs(results[unit][1] / results[1][1] - 1) < 1e-3, f"lengths times {unit} make the same image (off by {off:.1e}) and noise {results[unit][1]:.4g}")

# --- radians ----------------------------------------------------------------------------------------------------------

sinogram = np.float32(np.ones((20, 24)))
for angles, warned in ((np.arange(20) * np.pi / 20, True), (np.arange(20) * 9.0, False)):
    _, _, said = solve({"y": sinogram}, {"operator": "radon", "measurement": "y.npy", "angles": list(angles)})
    bench.check(("radians" in said) == warned, f"angles up to {angles[-1]:.1f}: {said.strip() or 'nothing is said'}")

bench.finish()
