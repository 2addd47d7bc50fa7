"""Values of measured blurs that say nothing of the picture (missing ones, highlights that are cut off, a frame that was set after the blur) are left out of the data
term, and the others are restored as well as without them. Backgrounds and paper are no frames and no highlights."""
import json
import pathlib
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(4)
HEIGHT, WIDTH, REACH = 96, 112, 6
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
disc = np.clip(4.8 - np.hypot(v, u), 0, 1)
gauss = np.exp(-0.5 * (u * u + v * v) / 1.5**2)
y, x = np.mgrid[:HEIGHT + 2 * REACH, :WIDTH + 2 * REACH]
scene = 100 + 40 * np.sin(x / 9) * np.cos(y / 6) + 60 * (np.hypot(y - 50, x - 40) < 22) - 40 * (np.abs(y - x - 20) < 6) + 30 * ((x // 6 + y // 8) % 2) * (x > 90)


def inner(image):
    return image[REACH:-REACH, REACH:-REACH]


def blurred(sharp, kernel, noise=1.0):
    side, k = range(2 * REACH + 1), kernel / kernel.sum()
    out = sum(k[i, j] * sharp[2 * REACH - i:2 * REACH - i + HEIGHT, 2 * REACH - j:2 * REACH - j + WIDTH] for i in side for j in side)
    return out + random.normal(0, noise, out.shape) if noise else out


def bytes_of(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def problem(values, *kernels, **entries):
    np.save(bench.path("y.npy"), values)
    for i, kernel in enumerate(kernels):
        np.save(bench.path(f"k{i}.npy"), kernel)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernels": [f"k{i}.npy" for i in range(len(kernels))], "measurement": "y.npy", **entries}))
    return bench.path("p.json")


def solve(values, *kernels, args=(), env=None, **entries):
    """The record, the result and what was said."""
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(values, *kernels, **entries), "--json", bench.path("r.json"), *args, env=env)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {"reconstruct": {}}, np.zeros(np.shape(values)), ""
    return json.loads(bench.path("r.json").read_text()), np.load(bench.path("out.npy")).astype(float), result.err


def db(image, truth, where=...):
    return 10 * np.log10(255**2 / np.mean((np.float64(image) - truth)[where] ** 2))


def masked(record):
    return record["reconstruct"].get("masked", {})


def as_planned(record):
    return record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"]


truth = inner(scene)
for name, kernel in (("disc", disc), ("Gaussian", gauss)):
    soft = blurred(scene, kernel)
    clean, best, said = solve(bytes_of(soft), kernel)
    bench.check(not masked(clean) and "left out" not in said and clean["reconstruct"]["inner"] == 6, f"{name}: nothing is left out: {said}")

    # A round field of view, bars, and the corners of a turned picture, in black, white and gray.
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    shapes = {"field": np.hypot(rows - HEIGHT / 2, columns - WIDTH / 2) < 45, "bars": (rows > 9) & (rows < HEIGHT - 12), "side": columns < WIDTH - 15,
              "turned": (np.abs(rows + 0.2 * columns - 60) < 40) & (np.abs(columns - 0.2 * rows - 45) < 46)}
    for (shape, seen), value in zip(shapes.items(), (0, 0, 255, 128)):
        framed = bytes_of(soft)
        framed[~seen] = value
        record, out, said = solve(framed, kernel)
        hidden = masked(record).get("frame", 0)
        before, after, right = db(framed, truth, seen), db(out, truth, seen), db(best, truth, seen)
        bench.check((~seen).sum() <= hidden < (~seen).sum() + 3 * (HEIGHT + WIDTH) and "misfit" not in record["reconstruct"] and "frame" in said, f"{name}, {shape}: {hidden} of {(~seen).sum()}: {said}")
        bench.check(after > before + 2 and after > right - 1, f"{name}, {shape}: {before:.2f} to {after:.2f} dB, {right:.2f} without a frame")
        bench.check(np.all(out[~seen] == value), f"{name}, {shape}: the frame stays")
        bench.check(as_planned(record), f"{name}, {shape}: bytes as planned: {record['plan']['peak_bytes']} {record['measured']['peak_bytes']}")
    record, out, _ = solve(framed, kernel, frame=False)
    bench.check(not masked(record) and db(out, truth, seen) < after - 1, f"{name}: a frame that is kept: {db(out, truth, seen):.2f} dB")

    # Highlights: twice as bright as the file holds.
    bright = scene * 1.9
    cut = bytes_of(blurred(bright, kernel))
    record, out, said = solve(cut, kernel)
    kept, worse, _ = solve(cut, kernel, saturated=False)
    known = np.clip(inner(bright), 0, 255)
    before, after, without = db(cut, known), db(out, known), db(worse, known)
    bench.check(masked(record) == {"bright": int((cut == 255).sum())} and "cut off at the largest value" in said and not masked(kept), f"{name}: highlights: {masked(record)}: {said}")
    bench.check(after > before + 2 and after > without + 2 and out.max() <= 255, f"{name}: highlights: {before:.2f} to {after:.2f} dB, {without:.2f} if they are kept")
    plan = bench.run("plan", "reconstruct", bench.path("out.npy"), "--problem", problem(cut, kernel), "--json", bench.path("plan.json"))
    bench.check(plan.status == 0 and "cut off" in plan.err and json.loads(bench.path("plan.json").read_text())["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"plan: the same bytes, and the note: {plan.err}")
    record, apart, _ = solve(cut, kernel, env={"TESSERA_QUEUE": "1"})
    bench.check(np.array_equal(apart, out) and as_planned(record), f"{name}: the same bits with a device of separate memory")

    # Missing values: single ones, a block, whole rows, one channel.
    holes = soft.astype(np.float32)
    holes[random.random(holes.shape) < 0.1] = np.nan
    holes[40:48, 60:70] = np.inf
    holes[:7] = np.nan
    count, seen = int((~np.isfinite(holes)).sum()), np.isfinite(holes)
    record, out, said = solve(holes, kernel, range=[0, 255])
    bench.check(masked(record) == {"missing": count} and "are missing" in said and as_planned(record), f"{name}: {count} missing: {masked(record)}: {said}")
    bench.check(np.all(np.isfinite(out)) and db(out, truth, seen) > db(best, truth, seen) - 1 and db(out[7:], truth[7:]) > db(best[7:], truth[7:]) - 1.5,
                f"{name}: {db(out, truth, seen):.2f} dB where values are, {db(out[7:], truth[7:]):.2f} dB with holes, {db(best, truth, seen):.2f} dB without")

# Single values at the end of the range, as of points of light.
single = bytes_of(soft)
single.flat[random.integers(0, single.size, 25)] = 255
record, out, said = solve(single, gauss, outliers=False)
_, worse, _ = solve(single, gauss, outliers=False, saturated=False)
bench.check(masked(record) == {"bright": int((single == 255).sum())} and record["reconstruct"]["inner"] == 30 and "cut off" not in said and db(out, truth) > db(best, truth) - 0.5 > db(worse, truth) + 2,
            f"single values: {masked(record)}, {db(out, truth):.2f} dB, {db(worse, truth):.2f} dB if they are kept: {said}")

colour = np.stack([soft, 0.8 * soft + 20, 255 - soft], -1).astype(np.float32)
colour[20:30, 30:50, 2] = np.nan
record, out, _ = solve(colour, gauss, range=[0, 255])
bench.check(masked(record) == {"missing": 200} and np.abs(out[20:30, 30:50, 2] - (255 - truth[20:30, 30:50])).mean() < 6, f"one channel: {masked(record)}")

# Values that mark missing data without saying so are as good as NaN: they set neither the range nor the noise.
hole = np.hypot(*(np.mgrid[:HEIGHT, :WIDTH] - np.array([40, 70])[:, None, None])) < 9
gray = blurred(scene, disc)
for kind, factor, offset, mark in (("f4", 1, 0, -9999), ("i2", 1, 0, -32768), ("f4", 1 / 255, 0, -9999), ("f4", 1, 0, 1e20), ("f4", 1, 3000, 0), ("i4", 8, 29000, 0), ("u2", 8, 29000, 65535), ("f8", 0.1, 1e6, 0)):
    name, values = f"{kind} x {factor:.3g} + {offset:g}, {mark:g}", (gray * factor + offset).astype(kind)
    record, right, _ = solve(np.where(hole, np.nan, values).astype("f8" if kind == "f8" else "f4"), disc)
    same, out, said = solve(np.where(hole, np.array(mark, kind), values), disc)
    after, known = (db((image - offset) / factor, truth, ~hole) for image in (out, right))
    bench.check(masked(same) == {"missing": int(hole.sum())} == masked(record) and f"are {np.array(mark, kind):.9g}, far from the others" in said, f"{name}: {masked(same)}: {said}")
    bench.check(after > known - 0.5 and after > db(gray, truth, ~hole) + 2, f"{name}: {db(gray, truth, ~hole):.2f} to {after:.2f} dB, {known:.2f} with NaN")
values = np.where(hole, -9999, gray).astype("f4")
record, _, said = solve(values, disc, saturated=False, args=("--iterations", "1"))
bench.check(not masked(record) and "far from" not in said, f"marks that are kept: {masked(record)}: {said}")
bench.check_refused(bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(values, disc, missing=False)), 1, "y.npy", "are NaN")
bench.check_refused(bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(np.where(hole, 0, gray * 0.01 + 1e6), disc)), 1, "y.npy", "close to each other")
turned = ~shapes["turned"]
record, out, said = solve(np.where(turned, -9999, gray).astype("f4"), disc)
bench.check(masked(record) == {"missing": int(turned.sum())} and db(out, truth, ~turned) > db(gray, truth, ~turned) + 2, f"marks around the picture: {masked(record)}, {db(gray, truth, ~turned):.2f} to {db(out, truth, ~turned):.2f} dB: {said}")
lamp = np.full(scene.shape, 100.0)
lamp[50, 60] = 1e7
record, out, said = solve(np.minimum(np.rint(blurred(lamp, disc)), 65535).astype("u2"), disc, args=("--iterations", "1"))
bench.check(list(masked(record)) == ["bright"] and "far from" not in said, f"a star out of focus that was cut off is no mark: {masked(record)}: {said}")

# Of two blurs, what one does not show the other does; only one has a mask.
first, second = (blurred(scene, k).astype(np.float32) for k in (gauss, disc))
whole, both, _ = solve(np.concatenate([first, second]), gauss, disc, range=[0, 255], gains=[1, 1])
first[30:70, 40:80] = np.nan
record, out, _ = solve(np.concatenate([first, second]), gauss, disc, range=[0, 255], gains=[1, 1])
more = record["plan"]["peak_bytes"]["total"] - whole["plan"]["peak_bytes"]["total"]
bench.check(masked(record) == {"missing": 1600} and db(out, truth) > db(both, truth) - 4, f"two blurs: {db(out, truth):.2f} of {db(both, truth):.2f} dB")
bench.check(3.5 * HEIGHT * WIDTH < more < 6 * HEIGHT * WIDTH, f"two blurs: a mask for one of them: {more} bytes")

# What is no fault: black backgrounds, white paper with noise, a bright disc of one value; stars.
boxes = 200.0 * (((x // 17) % 3 == 1) & ((y // 14) % 3 == 1))
paper = 255 - boxes
points = np.zeros(scene.shape)
points.flat[random.integers(0, points.size, 60)] = 1200
for name, sharp, noise in (("night", boxes, 0), ("night with noise", boxes, 2), ("paper with noise", paper, 2), ("stars", points, 0), ("stars on gray", points + 40, 1), ("one value", 0.7 * boxes + 50, 0),
                           ("gray", 128 + 0.6 * boxes - 0.6 * np.roll(boxes, 17, 1), 0), ("texture on gray", 128 + (boxes > 0) * random.uniform(-128, 127, boxes.shape), 0)):
    for label, kernel in (("disc", disc), ("Gaussian", gauss)):
        record, _, said = solve(bytes_of(blurred(sharp, kernel, noise)), kernel, args=("--iterations", "1"))
        bench.check(not masked(record) and "left out" not in said, f"{name}, {label}: {masked(record)}: {said}")
    record, _, said = solve(blurred(sharp, kernel, noise).astype(np.float32), kernel, args=("--iterations", "1"))
    bench.check(not masked(record), f"{name}, floats: {masked(record)}")

# White paper without noise, behind a kernel without a sharp rim, is no highlight: values fall from it slowly at first. Highlights without noise are.
code = 255.0 * (((x // 14) * 5 + (y // 14) * 3 + (x // 14) * (y // 14)) % 7 < 3)
for name, sharp, white in (("a code", code, True), ("highlights", 1.9 * scene, False)):
    values = bytes_of(blurred(sharp, gauss, 0))
    record, out, said = solve(values, gauss)
    kept, other, _ = solve(values, gauss, saturated=False)
    bench.check(masked(record) == ({} if white else {"bright": int((values == 255).sum())}) and ("cut off" in said) != white and np.array_equal(out, other) == white,
                f"{name} without noise: {masked(record)}, {db(out, np.clip(inner(sharp), 0, 255)):.2f} dB, {db(other, np.clip(inner(sharp), 0, 255)):.2f} dB if all is kept: {said}")

# Floats without a range whose highlights are cut off, where the kernel proves nothing.
motion = np.zeros_like(disc)
motion[REACH] = 1
bright = 1.6 * scene
cut = np.minimum(blurred(bright, motion), 255).astype(np.float32)
known = np.clip(inner(bright), 0, 255)
record, out, _ = solve(40 * cut, motion)
bench.check(masked(record) == {"bright": int((cut == 255).sum())} and db(np.minimum(out / 40, 255), known) > db(cut, known) + 2,
            f"floats cut off: {masked(record)}, {db(cut, known):.2f} to {db(np.minimum(out / 40, 255), known):.2f} dB")

# Bars along the motion, which the kernel allows to begin anywhere.
rows = np.mgrid[:HEIGHT, :WIDTH][0]
seen = (rows > 9) & (rows < HEIGHT - 12)
framed = np.where(seen, bytes_of(blurred(scene, motion)), 0).astype(np.uint8)
record, out, _ = solve(framed, motion)
bench.check(masked(record).get("frame", 0) >= (~seen).sum() and db(out, truth, seen) > db(framed, truth, seen) + 2, f"bars along the motion: {masked(record)}, {db(framed, truth, seen):.2f} to {db(out, truth, seen):.2f} dB")

# A JPEG puts waves beside bars and lights.
try:
    from osgeo import gdal

    gdal.UseExceptions()
except ImportError:
    print("without GDAL's Python module (Debian: python3-gdal) JPEG files are left out")
    gdal = None


def solve_jpeg(values, kernel, quality):
    """The record, the result, and the values that the file keeps."""
    bands = np.atleast_3d(values)
    source = gdal.GetDriverByName("MEM").Create("", WIDTH, HEIGHT, bands.shape[2])
    for i in range(bands.shape[2]):
        source.GetRasterBand(i + 1).WriteArray(bands[..., i])
    gdal.GetDriverByName("JPEG").CreateCopy(str(bench.path("y.jpg")), source, options=[f"QUALITY={quality}"])
    np.save(bench.path("k0.npy"), kernel)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k0.npy", "measurement": "y.jpg"}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"))
    bench.check(result.status == 0, f"runs: {result}")
    return json.loads(bench.path("r.json").read_text()), np.load(bench.path("out.npy")).astype(float), gdal.Open(str(bench.path("y.jpg"))).ReadAsArray()


lights = scene.copy()
for row, column in ((20, 30), (70, 90), (50, 70)):
    lights[row:row + 3, column:column + 3] = 2500
known = np.clip(inner(lights), 0, 255)
for quality in (75, 92) if gdal else ():
    for name, kernel in (("disc", disc), ("Gaussian", gauss), ("motion", motion)):
        record, out, kept = solve_jpeg(np.where(seen, bytes_of(blurred(scene, kernel)), 0).astype(np.uint8), kernel, quality)
        bench.check(masked(record).get("frame", 0) >= (~seen).sum() and db(out, truth, seen) > db(kept, truth, seen) + 1,
                    f"JPEG of quality {quality}, bars, {name}: {masked(record)}, {db(kept, truth, seen):.2f} to {db(out, truth, seen):.2f} dB")
    record, out, kept = solve_jpeg(bytes_of(blurred(lights, gauss)), gauss, quality)
    bench.check(masked(record).get("bright", 0) > 64 and db(out, known) > db(kept, known), f"JPEG of quality {quality}, lights: {masked(record)}, {db(kept, known):.2f} to {db(out, known):.2f} dB")
    bench.check(as_planned(record), "bytes as planned")

# In dark JPEG files the waves of the quantisation are no frames and no ends of the range.
wide = np.exp(-(u * u + v * v) / 8)
for at in (0, 100, 150) if gdal else ():
    dog = 0.15 * gdal.Open(str(pathlib.Path(__file__).resolve().parents[2] / "docs/pictures/dog.png")).ReadAsArray()[:3, at:at + HEIGHT + 2 * REACH, at:at + WIDTH + 2 * REACH]
    record, _, _ = solve_jpeg(bytes_of(np.stack([blurred(band, wide, 0) for band in dog], -1)), wide, 75)
    bench.check(not masked(record), f"a dark JPEG: {masked(record)}")

bench.check_refused(bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(np.concatenate([soft, np.full_like(soft, np.nan)]), gauss, gauss)), 1, "y.npy", "all values of blur 1", "missing")
bench.check_refused(bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(holes, gauss, missing=False)), 1, "y.npy", "are NaN", "fill the gaps")
for key in ("missing", "saturated", "frame"):
    bench.check_refused(bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(soft, gauss, **{key: "yes"})), 1, f'"{key}" must be true')

bench.finish()
