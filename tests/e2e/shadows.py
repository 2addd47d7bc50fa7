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


def side_of(views, size, photons, circle=True):
    """The side that is computed."""
    if photons:
        views = -np.log(np.maximum(random.poisson(photons * np.exp(-views)), 1) / photons)
    entries = {"operator": "radon", "angles": list(ANGLES), "measurement": save("y.npy", views), "size": size, "noise": 0.01, "circle": circle}
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
for photons in (0, 20000):
    for what, views, size, least, most in (("disk of radius 62", disk(160, 62), 123, 125, 127), ("disk of radius 62", disk(160, 62), 124, 124, 124),
                                           ("disk of radius 62", disk(161, 62), 124, 124, 128), ("block of 124", square(200, 62), 124, 124, 124)):
        side = side_of(views, size, photons, circle=False)
        bench.check(least <= side <= most, f"{what}, a square of {size}, {photons} photons: {side}")
for photons in (1000, 10000):
    sides = {side_of(disk(200, 20), 48, photons) for _ in range(8)}
    bench.check(sides == {48}, f"noise of {photons} photons in the air is no matter: {sides}")

# --- a block in a cone beam -------------------------------------------------------------------------------------------

VIEWS, ROWS, COLUMNS, NEAR, FAR, PITCH = 60, 48, 56, 150, 75, 1.5


def box(vectors, half, rows=ROWS):
    """A view of a cube of value 0.03 on the axis, or of a block of three sides; a pixel is the mean of four rays."""
    source, middle, right, down = vectors.reshape(4, 3)
    across, along = [(np.arange(2 * n) + 0.5) / 2 - n / 2 for n in (COLUMNS, rows)]
    ray = middle + across[None, :, None] * right + along[:, None, None] * down - source
    ray = ray / np.linalg.norm(ray, axis=-1, keepdims=True)
    ray = np.where(np.abs(ray) < 1e-9, 1e-9, ray)
    ends = np.sort([(-half - source) / ray, (half - source) / ray], axis=0)
    chord = np.maximum(ends[1].min(-1) - ends[0].max(-1), 0)
    return 0.03 * chord.reshape(rows, 2, COLUMNS, 2).mean((1, 3))


turns = 2 * np.pi * np.arange(VIEWS) / VIEWS
sin, cos, zero = np.sin(turns), np.cos(turns), 0 * turns
orbit = np.stack([NEAR * sin, -NEAR * cos, zero, -FAR * sin, FAR * cos, zero, PITCH * cos, PITCH * sin, zero, zero, zero, PITCH + zero], 1)
np.save(bench.path("orbit.npy"), orbit)
for half, volume in ((13, [32, 24, 24]), (13, [24, 24, 24]), (13, [32, 22, 22]), (13, [32, 26, 26]), (13, [32, 28, 28]), (11, [26, 22, 22])):
    views = np.array([box(one, half) for one in orbit])
    for photons in (0, 30000):
        counted = -np.log(random.poisson(photons * np.exp(-views)) / photons) if photons else views
        entries = {"operator": "cone", "vectors": "orbit.npy", "volume": volume, "measurement": save("y.npy", counted), "noise": 0.01}
        bench.path("problem.json").write_text(json.dumps(entries))
        record = bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"))
        found = record["reconstruct"].get("enlarged_to", volume) if record else [0, 0, 0]
        holds = all(2 * half <= side <= 2 * half + 6 for side in found) if min(volume) < 2 * half else found == volume
        bench.check(holds, f"cube of {2 * half}, volume {volume}, {photons} photons: {found}")

# --- a rod that is higher than the detector, and a block that ends with the volume --------------------------------------

truth = np.zeros((24, 24))
truth[5:19, 5:19] = 0.03
for rows, depth, high, least in ((2, 1, 90, 3), (3, 1, 90, 3), (4, 1, 90, 5), (4, 2, 90, 4), (5, 3, 90, 5), (24, 20, 90, 24), (24, 20, 10, 20), (24, 21, 10.5, 21), (1, 1, 90, 1)):
    views = np.array([box(one, np.array([7, 7, high]), rows) for one in orbit])
    entries = {"operator": "cone", "vectors": "orbit.npy", "volume": [depth, 24, 24], "measurement": save("y.npy", views)}
    bench.path("problem.json").write_text(json.dumps(entries))
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--iterations", 4)
    found = record["reconstruct"].get("enlarged_to", [depth])[0] if record else 0
    image = np.load(bench.path("out.npy")).reshape(-1, 24, 24) if record else np.zeros((1, 24, 24))
    bright = image.sum((1, 2)) / truth.sum()
    bench.check((found == depth if least == depth else least <= found <= least + 4) and np.abs(bright - 1).max() < 0.1,
                f"rod of {2 * high}, {rows} rows, {depth} slices: {found}, brightness {bright.min():.2f} to {bright.max():.2f}")
bench.finish()
