"""Measured scans as instruments write them: an axis off the middle, detectors of another width than the image, angles in
files, units of length, counts with flat and dark fields, integers, folders and TIFF stacks of views. The record
and the summary report the assumptions."""
import json
import struct
import sys

from support import Bench, np, write_png

bench = Bench(sys.argv[1])
few = ["--iterations", "1"]
SIZE, VIEWS = 48, 60
TURN = list(np.linspace(0, 360, VIEWS + 1)[:-1])


def save(name, array):
    np.save(bench.path(name), np.ascontiguousarray(array))
    return name


def disks(x, y):
    """Bright and faint disks, nowhere symmetric; the image in pixels from its axis, x to the right and y down."""
    return [(1.0, 0.1 * x, -0.2 * y, 0.13), (0.4, 0, 0, 0.4), (0.3, -0.22 * x, 0.1 * y, 0.1)]


def sinogram(columns, centre, angles, size=SIZE, points=False):
    """Line integrals, by their formula, as a detector turning counterclockwise sees them; points: in the middles of columns."""
    fine = np.arange(columns * 4)[None] / 4 - 0.375  # the mean over a column
    fine = np.round(fine) if points else fine
    turn = np.deg2rad(np.asarray(angles, float))[:, None]
    sum_of = np.zeros((len(angles), columns * 4))
    for value, x, y, r in disks(size, size):
        away = fine - (centre + x * np.cos(turn) - y * np.sin(turn))
        sum_of += value * 2 * np.sqrt(np.maximum((r * size) ** 2 - away ** 2, 0))
    return sum_of.reshape(len(angles), columns, 4).mean(2).astype(np.float32)


def image(size=SIZE, axis=None, scale=SIZE):
    row, column = axis if axis else ((size - 1) / 2, (size - 1) / 2)
    at = (np.arange(size * 4) + 0.5) / 4 - 0.5
    out = np.zeros((size * 4, size * 4))
    for value, x, y, r in disks(scale, scale):
        out += value * ((at[None] - column - x) ** 2 + (at[:, None] - row - y) ** 2 <= (r * scale) ** 2)
    return out.reshape(size, 4, size, 4).mean((1, 3)).astype(np.float32)


def problem(entries, name="problem.json"):
    bench.path(name).write_text(json.dumps({key: value for key, value in entries.items() if value is not None}))
    return bench.path(name)


def run(entries, *args):
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(entries), *few, *args)
    return (record, np.load(bench.path("out.npy"))) if record else (None, None)


def quality(entries):
    """PSNR after two iterations, noise-free: geometry is all that it tells of."""
    record, _ = run(entries, "--iterations", 2)
    return record["quality"]["psnr_db"] if record else 0


def refused(entries, *words):
    bench.check_refused(bench.run("reconstruct", bench.path("no.npy"), "--problem", problem(entries)), 1, *words)


save("truth.npy", image())
plain = {"operator": "radon", "angles": TURN, "measurement": save("y.npy", sinogram(SIZE, (SIZE - 1) / 2, TURN)),
         "truth": "truth.npy", "noise": 0.05, "range": [0, 1.5]}

# --- the axis -----------------------------------------------------------------------------------------------------

right = quality(plain)
bench.check(right > 22, f"the formula's sinogram gives the image, not its mirror image: {right:.2f} dB")
off = {**plain, "measurement": save("off.npy", sinogram(SIZE, SIZE / 2, TURN))}
wrong, told = quality(off), quality({**off, "centre": SIZE / 2})
print(f"the axis in the middle {right:.2f} dB; half a column off {wrong:.2f} dB, told {told:.2f} dB")
bench.check(told > right - 1, f"half a column off costs nothing when it is told: {told:.2f} of {right:.2f} dB")
bench.check(wrong < right - 2.5, f"and much when it is not: {wrong:.2f} dB")
record, _ = run({**off, "centre": "auto"})
if record:
    own = record["reconstruct"]
    bench.check(abs(own["centre"] - SIZE / 2) < 0.02 and own["centre_from"] == "opposite views" and own["centre_pairs"] == VIEWS // 2,
                f"it is found from opposite views: {own['centre']}")
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**off, "centre": "auto"}), *few)
    bench.check(f"found from {VIEWS // 2} pairs of opposite views" in result.out, "and people are told")
noisy = save("off_noisy.npy", sinogram(SIZE, SIZE / 2, TURN) + np.random.default_rng(2).normal(0, 0.2, (VIEWS, SIZE)).astype(np.float32))
for entries, said in ((off, True), ({**off, "measurement": noisy, "noise": None}, True), (plain, False)):
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(entries), *few)
    bench.check(("the views show it near 24.0" in result.err) == said and "detector's columns" not in result.err,
                f"{entries['measurement']}: half a column off is {'' if said else 'not '}noted, and no errors of the detector: {result.err}")
half = list(np.linspace(0, 180, VIEWS + 1)[:-1])
record, _ = run({**plain, "angles": half, "measurement": save("half.npy", sinogram(SIZE, 20.3, half)), "centre": "auto"})
bench.check(record and abs(record["reconstruct"]["centre"] - 20.3) < 0.05 and record["reconstruct"]["centre_from"] == "spectrum of the views",
            "or from the spectrum of all views")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**plain, "angles": half, "measurement": "half.npy", "centre": "auto"}), *few)
bench.check("only to within" not in result.err and "found from the spectrum of the views" in result.out, f"which is exact without noise: {result.err}")
tilts = list(np.linspace(-60, 60, VIEWS))
record, _ = run({**plain, "angles": tilts, "measurement": save("tilts.npy", sinogram(SIZE, 20.3, tilts)), "centre": "auto"})
bench.check(record and abs(record["reconstruct"]["centre"] - 20.3) < 0.05 and record["reconstruct"]["centre_from"] == "centre of mass",
            "or from the centres of mass, where directions are missing")
turns, at = np.deg2rad(half)[:, None], np.arange(SIZE)[None]
thin = sum(np.exp(-0.5 * (at - 22.3 - 3 * i * np.cos(turns + 2 * i)) ** 2) for i in range(6)) + np.random.default_rng(5).normal(0, 0.05, (VIEWS, SIZE))
record, _ = run({**plain, "angles": half, "measurement": save("half_thin.npy", thin.astype(np.float32)), "truth": None, "centre": "auto"})
bench.check(record and abs(record["reconstruct"]["centre"] - 22.3) < 4 * record["reconstruct"]["centre_within"] < 0.2,
            f"thin wires in noise: {record and record['reconstruct']['centre']}")
rough = save("half_noisy.npy", sinogram(SIZE, 22.3, half) + np.random.default_rng(3).normal(0, 1, (VIEWS, SIZE)).astype(np.float32))
entries = {**plain, "angles": half, "measurement": rough, "centre": "auto", "noise": 1}
record, _ = run(entries)
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(entries), *few)
within = record["reconstruct"].get("centre_within", 0) if record else 0
bench.check(record and 0.02 < within < 0.25 and abs(record["reconstruct"]["centre"] - 22.3) < 4 * within and "only to within" in result.err,
            f"with noise its error is in the record and noted: {within}, {result.err}")
closed = list(np.linspace(0, 180, VIEWS))  # one pair of opposite views: its noise would count in full
worst = 0
for seed in range(4):
    noise = np.random.default_rng(seed).normal(0, 1, (VIEWS, SIZE)).astype(np.float32)
    record, _ = run({**entries, "angles": closed, "measurement": save("closed.npy", sinogram(SIZE, 22.3, closed) + noise)})
    own = record["reconstruct"] if record else {}
    worst = max(worst, abs(own.get("centre", 0) - 22.3) / own.get("centre_within", 1e-9))
bench.check(worst < 4 and own.get("centre_from") == "spectrum of the views", f"a view at half a turn more: errors of at most {worst:.1f} times centre_within")
for beyond in (SIZE * 10, -2 * SIZE):
    refused({**plain, "centre": beyond}, "misses the detector", "centre")
record, _ = run({**plain, "centre": -3})
bench.check(record is not None, "an axis beside a detector that still sees the image")
for name, width, at in (("narrow.npy", 24, 11.5), ("side.npy", SIZE, 5)):  # most of the object is beside the detector
    refused({**plain, "angles": half, "measurement": save(name, sinogram(width, at, half)), "truth": None, "centre": "auto"}, name, "centre", "as a column")
record, _ = run({**plain, "measurement": save("narrow.npy", sinogram(24, 9.3, TURN)), "truth": None, "centre": "auto", "size": SIZE})
bench.check(record and abs(record["reconstruct"]["centre"] - 9.3) < 0.05, f"opposite views of a narrow detector: {record and record['reconstruct']['centre']}")
for at in (-2, SIZE + 1):  # opposite views fit best where they hardly overlap
    turn, columns = np.deg2rad(TURN)[:, None], np.arange(SIZE)[None] - at
    beside = sum(v * 2 * np.sqrt(np.maximum(r ** 2 - (columns - x * np.cos(turn) + y * np.sin(turn)) ** 2, 0)) for v, x, y, r in ((0.5, 2, 1, 20), (0.5, 3, -4, 8), (0.3, -8, 5, 5)))
    refused({**plain, "measurement": save("beside.npy", beside.astype(np.float32)), "truth": None, "centre": "auto"}, "beside.npy", "centre", "as a column")
for angles in (half, TURN):
    refused({**plain, "angles": angles, "measurement": save("zero.npy", np.zeros((VIEWS, SIZE), np.float32)), "centre": "auto"}, "zero.npy", "all its values are zero")
noise = np.random.default_rng(1).normal(0, 1, (VIEWS, SIZE)).astype(np.float32)
refused({**plain, "measurement": save("noise.npy", noise), "centre": "auto"}, "noise.npy", "centre", "mirror")
refused({**plain, "angles": half, "measurement": "noise.npy", "centre": "auto"}, "noise.npy", "centre", "as a column")
wide = {**plain, "measurement": save("wide.npy", sinogram(SIZE + 21, 30.2, TURN)), "centre": 30.2, "size": SIZE}
bench.check(quality(wide) > right - 0.5, "a wider detector, of an image of its own size")
bench.check(quality({**wide, "circle": False}) > right - 0.7, "also without the circle")
large = {**plain, "size": SIZE + 10, "truth": save("large.npy", image(SIZE + 10)), "circle": False}
larger = quality(large)
bench.check(larger > right - 2, f"a larger image than the detector is wide: {larger:.2f} dB")
# The axis in the middle of a pixel of an image with an even side, as scikit-image and others have it.
beside = {**off, "centre": SIZE / 2, "axis": [SIZE / 2, SIZE / 2], "truth": save("beside.npy", image(axis=(SIZE / 2, SIZE / 2)))}
bench.check(quality(beside) > right - 0.5, "the axis may stand elsewhere in the image")

# --- angles -------------------------------------------------------------------------------------------------------

_, first = run(plain)
bench.path("angles.txt").write_text("# degrees\n" + ",\n".join(map(repr, map(float, TURN))))
bench.path("marked.txt").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(map(repr, map(float, TURN))).encode())
for what, angles in (("NPY", save("angles.npy", np.array(TURN))), ("text", "angles.txt"), ("text with a byte-order mark", "marked.txt"), ("steps", {"from": 0, "to": 360, "count": VIEWS, "endpoint": False}),
                     ("an end", {"from": 0, "to": TURN[-1], "count": VIEWS, "endpoint": True})):
    _, same = run({**plain, "angles": angles})
    bench.check(same is not None and np.abs(same - first).max() < 1e-5, f"angles from {what}")
_, same = run({**plain, "angles": [-angle for angle in TURN], "rotation": "clockwise"})
bench.check(same is not None and np.array_equal(same, first), "angles that grow clockwise")
_, flipped = run({**plain, "measurement": save("flipped.npy", sinogram(SIZE, (SIZE - 1) / 2, TURN)[:, ::-1])})
bench.check(flipped is not None and np.abs(np.fliplr(flipped) - first).mean() > 0.02, "a detector read from the other end is another picture")
_, flipped = run({**plain, "measurement": "flipped.npy", "rotation": "clockwise"})
bench.check(flipped is not None and np.abs(flipped[:, ::-1] - first).mean() < 0.01, "its mirror image with the other sense of rotation")

# --- units and the range ------------------------------------------------------------------------------------------

small = {**plain, "measurement": save("small.npy", sinogram(SIZE, (SIZE - 1) / 2, TURN) * 0.02 * 0.5), "spacing": 0.5,
         "truth": save("small_truth.npy", image() * 0.02), "noise": 0.05 * 0.01, "range": [0, 0.03]}
record, scaled = run(small)
bench.check(record and np.abs(scaled / 0.02 - first).max() < 1e-3, "millimetres and coefficients of 0.02: the same image")
bench.check(record and abs(record["reconstruct"]["noise"] - 0.0005) < 1e-9 and record["reconstruct"]["spacing"] == 0.5, "and the record tells their units")
for factor in (0.02, 1, 3000):
    entries = {**plain, "measurement": save("units.npy", sinogram(SIZE, (SIZE - 1) / 2, TURN) * factor),
               "truth": save("units_truth.npy", image() * factor), "noise": 0.05 * factor, "range": None}
    record, unknown = run(entries, "--iterations", 4)
    if record:
        own = record["reconstruct"]
        bench.check(own["range_from"] == "data" and own["range"][0] == 0 and 1.25 < own["range"][1] / factor < 2.4, f"the range is that of the data: {own['range']}")
        own_psnr = 10 * np.log10((1.4 * factor) ** 2 / np.mean((unknown.astype(float) - image() * factor) ** 2))
        bench.check(abs(record["quality"]["psnr_db"] - own_psnr) < 0.1, f"PSNR is that of the truth's largest value: {record['quality']['psnr_db']:.2f}, {own_psnr:.2f}")
        bench.check(own_psnr > right - 4 and unknown.max() > 1.2 * factor, f"nothing bright is cut off: {unknown.max() / factor:.2f}")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**plain, "range": None}), *few)
bench.check("from the data" in result.out and "axis at column 23.500" in result.out, "people are told of range and axis")
signed = {**plain, "truth": None, "measurement": save("signed.npy", sinogram(SIZE, (SIZE - 1) / 2, TURN) - sinogram(SIZE, (SIZE - 1) / 2, TURN)[::-1])}
bench.check_refused(bench.run("reconstruct", bench.path("no.npy"), "--problem", problem({**signed, "range": None}), *few), 1, "signed.npy", "negative", "range")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**signed, "range": [-1, 1]}), *few)
bench.check(result.status == 0 and "begins with -1" in result.err, f"an image with negative values is made when its range is given, with a note: {result}")

# --- counts -------------------------------------------------------------------------------------------------------

light = (1000 + 20000 * np.exp(-sinogram(SIZE, (SIZE - 1) / 2, TURN) / 10)).round().astype(np.uint16)
counts = {**plain, "measurement": save("counts.npy", light), "counts": True, "flat": 21000, "dark": 1000, "spacing": 0.1}
record, counted = run(counts)
bench.check(record and np.abs(counted - first).mean() < 0.01 and record["reconstruct"]["starved"] == 0, "counts become line integrals")
fields = {**counts, "flat": save("flat.npy", np.full((3, SIZE), 21000, np.uint16)), "dark": save("dark.npy", np.full((1, SIZE), 1000.0, np.float32))}
_, same = run(fields)
bench.check(same is not None and np.abs(same - counted).max() < 1e-4, "fields as images, averaged")
starved = light.copy()
starved[:5, 24] = 900
record, _ = run({**counts, "measurement": save("starved.npy", starved)})
bench.check(record and record["reconstruct"]["starved"] == 5, "where nothing was counted, the record says so")
_, numbers = run({**plain, "measurement": save("integers.npy", (sinogram(SIZE, (SIZE - 1) / 2, TURN)).round().astype(np.int32))})
bench.check(numbers is not None and np.abs(numbers - first).mean() < 0.1, "integers are taken as the numbers they are")

# --- views as files -----------------------------------------------------------------------------------------------


def tiff(path, pages, order="<", wide=False):
    """Uncompressed gray pages, one strip each; every second one is followed by a small overview. `wide`: BigTIFF."""
    mark = b"II" if order == "<" else b"MM"
    out = bytearray(struct.pack(order + "2sHHHQ", mark, 43, 8, 0, 0) if wide else struct.pack(order + "2sHI", mark, 42, 0))
    offset, count, entry, link = ("Q", "Q", "HHQI4x", 8) if wide else ("I", "H", "HHII", 4)
    for number, page in enumerate(pages):
        for kind, pixels in ((0, page), (1, page[::2, ::2]))[:1 + number % 2]:
            pixels = np.ascontiguousarray(pixels).astype(page.dtype.newbyteorder(order))
            data = len(out)
            out += pixels.tobytes() + b"\0" * (-pixels.nbytes % 2)
            tags = [(254, kind), (256, pixels.shape[1]), (257, pixels.shape[0]), (258, 8 * pixels.itemsize), (259, 1), (262, 1),
                    (273, data), (277, 1), (278, pixels.shape[0]), (279, pixels.nbytes), (339, 3 if pixels.dtype.kind == "f" else 1)]
            struct.pack_into(order + offset, out, link, len(out))
            out += struct.pack(order + count, len(tags)) + b"".join(struct.pack(order + entry, tag, 4, 1, value) for tag, value in tags)
            link = len(out)
            out += struct.pack(order + offset, 0)
    bench.path(path).write_bytes(bytes(out))
    return path


scan = np.stack([sinogram(SIZE, (SIZE - 1) / 2, TURN) * share for share in (0.5, 1, 0.2)], 1)  # (views, rows, columns)
save("scan.npy", scan)
_, same = run({**plain, "measurement": "scan.npy", "row": 1})
bench.check(same is not None and np.array_equal(same, first), "a row of (views, rows, columns)")
bench.path("folder").mkdir()
for number, view in enumerate(scan):  # without leading zeros: view 2 comes before view 10
    np.save(bench.path(f"folder/view_{number}.npy"), view)
bench.path("folder/notes.txt").write_text("not a view")
for name, form in (("tilt", "v_{:+d}.npy"), ("bare", "{}.npy"), ("tenths", "scan2_{:.1f}_.npy"), ("dashes", "v-{}.npy")):
    bench.path(name).mkdir()
    for number, view in enumerate(scan):  # a '-' is a sign where others have none
        np.save(bench.path(name) / form.format((number - 30) / 2 if name == "tenths" else number if name == "dashes" else number - 30), view)
    _, same = run({**plain, "measurement": name, "row": 1})
    bench.check(same is not None and np.array_equal(same, first), f"a folder of views named {form}")
quarters = [number / 4 for number in range(VIEWS)]
for name, names in (("quarters", [f"t_{n:g}" for n in quarters]), ("floats", [f"t{n}" for n in quarters]), ("counted", [f"run1.{n + 1}" for n in range(VIEWS)]),
                    ("first", ["scan"] + [f"scan-{n + 1}" for n in range(VIEWS - 1)]), ("below", [f"tilt_{3 * (n - VIEWS)}" for n in range(VIEWS)]),
                    ("alike", [f"tilt_-{160 - n}" for n in range(VIEWS)]), ("minus", [f"{n - 100}" for n in range(VIEWS)])):
    bench.path(name).mkdir()
    for stem, view in zip(names, scan):
        np.save(bench.path(name) / f"{stem}.npy", view)
    _, same = run({**plain, "measurement": name, "row": 1})
    bench.check(same is not None and np.array_equal(same, first), f"views named {names[0]}, {names[1]}, ..., {names[-1]}")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**plain, "measurement": "first", "row": 1}), *few, "--verbose")
bench.check(f"{VIEWS} views, the first scan.npy, the last scan-{VIEWS - 1}.npy" in result.err, f"--verbose tells their order: {result}")
_, same = run({**plain, "measurement": "folder", "row": 1})
bench.check(same is not None and np.array_equal(same, first), "a folder of views")
if bench.has_gdal():
    _, same = run({**plain, "measurement": tiff("scan.tif", scan), "row": 1})
    bench.check(same is not None and np.array_equal(same, first), "the pages of a TIFF file, without their overviews")
    _, same = run({**plain, "measurement": tiff("wide.tif", scan, ">", True), "row": 1})
    bench.check(same is not None and np.array_equal(same, first), "those of a big-endian BigTIFF file too")
    raw = np.stack([light // 2, light, light], 1)
    _, same = run({**counts, "measurement": tiff("counts.tif", raw), "row": 1})
    bench.check(same is not None and np.array_equal(same, counted), "counts in a TIFF file of 16 bits")
    flat = tiff("flat.tif", np.full((2, 3, SIZE), 21000, np.uint16))
    _, same = run({**counts, "measurement": "counts.tif", "row": 1, "flat": flat})
    bench.check(same is not None and np.abs(same - counted).max() < 1e-4, "with its flat fields in another")
    broken = bytearray(bench.path("scan.tif").read_bytes())
    bench.path("cut.tif").write_bytes(bytes(broken[:len(broken) // 2]))
    refused({**plain, "measurement": "cut.tif", "row": 1}, "cut.tif", "page")
    broken[4:8] = struct.pack("<I", len(broken) - 4 - 2 - 11 * 12)
    broken[-4:] = broken[4:8]  # the last directory follows itself
    bench.path("loop.tif").write_bytes(bytes(broken))
    refused({**plain, "measurement": "loop.tif", "row": 1}, "loop.tif", "pages")
# The same slices as a volume of three rows, along vectors.
c, s, zero, one = np.cos(np.deg2rad(TURN)), np.sin(np.deg2rad(TURN)), np.zeros(VIEWS), np.ones(VIEWS)
save("vectors.npy", np.stack([s, c, zero, zero, zero, zero, c, -s, zero, zero, zero, one], 1))
volume = {"operator": "parallel3d", "vectors": "vectors.npy", "volume": [3, SIZE, SIZE], "measurement": "scan.npy", "noise": 0.05, "range": [0, 1.5]}
_, array = run(volume)
_, same = run({**volume, "measurement": "folder"})
bench.check(array is not None and same is not None and np.array_equal(array, same), "a folder of a volume's views")
bench.check(array is not None and np.abs(array[1] - image()).mean() < 0.05, "x runs along the width and y down the height")
record, _ = run({**volume, "range": None})
bench.check(record and 1.2 < record["reconstruct"]["range"][1] < 2.4, "the range of a volume, from the data")

# --- what is wrong is told ----------------------------------------------------------------------------------------

bad = scan[:, 1].copy()
bad[3, 7] = bad[4, 8] = bad[50, 1] = np.nan
for change, words in [
    ({"measurement": save("bad.npy", bad)}, ["bad.npy", "3 are NaN", "row 3, column 7"]),
    ({"centre": "left"}, ["centre", "auto", "23.5"]),
    ({"centre": [1]}, ["centre", "auto"]),
    ({"axis": [1]}, ["axis", "[row, column]"]),
    ({"axis": [1, 99]}, ["axis", "47"]),
    ({"spacing": 0}, ["spacing", "above 0"]),
    ({"rotation": "left"}, ["rotation", "clockwise"]),
    ({"angles": {"from": 0, "to": 180}}, ["angles", "count"]),
    ({"angles": {"from": 0, "to": 180, "count": 60, "steps": 2}}, ["angles", "steps"]),
    ({"angles": "missing.txt"}, ["missing.txt"]),
    ({"angles": "notes.txt"}, ["notes.txt", "numbers"]),
    ({"counts": True}, ["counts", "flat"]),
    ({"counts": False, "flat": 3}, ["flat", "counts"]),
    ({"flat": 100, "dark": 100}, ["flat", "dark", "48 of 48"]),
    ({"flat": save("f2.npy", np.ones((1, 9), np.float32))}, ["f2.npy", "48 columns"]),
    ({"measurement": "scan.npy"}, ["scan.npy", "row"]),
    ({"measurement": "scan.npy", "row": 3}, ["scan.npy", "row", "3 row(s)"]),
    ({"row": 1}, ["row", "sinogram already", "leave"]),
    ({"row": 0}, ["row", "sinogram already", "leave"]),
    ({"measurement": "scan.npy", "row": "1"}, ["row", "whole number"]),
    ({"measurement": "scan.npy", "row": 1.5}, ["row", "whole number"]),
    ({"measurement": "colour.png"}, ["colour.png", "3 channels", "one channel"]),
    ({"measurement": "colour.png", "row": 1}, ["colour.png", "3 channels", "one channel"]),
    ({"measurement": "empty"}, ["empty", "0 image files"]),
    ({"measurement": "mixed", "row": 0}, ["mixed", "view 1", "first"]),
]:
    bench.path("notes.txt").write_text("zero, one, two")
    bench.path("empty").mkdir(exist_ok=True)
    bench.path("mixed").mkdir(exist_ok=True)
    for number in range(VIEWS):
        np.save(bench.path(f"mixed/{number}.npy"), np.ones((2, SIZE - (number == 1)), np.float32))
    write_png(bench.path("colour.png"), np.zeros((VIEWS, SIZE, 3), np.uint8))
    refused({**plain, **change}, *words)
_, same = run({**plain, "measurement": "scan.npy", "row": 1.0, "size": float(SIZE)})
bench.check(same is not None and np.array_equal(same, first), "whole numbers may be written 48.0")
# --- a column is the mean over its width ----------------------------------------------------------------------------

middle, found = (SIZE - 1) / 2, {}
for kind in ("mean", "points"):
    save(f"{kind}.npy", sinogram(SIZE, middle, TURN, points=kind == "points"))
    for noise in (None, 0.1, 0.3):
        record, _ = run({**plain, "measurement": f"{kind}.npy", "noise": noise, "range": None}, "--iterations", 8)
        found[kind, noise] = record["quality"]["psnr_db"] if record else 0
print("means and points of the columns, by noise:", {f"{k} {n}": round(v, 2) for (k, n), v in found.items()})
bench.check(found["mean", None] > found["points", None], "points in place of means cost some dB")

# --- matter outside of the image, or of the detector ---------------------------------------------------------------

few[1:] = ["2"]
INNER = SIZE // 2
inner = image(INNER)
save("inner.npy", inner)
half = {**plain, "size": INNER, "truth": "inner.npy"}
whole, all_of_it = run(plain)
record, part = run(half)
if record and whole:
    told = record["reconstruct"]
    bench.check(part.shape == (INNER, INNER) and 36 <= told["enlarged_to"] <= SIZE and told["outside_share"] > 0.1,
                f"a region of interest: {part.shape}, {told['enlarged_to']}, {told['outside_share']}")
    full = np.load(bench.path("truth.npy"))
    edge = (SIZE - INNER) // 2
    bench.check(np.array_equal(inner, full[edge:-edge, edge:-edge]), "its truth is a part of the truth")
    errors = [np.sqrt(np.mean((a - inner) ** 2)) for a in (part, all_of_it[edge:-edge, edge:-edge])]
    bench.check(errors[0] < 1.1 * errors[1], f"is right: error {errors[0]:.4f}, of the same part of the whole image {errors[1]:.4f}")
    bench.check(record["plan"]["peak_bytes"] == bench.record("plan", "reconstruct", bench.path("out.npy"), "--problem",
                                                             problem(half))["plan"]["peak_bytes"], "its plan is the same")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(half), *few, "--side-by-side",
                   bench.path("side.npy"))
bench.check(result.status == 0 and '"size": ' in result.err and "outside the shadow" in result.err, f"a note: {result.err!r}")
side = np.load(bench.path("side.npy"))
bench.check(side.shape[0] == INNER and np.abs(side[:, :INNER] - inner).mean() < 0.1, f"the first picture is cropped: {side.shape}")
noise = np.random.default_rng(1).standard_normal((VIEWS, 2 * SIZE)).astype(np.float32)
small = np.pad(sinogram(SIZE, (SIZE - 1) / 2, TURN), ((0, 0), (SIZE // 2, SIZE // 2)))
for level in (0, 0.3):
    record, _ = run({**plain, "measurement": save("air.npy", small + np.float32(level) * noise), "size": SIZE})
    bench.check(record and "enlarged_to" not in record["reconstruct"], f"noise of {level} in the air is no matter")
narrow = {**plain, "measurement": save("narrow.npy", sinogram(INNER, (INNER - 1) / 2, TURN)), "truth": "inner.npy"}
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem(narrow), *few)
bench.check(result.status == 0 and "wider than the detector" in result.err, f"an object wider than the detector: {result.err!r}")
record, _ = run(narrow)
bench.check(record and record["reconstruct"]["edge_share"] > 0.05, "and a key of the record")
result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**narrow, "size": 40, "truth": None}), *few)
bench.check(result.status == 0 and "wider" not in result.err, f"no note where the image has room: {result.err!r}")
record, _ = run(plain)
bench.check(record and "edge_share" not in record["reconstruct"] and "enlarged_to" not in record["reconstruct"],
            "no such keys where the detector sees all")

result = bench.run("reconstruct", bench.path("folder/view_3.npy"), "--problem", problem({**plain, "measurement": "folder", "row": 1}))
bench.check_refused(result, 2, "view_3.npy", "another name")
bench.path("link.json").symlink_to("folder/view_3.npy")
before = bench.path("folder/view_3.npy").read_bytes()
for name in ("folder/view_3.npy", "link.json"):
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", problem({**plain, "measurement": "folder", "row": 1}), *few,
                       "--json", bench.path(name))
    bench.check_refused(result, 2, "--json", "is a file of this job")
bench.check(bench.path("folder/view_3.npy").read_bytes() == before, "the view is kept")
bench.finish()
