"""Scans that are not as a textbook has them: views that are spread unevenly, detector pixels that are dead but noisy, views
that were lost, and volumes of a few slices."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
SIZE = 64
EVEN = np.arange(90) * 2.0
DISKS = [(0.3, 0, 0, 25), (2.0, 8, 5, 3), (1.0, -9, 4, 4), (2.0, -14, -8, 2)]  # value, x, y, radius
BALLS = [(0.4, 0, 0, 0, 9), (0.5, 4, -3, 2, 2.5), (0.6, -5, 2, -4, 2), (-0.3, 1, 5, 3, 2)]  # value, x, y, z, radius
DENSE = [(0.3, 0, 0, 0, 9), (2.0, 6, -3, 1, 1.5), (2.0, -5, 2, -3, 1.5)]
SIDES = (20, 24, 28)


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


def image(disks=DISKS):
    at = (np.arange(SIZE * 4) + 0.5) / 4 - SIZE / 2
    total = sum(value * ((at[None] - x) ** 2 + (at[:, None] - y) ** 2 <= r ** 2) for value, x, y, r in disks)
    return total.reshape(SIZE, 4, SIZE, 4).mean((1, 3))


def sinogram(angles=EVEN, columns=SIZE, centre=(SIZE - 1) / 2, disks=DISKS):
    """Line integrals, averaged over a column."""
    at = (np.arange(columns * 4) + 0.5) / 4 - 0.5 - centre
    turn = np.deg2rad(angles)[:, None]
    total = sum(value * 2 * np.sqrt(np.maximum(r ** 2 - (at[None] - x * np.cos(turn) + y * np.sin(turn)) ** 2, 0)) for value, x, y, r in disks)
    return total.reshape(len(angles), columns, 4).mean(2)


def solid(balls):
    z, y, x = np.meshgrid(*[(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in SIDES], indexing="ij")
    total = sum(value * ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 <= r * r) for value, a, b, c, r in balls)
    return total.reshape(SIDES[0], 3, SIDES[1], 3, SIDES[2], 3).mean((1, 3, 5))


def orbit(degrees, shift=0):
    """Cone-beam vectors on a circle; `shift` moves the detector along its rows, in pixels."""
    turns = np.deg2rad(np.asarray(degrees, float))
    zero, pitch = 0 * turns, 1.3
    u = pitch * np.stack([np.cos(turns), np.sin(turns), zero], 1)
    source, middle = (r * np.stack([np.sin(turns), -np.cos(turns), zero], 1) for r in (60, -30))
    return np.concatenate([source, middle + shift * u, u, np.tile([0, 0, pitch], (len(turns), 1))], 1)


def views(vectors, rows, columns, balls):
    out = []
    right, down = [(np.arange(3 * side) + 0.5) / 3 - side / 2 for side in (columns, rows)]
    for source, middle, u, v in vectors.reshape(-1, 4, 3):
        along = middle + right[None, :, None] * u + down[:, None, None] * v - source
        along = along / np.linalg.norm(along, axis=-1, keepdims=True)
        total = 0
        for value, *ball, r in balls:
            to = np.array(ball) - source
            near = (to * along).sum(-1)
            total = total + value * 2 * np.sqrt(np.maximum(r * r - ((to * to).sum() - near ** 2), 0))
        out.append(total.reshape(rows, 3, columns, 3).mean((1, 3)))
    return np.array(out)


def solve(entries, truth, *args):
    """The record's part, the result's PSNR against `truth`, and what was written to standard error."""
    bench.path("problem.json").write_text(json.dumps(entries))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("record.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, 0, ""
    found = np.load(bench.path("out.npy"))
    psnr = 10 * np.log10(truth.max() ** 2 / np.mean((found - truth) ** 2)) if found.shape == truth.shape else 0
    return json.loads(bench.path("record.json").read_text())["reconstruct"], psnr, result.err


# --- the range of views that are not spread evenly ------------------------------------------------------------------

truth = image()
flat = {"operator": "radon", "angles": "angles.npy", "size": SIZE, "measurement": "y.npy"}
for what, angles, columns, centre in (("even", EVEN, SIZE, 31.5), ("some angles finely", np.r_[np.arange(0, 180, 6.0), np.arange(80, 100, 0.25)], SIZE, 31.5),
                                      ("100 views at 0 first", np.r_[np.zeros(100), EVEN], SIZE, 31.5), ("half acquisition", np.arange(180) * 2.0, 36, 6)):
    save("angles.npy", angles)
    save("y.npy", sinogram(angles, columns, centre).astype(np.float32))
    own, found, said = solve({**flat, "centre": centre}, truth)
    _, given, _ = solve({**flat, "centre": centre, "range": [0, 2.76]}, truth)
    bench.check(own and own["range"][1] > truth.max() and found > given - 1 and "cut off" not in said,
                f"{what}: range {own.get('range')}, largest value {truth.max():.2f}, {found:.2f} dB, with a range {given:.2f} dB, {said!r}")

dense = solid(DENSE)
cone = {"operator": "cone", "vectors": "vectors.npy", "volume": list(SIDES), "measurement": "y.npy"}
for what, vectors, columns in (("40 views at 0 first", orbit(np.r_[np.zeros(40), np.arange(0, 360, 12)]), 44), ("half fan", orbit(np.arange(0, 360, 6), 11), 30)):
    save("vectors.npy", vectors)
    save("y.npy", views(vectors, 34, columns, DENSE).astype(np.float32))
    own, found, said = solve(cone, dense)
    _, given, _ = solve({**cone, "range": [0, 2.6]}, dense)
    bench.check(own and own["range"][1] > dense.max() and found > given - 2 and "cut off" not in said,
                f"cone, {what}: range {own.get('range')}, largest value {dense.max():.2f}, {found:.2f} dB, with a range {given:.2f} dB")

bench.finish()
