"""Parts of scans that were lost: many views one after the other, whole rows of the detector, and single values of the views of a
volume. What is not lost, but looks like it, stays."""
import json
import sys

import scan_scene
from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(16)
SIZE = 64
TURN = np.arange(120) * 1.5
DISKS = [(0.02, 0, 0, 27), (0.03, 8, 5, 4), (-0.01, -9, 4, 7), (0.02, -14, -8, 3)]  # value, x, y, radius
BALLS = [(0.04, 0, 0, 0, 9), (0.05, 4, -3, 2, 2.5), (0.06, -5, 2, -4, 2), (-0.03, 1, 5, 3, 2)]  # value, x, y, z, radius
SIDES = (20, 24, 24)
ROWS, COLUMNS = 32, 36


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


def sinogram(angles=TURN, disks=DISKS):
    return scan_scene.sinogram(angles, SIZE, disks)


def orbit(count):
    return scan_scene.orbit(np.arange(count) * 360 / count)


def views(vectors, balls=BALLS):
    return scan_scene.views(vectors, ROWS, COLUMNS, balls)


def solve(entries, truth):
    """The record's part, the result's PSNR against `truth`, and what was written to standard error."""
    bench.path("problem.json").write_text(json.dumps(entries))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("record.json"), "--iterations", 3)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, 0, ""
    psnr = 10 * np.log10(truth.max() ** 2 / np.mean((np.load(bench.path("out.npy")) - truth) ** 2))
    return json.loads(bench.path("record.json").read_text())["reconstruct"], psnr, result.err


def plan(entries):
    """The same part, before the work, and what was written to standard error."""
    bench.path("problem.json").write_text(json.dumps(entries))
    result = bench.run("plan", "reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("record.json"))
    bench.check(result.status == 0, f"plans: {result}")
    return json.loads(bench.path("record.json").read_text())["reconstruct"] if result.status == 0 else {}, result.err


# --- many views one after the other -----------------------------------------------------------------------------------

truth, clean = scan_scene.image(SIZE, DISKS), sinogram()
noisy = clean + 0.01 * random.normal(size=clean.shape)
flat = {"operator": "radon", "angles": list(TURN), "measurement": "y.npy"}
counts = {**flat, "flat": 20100, "dark": 100}
light = random.poisson(20000 * np.exp(-clean)) + 100
scattered = sorted(random.choice(120, 24, replace=False).tolist())
for what, lost in (("10 in a row", range(30, 40)), ("the last 12, of a scan that was aborted", range(108, 120)), ("the first 17", range(17)),
                   ("20 in a row", range(50, 70)), ("24 of 120", scattered), ("38 in a row", range(30, 68))):
    lost = list(lost)
    keep = np.setdiff1d(np.arange(120), lost)
    broken, shut = noisy.copy(), light.copy()
    broken[lost] = 0
    shut[lost] = 100 + random.normal(0, 2, (len(lost), SIZE))
    for name, array, entries in (("zeros", broken.astype(np.float32), flat), ("closed shutter", np.maximum(shut, 0).astype(np.uint16), counts)):
        save("y.npy", array[keep])
        _, right, _ = solve({**entries, "angles": list(TURN[keep])}, truth)
        save("y.npy", array)
        own, found, said = solve(entries, truth)
        bench.check(own and own.get("lost_views") == lost and "left out" in said and "wider" not in said and abs(found - right) < 0.5,
                    f"{what}, {name}: {len(own.get('lost_views', []))} found, {found:.2f} dB, without them {right:.2f} dB, {said!r}")
broken = noisy.copy()
broken[40:100] = 0
save("y.npy", broken.astype(np.float32))
own, said = plan(flat)
bench.check("lost_views" not in own and "60 of 120 views see nothing" in said, f"half of the views: {said!r}")
for step, radius in ((1.5, 4), (0.5, 4), (0.5, 9)):
    turns = np.arange(0, 180, step)
    leaving = sinogram(turns, [(0.05, 36, 9, radius)])
    share = np.mean(leaving.max(1) == 0)
    for noise in (0, 0.005):
        save("y.npy", (leaving + noise * random.normal(size=leaving.shape)).astype(np.float32))
        own, said = plan({**flat, "angles": list(turns), "size": 96})
        bench.check(own and "lost_views" not in own, f"an object that leaves the detector's sight, in {share:.2f} of the views, noise {noise}: {said!r}")

# --- whole rows of the detector ---------------------------------------------------------------------------------------

thin, vectors = scan_scene.solid(SIDES, BALLS), orbit(60)
save("vectors.npy", vectors)
cone = {"operator": "cone", "vectors": "vectors.npy", "volume": list(SIDES), "measurement": "y.npy"}
perfect = views(vectors)
steady = perfect + 0.01 * perfect.max() * random.normal(size=perfect.shape)
save("y.npy", steady.astype(np.float32))
own, right, said = solve(cone, thin)
bench.check(own and not {"dead_pixels", "zingers", "lost_views"} & set(own), f"no fault: {right:.2f} dB, {said!r}")
for rows, less in (([16], 4), ([12], 4), ([9, 22], 4), ([14, 15, 16], 9)):
    broken = steady.copy()
    broken[:, rows] = 0
    save("y.npy", broken.astype(np.float32))
    own, found, said = solve(cone, thin)
    bench.check(own and own.get("dead_pixels", 0) >= 10 * len(rows) and f"of row {rows[0]}" in said and found > right - less,
                f"rows {rows} of zeros: {own.get('dead_pixels')}, {found:.2f} of {right:.2f} dB, {said!r}")
for noise in (0, 0.01):
    apart = views(vectors, [(0.05, 0, 0, -6, 3), (0.05, 1, 0, 6, 3)]) + noise * random.normal(size=perfect.shape)
    save("y.npy", apart.astype(np.float32))
    own, said = plan(cone)
    bench.check(own and "dead_pixels" not in own, f"air between two balls, noise {noise}: {said!r}")

# --- single values of views ---------------------------------------------------------------------------------------------

for share, off in ((0.001, 1.5), (0.0005, 1.0), (0.001, -0.5), (0.0002, -0.7)):
    broken, hit = steady.copy(), random.random(steady.shape) < share
    broken[hit] += off
    save("y.npy", broken.astype(np.float32))
    own, found, said = solve(cone, thin)
    bench.check(own and abs(own.get("zingers", 0) - hit.sum()) <= 0.1 * hit.sum() and own.get("dead_pixels", 0) <= 3 and "gamma" in said and found > right - 0.5,
                f"{hit.sum()} values with {off}: {own.get('zingers')} filled, {found:.2f} of {right:.2f} dB, {said!r}")
sharp = {"beads": [(1.5, 8, 3, 2, 0.5), (1.2, -7, -5, -5, 0.5), (0.9, 3, 9, 6, 0.4)], "wires": [(0.8, 7, 4, 0.5 * i, 0.4) for i in range(-14, 15)],
         "lines": [(0.8, 0.5 * i, 3, 2, 0.4) for i in range(-16, 17)], "dust": [(1, *random.uniform(-6, 6, 3), 0.45) for _ in range(12)]}
for what, balls in sharp.items():
    for count in (12, 40, 60, 90):
        save("vectors.npy", orbit(count))
        fine = views(orbit(count), [(0.04, 0, 0, 0, 9)] + balls)
        for noise in (0, 0.005):
            save("y.npy", (fine + noise * fine.max() * random.normal(size=fine.shape)).astype(np.float32))
            own, said = plan(cone)
            bench.check(own and "zingers" not in own, f"{what}, {count} views, noise {noise}: nothing is off: {said!r}")

bench.finish()
