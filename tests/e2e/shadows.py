"""shadows.py PROGRAM: an image that is smaller than the sample is computed as large as the sample, also where only its corners or
its rim stick out, and not larger. Line integrals come from their formulas; plans say how large the image would be.
"""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(14)
ANGLES = np.arange(0, 180, 1.5)
PARTS = 8  # of a column, of which it measures the mean


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array.astype(np.float32)))
    return name


def columns_of(count):
    return (np.arange(PARTS * count) + 0.5) / PARTS - count / 2


def square(count, half):
    """Of a block of value 0.01, with sides along the image's."""
    away, rows = np.abs(columns_of(count)), []
    for turn in np.deg2rad(ANGLES):
        cos, sin = abs(np.cos(turn)) + 1e-12, abs(np.sin(turn)) + 1e-12
        flat, wide, chord = half * abs(cos - sin), half * (cos + sin), 2 * half / max(cos, sin)
        rows.append(np.where(away <= flat, chord, chord * np.maximum(wide - away, 0) / (wide - flat + 1e-12)))
    return 0.01 * np.array(rows).reshape(len(ANGLES), count, PARTS).mean(2)


def disk(count, radius):
    chord = 2 * np.sqrt(np.maximum(radius ** 2 - columns_of(count) ** 2, 0))
    return np.tile(0.01 * chord.reshape(count, PARTS).mean(1), (len(ANGLES), 1))


def side_of(views, size, photons):
    """The side that is computed."""
    if photons:
        views = -np.log(np.maximum(random.poisson(photons * np.exp(-views)), 1) / photons)
    entries = {"operator": "radon", "angles": list(ANGLES), "measurement": save("y.npy", views), "size": size, "noise": 0.01}
    bench.path("problem.json").write_text(json.dumps(entries))
    record = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"))
    return record["reconstruct"].get("enlarged_to", size) if record else 0


# --- corners of a block ---------------------------------------------------------------------------------------------

for half, size in ((32, 64), (64, 128), (62, 128), (64, 96)):
    needed = 2 * half * np.sqrt(2)
    for photons in (0, 20000):
        side = side_of(square(200, half), size, photons)
        bench.check(needed - 1 <= side <= needed + 8, f"block of {2 * half}, size {size}, {photons} photons: {side}, needs {needed:.1f}")

# --- the rim of a disk ------------------------------------------------------------------------------------------------

for radius, size, needed in ((62, 124, 126), (62, 123, 127), (61.5, 124, 126), (62, 122, 126), (62, 128, 128), (60, 124, 124)):
    for photons in (0, 20000):
        side = side_of(disk(160, radius), size, photons)
        bench.check(needed <= side <= needed + (needed > size), f"disk of radius {radius}, size {size}, {photons} photons: {side}, needs {needed}")
for photons in (300, 1000):
    sides = {side_of(disk(200, 20), 48, photons) for _ in range(8)}
    bench.check(sides == {48}, f"noise of {photons} photons in the air is no matter: {sides}")
bench.finish()
