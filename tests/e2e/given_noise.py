"""A noise that is given and far from what the measurements show, as in another unit, is used, with a note that has the estimate. Others get no note.
Of a picture whose estimate is rough, it is said only of a noise that is too large, since texture looks like noise; what is too small does not fit (misfit.py)."""
import json
import sys

import scan_scene
from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(8)
DISKS = [(0.02, 0, 0, 27), (0.03, 8, 5, 4), (-0.01, -9, 4, 7)]  # value, x, y, radius
BALLS = [(0.04, 0, 0, 0, 9), (0.05, 4, -3, 2, 2.5), (-0.03, 1, 5, 3, 2)]  # value, x, y, z, radius
TURN, ORBIT = np.arange(120) * 1.5, scan_scene.orbit(np.arange(45) * 8.0)


def blurred(size, reach=4):
    v, u = np.mgrid[-reach:reach + 1, -reach:reach + 1]
    kernel = np.exp(-(u * u + v * v) / 4.5)
    np.save(bench.path("k.npy"), kernel)
    y, x = np.mgrid[:size + 2 * reach, :size + 2 * reach]
    sharp = 0.35 + 0.2 * (np.hypot(y - 50, x - 40) < 22) - 0.15 * (np.abs(y - x - 20) < 6) + 0.2 * ((x // 20 + y // 18) % 2) * (x > 60)
    side = range(2 * reach + 1)
    return sum(kernel[i, j] * sharp[i:i + size, j:j + size] for i in side for j in side) / kernel.sum()


np.save(bench.path("vectors.npy"), ORBIT)
CASES = {"sinogram": (scan_scene.sinogram(TURN, 64, DISKS), {"operator": "radon", "angles": list(TURN)}),
         "cone": (scan_scene.views(ORBIT, 24, 36, BALLS), {"operator": "cone", "vectors": "vectors.npy", "volume": [16, 24, 24]}),
         "blur": (blurred(96), {"operator": "blur", "kernel": "k.npy"}),
         "bytes": (255 * blurred(96), {"operator": "blur", "kernel": "k.npy", "range": [0, 255]})}
for name, (clean, entries) in CASES.items():
    noise = 0.02 * clean.max()
    np.save(bench.path("y.npy"), (clean + noise * random.normal(size=clean.shape)).astype(np.float32))
    for factor in (None, *((0.02, 0.1) if entries["operator"] != "blur" else ()), 0.5, 1, 3, 10, 255):
        given = {} if factor is None else {"noise": factor * noise}
        bench.path("p.json").write_text(json.dumps({"measurement": "y.npy", **entries, **given}))
        result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--iterations", 1, "--json", bench.path("r.json"))
        bench.check(result.status == 0, f"{name}: {result}")
        record = json.loads(bench.path("r.json").read_text())
        planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
        said = "the measurements show about" in result.err
        bench.check(said == (factor is not None and not 0.2 < factor < 5) and planned == counted, f"{name}, noise times {factor}: {planned['total']} = {counted['total']}, {result.err!r}")
        if said:
            seen = float(result.err.split("show about ")[1].split(":")[0])
            bench.check(0.5 * noise < seen < 1.4 * noise and abs(record["reconstruct"]["noise"] / (factor * noise) - 1) < 1e-5,
                        f"{name}: about {seen} for {noise}, {record['reconstruct']['noise']} is used")
    np.save(bench.path("y.npy"), clean.astype(np.float32))
    bench.path("p.json").write_text(json.dumps({"measurement": "y.npy", **entries, "noise": 0.01 * clean.max()}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--iterations", 1)
    bench.check("show about" not in result.err, f"{name} without noise, of which the least is given: {result.err!r}")

bench.finish()
