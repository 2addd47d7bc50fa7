"""volume_rim.py PROGRAM: objects that reach out of the volume of a cone beam by a voxel, which hardly any ray sees that misses the volume, are noted.
Objects that fill it up to its faces are not, nor are rings, light that flickers and small objects near the edges inside."""
import json
import sys

import scan_scene
from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(8)
ROWS, COLUMNS, FINE, NOISE = 18, 36, 3, 0.01
AROUND = scan_scene.orbit(np.arange(36) * 10 + 4)


def rays(vectors):
    """The source and the directions to points all over each pixel."""
    right, down = [(np.arange(FINE * side) + 0.5) / FINE - side / 2 for side in (COLUMNS, ROWS)]
    for source, middle, u, v in vectors.reshape(-1, 4, 3):
        along = middle + right[None, :, None] * u + down[:, None, None] * v - source
        yield source, along / np.linalg.norm(along, axis=-1, keepdims=True)


def pixels(chord):
    return chord.reshape(ROWS, FINE, COLUMNS, FINE).mean((1, 3))


def ellipsoid(value, x, y, z, a, b, c):
    views = []
    for source, along in rays(AROUND):
        to, along = (source - [x, y, z]) / [a, b, c], along / [a, b, c]
        square, product = (along ** 2).sum(-1), along @ to
        views.append(pixels(2 * value * np.sqrt(np.maximum(product ** 2 - square * (to @ to - 1), 0)) / square))
    return np.array(views)


def box(value, *half):
    views = []
    for source, along in rays(AROUND):
        along = np.where(np.abs(along) < 1e-9, 1e-9, along)
        ends = np.sort([(-np.array(half) - source) / along, (np.array(half) - source) / along], axis=0)
        views.append(pixels(value * np.maximum(ends[1].min(-1) - ends[0].max(-1), 0)))
    return np.array(views)


def check(what, views, volume, noted, light=0.0, rings=0.0):
    largest = views.max()
    views = views + largest * (NOISE * random.normal(size=views.shape) + light * random.normal(size=(len(views), 1, 1)) + rings * random.normal(size=views.shape[1:]))
    np.save(bench.path("vectors.npy"), AROUND)
    np.save(bench.path("y.npy"), views.astype(np.float32))
    bench.path("problem.json").write_text(json.dumps({"operator": "cone", "vectors": "vectors.npy", "volume": volume, "measurement": "y.npy"}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("problem.json"), "--json", bench.path("r.json"), "--iterations", 2)
    if not bench.check(result.status == 0, f"{what}: runs: {result}"):
        return
    record = json.loads(bench.path("r.json").read_text())
    planned, counted = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
    own, larger = record["reconstruct"], f"\"volume\": [{volume[0]}, {volume[1] + 4}, {volume[2] + 4}]"
    bench.check(planned == counted, f"{what}: planned {planned['total']} = counted {counted['total']}")
    bench.check("enlarged_to" not in own and (own.get("rim_share", 0) > 0.005) == noted and ("reaches out of it" in result.err and larger in result.err) == noted and noted == ("reaches out" in result.err),
                f"{what}: {own.get('rim_share')}, {own.get('enlarged_to')}: {result.err!r}")


VOLUME, INSIDE = [14, 20, 20], ellipsoid(0.4, 3, 2, 1, 3, 2, 3)
wide = ellipsoid(0.5, 0, 0, 0, 11, 7.5, 5.5) + INSIDE
check("an ellipsoid of 22 voxels", wide, VOLUME, True)
check("in a volume of 24 voxels", wide, [14, 24, 24], False)
check("all around", ellipsoid(0.5, 0, 0, 0, 10.9, 10.9, 5.5) + INSIDE, VOLUME, True)
full = ellipsoid(0.5, 0, 0, 0, 10, 10, 5.5) + INSIDE
check("up to the faces", full, VOLUME, False)
check("its light flickers, and rings", full, VOLUME, False, light=0.01, rings=0.01)
check("a box up to the faces", box(0.5, 10, 10, 5.5), VOLUME, False)
check("small objects near the edges", ellipsoid(0.5, 6, 6, 1, 3, 3, 3) + ellipsoid(0.4, -6, -6, 0, 3, 3, 3) + INSIDE, VOLUME, False)
bench.finish()
