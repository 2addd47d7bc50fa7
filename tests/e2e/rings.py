"""Errors of the detector's pixels that are the same in all views become rings. They are subtracted where they are plain, and scans without
them stay as they are, bit for bit, also those of a tube on the axis, whose edges are at the same columns in all views."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
SIDE, VIEWS, PHOTONS = 96, 120, 40000
DISKS = [(0, 0, 38, 0.012), (14, -10, 9, 0.010), (-16, 8, 7, -0.007), (8, 18, 4, 0.012), (-4, -21, 4, 0.009)]
TUBE = [(0, 0, 40, 0.02), (0, 0, 34, -0.018), (12, 5, 8, 0.01)]
APART = [(12, 9, 24, 0.014), (18, 10, 8, 0.01), (-30, -18, 7, 0.02)]
ROWS, COLUMNS, CONES = 10, 48, 60
BALLS = [(0, 0, 0, 17, 0.02), (6, -4, 1, 4, 0.02), (-7, 4, -2, 3, 0.025), (1, 9, 2, 3, -0.01)]


def image(disks, fine=4):
    at = (np.arange(SIDE * fine) + 0.5) / fine - SIDE / 2
    x, y = np.meshgrid(at, at)
    whole = sum(m * ((x - a) ** 2 + (y - b) ** 2 <= r * r) for a, b, r, m in disks)
    return whole.reshape(SIDE, fine, SIDE, fine).mean((1, 3))


def sinogram(disks, turn, centre, fine=4):
    at = (np.arange(SIDE * fine) + 0.5) / fine - 0.5 - centre
    angles = np.radians(turn) * np.arange(VIEWS) / VIEWS
    rows = [sum(2 * m * np.sqrt(np.maximum(r * r - (at - a * np.cos(t) + b * np.sin(t)) ** 2, 0)) for a, b, r, m in disks) for t in angles]
    return np.array(rows).reshape(VIEWS, SIDE, fine).mean(2)


def counted(lines):
    return -np.log(np.random.default_rng(3).poisson(PHOTONS * np.exp(-lines)) / PHOTONS)


def solve(problem, truth):
    """The record, the result, its PSNR, and what was said."""
    bench.path("p.json").write_text(json.dumps(problem))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"))
    if not bench.check(result.status == 0, f"runs: {result}"):
        return None
    out = np.load(bench.path("out.npy"))
    record = json.loads(bench.path("r.json").read_text())
    return record, out, 10 * np.log10(truth.max() ** 2 / np.mean((out - truth) ** 2)), result.err


def scan(disks, errors, noisy=True, turn=180, centre=0.5 * (SIDE - 1), off=0, **entries):
    """The axis is at the column `centre`, and `off` columns beside the one that is given."""
    lines = sinogram(disks, turn, centre)
    np.save(bench.path("s.npy"), ((counted(lines) if noisy else lines) + errors).astype("f4"))
    return solve({"operator": "radon", "angles": {"from": 0, "to": turn, "count": VIEWS}, "centre": centre + off, "measurement": "s.npy", **entries}, image(disks))


def cone(errors, **entries):
    """Balls before a detector at the axis, so that pixels are as large as voxels."""
    vectors, views = [], []
    for a in 2 * np.pi * np.arange(CONES) / CONES:
        source, u, v = np.array([200 * np.sin(a), -200 * np.cos(a), 0]), np.array([np.cos(a), np.sin(a), 0]), np.array([0, 0, 1.0])
        pixels = ((np.arange(3 * COLUMNS) + 0.5) / 3 - COLUMNS / 2)[None, :, None] * u + ((np.arange(3 * ROWS) + 0.5) / 3 - ROWS / 2)[:, None, None] * v
        along = pixels - source
        along = along / np.linalg.norm(along, axis=-1, keepdims=True)
        total = 0
        for x, y, z, r, m in BALLS:
            to = np.array([x, y, z]) - pixels
            total = total + 2 * m * np.sqrt(np.maximum(r * r - (to * to).sum(-1) + (to * along).sum(-1) ** 2, 0))
        vectors.append([*source, 0, 0, 0, *u, *v])
        views.append(total.reshape(ROWS, 3, COLUMNS, 3).mean((1, 3)))
    np.save(bench.path("vectors.npy"), np.array(vectors))
    np.save(bench.path("views.npy"), (counted(np.array(views)) + errors).astype("f4"))
    side, fine = 40, 3
    z, y, x = np.meshgrid(*[(np.arange(n * fine) + 0.5) / fine - n / 2 for n in (ROWS - 4, side, side)], indexing="ij")
    truth = sum(m * ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 <= r * r) for a, b, c, r, m in BALLS)
    truth = truth.reshape(ROWS - 4, fine, side, fine, side, fine).mean((1, 3, 5))
    problem = {"operator": "cone", "vectors": "vectors.npy", "volume": list(truth.shape), "measurement": "views.npy", "range": [0, 0.06], **entries}
    return solve(problem, truth)


def stays(what, found, kept):
    """Without rings nothing changes."""
    if found and kept:
        bench.check("rings" not in found[0]["reconstruct"] and "rings" not in found[3] and np.array_equal(found[1], kept[1]),
                    f"{what}: nothing is subtracted, {found[2]:.2f} dB")


def better(what, found, kept, least, level):
    """Rings are removed, and what was subtracted is about the errors' root mean square."""
    if not (found and kept):
        return
    own, said = found[0]["reconstruct"], found[3]
    bench.check("rings" not in kept[0]["reconstruct"] and "rings" in said and found[2] > kept[2] + least and 0.5 < own.get("rings", 0) / level < 2,
                f"{what}: {found[2]:.2f} dB, with the rings {kept[2]:.2f}; {own.get('rings', 0):.4f} was subtracted, errors are {level:.4f}")
    planned, counts = found[0]["plan"]["peak_bytes"], found[0]["measured"]["peak_bytes"]
    bench.check(planned == counts, f"{what}: planned {planned['total']} = counted {counts['total']}")


def size(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


for noisy in (True, False):
    noise = "noise" if noisy else "no noise"
    stays(f"disks, {noise}", scan(DISKS, 0, noisy), scan(DISKS, 0, noisy, rings=False))
    stays(f"a tube on the axis, {noise}", scan(TUBE, 0, noisy), scan(TUBE, 0, noisy, rings=False))
stays("off the axis, which is between columns", scan(APART, 0, turn=360, centre=45.2), scan(APART, 0, turn=360, centre=45.2, rings=False))
stays("a tube about an axis between columns", scan(TUBE, 0, False, centre=46.2), scan(TUBE, 0, False, centre=46.2, rings=False))
random = np.random.default_rng(5)
every = 0.015 * random.normal(size=SIDE)
some = np.zeros(SIDE)
some[random.choice(np.arange(12, SIDE - 12), 8, replace=False)] = 0.06
better("all columns", scan(DISKS, every), scan(DISKS, every, rings=False), 5, size(every))
better("8 columns", scan(DISKS, some), scan(DISKS, some, rings=False), 5, size(some))
for centre in (47.75, 47.9):
    stays(f"disks about column {centre}", scan(DISKS, 0, centre=centre), scan(DISKS, 0, centre=centre, rings=False))
    better(f"8 columns about column {centre}", scan(DISKS, some, centre=centre), scan(DISKS, some, centre=centre, rings=False), 5, size(some))
better("8 columns, the axis is not exact", scan(DISKS, some, off=0.06), scan(DISKS, some, off=0.06, rings=False), 5, size(some))
better("a tube", scan(TUBE, every), scan(TUBE, every, rings=False), 3, size(every))
better("off the axis", scan(APART, every, turn=360, centre=45.2), scan(APART, every, turn=360, centre=45.2, rings=False), 3, size(every))
pixels = 0.02 * random.normal(size=(ROWS, COLUMNS))
stays("a cone", cone(0), cone(0, rings=False))
better("pixels of a cone", cone(pixels), cone(pixels, rings=False), 2, size(pixels))
bench.path("p.json").write_text(json.dumps({"operator": "radon", "angles": [0, 90], "measurement": "s.npy", "rings": "off"}))
refused = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
bench.check(refused.status == 1 and '"rings" must be true' in refused.err, f"\"rings\" is true or false: {refused.err!r}")
bench.finish()
