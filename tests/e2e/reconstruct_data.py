"""What comes into `reconstruct` and goes out of it: values that a raster marks as missing, numbers that 32-bit floats cannot
hold, ranges in another unit, arrays in another order. Nothing of it gives a plausible but wrong picture with status 0."""
import json
import struct
import sys
import zlib

from support import Bench, leftovers, np, psnr, write_png
from tiff import read_tiff, tags_of, write_tiff

bench = Bench(sys.argv[1])
SIDE, VIEWS = 32, 40
few = ["--iterations", "1"]
random = np.random.default_rng(3)
gdal = bench.has_gdal()


def save(name, array):
    np.save(bench.path(name), array)
    return name


def problem(entries):
    bench.path("problem.json").write_text(json.dumps({key: value for key, value in entries.items() if value is not None}))
    return bench.path("problem.json")


def run(entries, *args, out="out.npy"):
    return bench.run("reconstruct", bench.path(out), "--problem", problem(entries), *few, *args)


def solve(entries, *args):
    record = bench.record("reconstruct", bench.path("out.npy"), "--problem", problem(entries), *few, *args)
    return (record, np.load(bench.path("out.npy"))) if record else (None, None)


def refused(entries, *words):
    bench.check_refused(run(entries, out="no.npy"), 1, *words)


def noted(entries, what, *words, args=(), out="out.npy"):
    result = run(entries, *args, out=out)
    bench.check(result.status == 0 and all(word in result.err for word in words), f"{what}: a note with {words}: {result}")


def quiet(entries, what):
    result = run(entries)
    bench.check(result.status == 0 and not result.err, f"{what}: no note: {result}")


# --- a disk off the middle, seen by a scan; its picture, blurred -------------------------------------------------------

angles = np.arange(VIEWS) * 180.0 / VIEWS
turn = np.deg2rad(angles)[:, None]


def scan_of(columns, centre, level=0.0):
    away = np.arange(columns)[None] - (centre + 4 * np.cos(turn) - 2 * np.sin(turn))
    return np.float32(2 * np.sqrt(np.maximum(64 - away ** 2, 0)) + level * random.standard_normal(away.shape))


scan = scan_of(SIDE, 15.5)
y, x = np.mgrid[0:SIDE, 0:SIDE]
disk = np.float32(np.hypot(x - 19.5, y - 17.5) <= 8)
picture = np.float32(0.2 + 0.5 * disk + 0.01 * x)
radon = {"operator": "radon", "angles": {"from": 0, "to": 180, "count": VIEWS}, "measurement": save("scan.npy", scan), "range": [0, 1.2], "noise": 0.05}
blur = {"operator": "blur", "kernel": save("k.npy", np.ones((1, 3))), "measurement": save("picture.npy", picture), "noise": 0.01}
zero, one = np.zeros((VIEWS, 1)), np.ones((VIEWS, 1))
save("vectors.npy", np.hstack([60 * np.sin(2 * turn), -60 * np.cos(2 * turn), zero, -30 * np.sin(2 * turn), 30 * np.cos(2 * turn), zero,
                               1.5 * np.cos(2 * turn), 1.5 * np.sin(2 * turn), zero, zero, zero, 1.5 * one]))
cone = {"operator": "cone", "vectors": "vectors.npy", "volume": [4, 16, 16], "measurement": save("views.npy", random.random((VIEWS, 6, 24)).astype(np.float32)),
        "range": [0, 1], "noise": 0.05}
_, right = solve(radon)

# --- missing values: nodata and masks are what NaN is ------------------------------------------------------------------

if gdal:
    hole = (20, 7)
    for what, entries, array, name in (("a sinogram", radon, scan, "scan.tif"), ("a blur", {**blur, "missing": False}, picture, "blur.tif")):
        marked = array.copy()
        marked[hole] = marked[25, 3] = -9999
        bench.path("nodata").mkdir(exist_ok=True)
        write_tiff(bench.path(name), marked, nodata="-9999")
        refused({**entries, "measurement": name}, name, "2 are NaN", "row 20, column 7")
        refused({**entries, "measurement": name, "range": None}, name, "2 are NaN", "row 20, column 7")
        write_tiff(bench.path(name), marked.astype(np.float64), nodata="-9999")
        refused({**entries, "measurement": name}, name, "2 are NaN", "row 20, column 7")
        write_tiff(bench.path(name), np.abs(array) + 1, mask=np.where(marked == -9999, 0, 255))
        refused({**entries, "measurement": name}, name, "2 are NaN", "row 20, column 7")
        if what == "a blur":  # unless they are left out
            record, _ = solve({**entries, "measurement": name, "missing": True})
            bench.check(record and record["reconstruct"].get("masked") == {"missing": 2}, f"{what}: what a mask hides is left out")
        write_tiff(bench.path(name), array, nodata="-9999")
        record, same = solve({**entries, "measurement": name})
        _, array_result = solve(entries)
        bench.check(record and np.array_equal(same, array_result), f"{what} whose nodata value does not occur is read as an array is")
    # Views in a folder; flat and dark fields.
    bench.path("views").mkdir()
    counts = np.rint(1000 * np.exp(-0.02 * scan))
    for i in range(VIEWS):
        write_tiff(bench.path(f"views/{i}.tif"), np.float32(scan[i:i + 1]), nodata="-1")
    record, same = solve({**radon, "measurement": "views"})
    bench.check(record and np.array_equal(same, right), "a folder of TIFF files")
    broken = scan[9:10].copy()
    broken[0, 5] = -1
    write_tiff(bench.path("views/9.tif"), np.float32(broken), nodata="-1")
    refused({**radon, "measurement": "views"}, "1 are NaN", "row 9, column 5")
    light = np.full((1, SIDE), 1000, np.float32)
    light[0, 4] = 0
    write_tiff(bench.path("flat.tif"), light, nodata="0")
    counted = {**radon, "measurement": save("counts.npy", np.float32(counts)), "range": None, "noise": None}
    refused({**counted, "flat": "flat.tif"}, "flat.tif", "1 are NaN", "row 0, column 4")
    write_tiff(bench.path("dark.tif"), 1000 - light, nodata="1000")
    refused({**counted, "flat": 2000, "dark": "dark.tif"}, "dark.tif", "1 are NaN", "row 0, column 4")
    # The picture of a synthetic problem.
    black = picture.copy()
    black[3, 4] = 0
    write_tiff(bench.path("image.tif"), black, nodata="0")
    for size in ([], ["--size", 16]):
        result = bench.run("reconstruct", bench.path("no.npy"), "--problem", "deblur", "--image", bench.path("image.tif"), *size, *few)
        bench.check_refused(result, 1, "image.tif", "1 are NaN", "row 3, column 4")

# A truth may have holes, which do not count.
plain, _ = solve({**blur, "truth": save("truth.npy", picture)})
part = picture.copy()
part[:9] = np.nan
record, result = solve({**blur, "truth": save("part.npy", part)})
if plain and record:
    own = psnr(np.clip(result[9:], 0, 1), picture[9:])
    bench.check(abs(record["quality"]["psnr_db"] - own) < 1e-3, f"PSNR without the holes of the truth: {record['quality']['psnr_db']:.3f}, {own:.3f} dB")
    bench.check(0.1 < record["quality"]["ssim"] < 1 and record["quality"]["ssim"] != plain["quality"]["ssim"], f"SSIM too: {record['quality']['ssim']}, {plain['quality']['ssim']}")
refused({**blur, "truth": save("none.npy", np.full_like(picture, np.nan))}, "none.npy", "no value")
if gdal and record:
    write_tiff(bench.path("part.tif"), np.where(np.isnan(part), np.float32(-9999), part), nodata="-9999")
    marked, _ = solve({**blur, "truth": "part.tif"})
    bench.check(marked and marked["quality"] == record["quality"], "nodata in the truth is the same")
volume, _ = solve({**cone, "truth": save("solid.npy", np.full((4, 16, 16), 0.5, np.float32))})
part = np.full((4, 16, 16), 0.5, np.float32)
part[0] = np.nan
record, result = solve({**cone, "truth": save("solid_part.npy", part)})
if record:
    own = psnr(np.clip(result[1:], 0, 1), part[1:])
    bench.check(abs(record["quality"]["psnr_db"] - own) < 1e-3, f"a volume: {record['quality']['psnr_db']:.3f}, {own:.3f} dB")

# --- numbers that 32-bit floats cannot hold ----------------------------------------------------------------------------

for factor, offset, words in ((1, 1e7, "close"), (1e-300, 0, "near 0"), (1e-35, 0, "near 0")):
    refused({**blur, "measurement": save("double.npy", np.float64(picture) * factor + offset)}, "double.npy", words, "32-bit floats")
    refused({**radon, "measurement": save("double.npy", np.float64(scan) * factor + offset)}, "double.npy", words, "32-bit floats")
for value in (1.01e7, 0, 1e12):  # a hot or dead pixel, which is replaced, does not make the others tell apart
    hot = np.float64(picture) + 1e7
    hot[SIDE // 2, SIDE // 2] = value
    refused({**blur, "measurement": save("double.npy", hot)}, "double.npy", "close", "32-bit floats")
refused({**blur, "measurement": save("tiny.npy", picture * np.float32(1e-35)), "noise": None}, "tiny.npy", "near 0")
refused({**blur, "measurement": save("long.npy", np.int32(2e9 + 10 * np.float64(picture))), "noise": None}, "long.npy", "close")
refused({**radon, "measurement": save("huge.npy", np.float64(scan) * 1e300)}, "huge.npy", "3.4e38")
for same in (np.float64(picture), np.float64(picture) + 100, np.full((SIDE, SIDE), 0.1)):
    record, _ = solve({**blur, "measurement": save("double.npy", same), "noise": None})
    bench.check(record is not None, f"float64 around {same.mean():.4g}")
for spacing in (1e45, 1e-45):
    refused({**radon, "spacing": spacing}, "spacing", f"{spacing:g}", "unit of length")
    refused({**cone, "spacing": spacing}, "spacing", f"{spacing:g}", "unit of length")

# --- a range in another unit ---------------------------------------------------------------------------------------------

bytes_of = np.rint(255 * picture).astype(np.uint8)
refused({**blur, "measurement": save("bytes.npy", bytes_of), "range": [0, 1], "noise": None}, "bytes.npy", "outside", "[0, 1]", "255")
refused({**blur, "range": [5, 6]}, "picture.npy", "outside", "[5, 6]")
half = np.where(x < 16, np.float32(0), picture * 10)
noted({**blur, "measurement": save("half.npy", half), "range": [0, 1], "frame": False}, "a range that leaves out half of the values", "half.npy", "50 %", "[0, 1]")
quiet({**blur, "range": [0, 1]}, "the right range")
quiet({**blur, "measurement": "bytes.npy", "range": [0, 255], "noise": 2}, "the right range of integers")

# --- order and type of arrays -------------------------------------------------------------------------------------------

_, same = solve({**radon, "angles": save("angles.npy", angles.reshape(8, 5))})
bench.check(same is not None and np.array_equal(same, right), "angles of any shape")
refused({**radon, "angles": save("fortran.npy", np.asfortranarray(angles.reshape(8, 5)))}, "fortran.npy", "ascontiguousarray")
_, same = solve({**radon, "angles": save("row.npy", np.asfortranarray(angles.reshape(1, -1)))})
bench.check(same is not None and np.array_equal(same, right), "angles of one row in that order")
_, same = solve({**radon, "angles": save("half_angles.npy", angles.astype(np.float16))})
bench.check(same is not None and np.array_equal(same, right), "angles in half precision")
kernel = np.array([[1, 2, 1], [2, 5, 2], [1, 2, 1]]) / 16
_, whole = solve({**blur, "kernel": save("k3.npy", kernel)})
_, same = solve({**blur, "kernel": save("k2.npy", kernel.astype(np.float16))})
bench.check(same is not None and np.array_equal(same, whole), "a kernel in half precision")
refused({**blur, "kernel": save("kn.npy", np.array([[-1, 2.001, -1]]))}, "kn.npy", "sums to 0.001", "negative values", "4.001")
refused({**blur, "kernel": save("kz.npy", np.array([[-1, 1, -1.0]]))}, "kz.npy", "sums to -1", "not above zero")
stack = np.stack([picture, picture])
for name, array in (("stack2.npy", stack), ("stack5.npy", np.stack([picture] * 5)), ("low.npy", np.stack([picture[:, :9]] * 5))):
    refused({**blur, "kernel": None, "kernels": ["k.npy"] * len(array), "measurement": save(name, array)}, name, "one above another", "y.reshape(-1, y.shape[2])")
record, same = solve({**blur, "kernel": None, "kernels": ["k.npy"] * 2, "measurement": save("above.npy", stack.reshape(-1, stack.shape[2]))})
bench.check(record and same.shape == (SIDE, SIDE), "as the message says")
refused({**blur, "measurement": save("planar.npy", np.stack([picture] * 3))}, "planar.npy", "(channels, height, width)")
bench.path("mixed").mkdir()
for i in range(VIEWS):
    np.save(bench.path(f"mixed/{i}.npy"), scan[i:i + 1] if i != 7 else np.rint(scan[i:i + 1]).astype(np.uint16))
refused({**radon, "measurement": "mixed"}, "7.npy", "view 7 holds integers", "floats")

# --- entries, angles and places that are mistakes ------------------------------------------------------------------------

for entries, typed, meant in ((blur, "kernal", "kernel"), (blur, "boundry", "boundary"), (radon, "centr", "centre"), (radon, "angels", "angles"),
                              (radon, "spacng", "spacing"), (cone, "vector", "vectors")):
    refused({**entries, typed: 1}, f'"{typed}"', f'did you mean "{meant}"?')
result = run({**blur, "weather": 1})
bench.check(result.status == 1 and "did you mean" not in result.err, f"no guess where nothing is near: {result}")
bench.path("commas.txt").write_text("\n".join(f"{angle:.2f}".replace(".", ",") for angle in angles))
refused({**radon, "angles": "commas.txt"}, f"{2 * VIEWS} angles", "one number a line, with a decimal point")
noted({**radon, "angles": {"from": 0, "to": 0, "count": VIEWS}}, "views at one angle", "one angle")
noted({**radon, "angles": [0, 180] * (VIEWS // 2)}, "and half a turn on", "one angle")
for share, words in ((-0.5, "between it and the source"), (0.0, "in the volume")):  # the detector between source and volume, or in it
    near = np.load(bench.path("vectors.npy"))
    near[:, 3:6], near[:, 6:] = -share * near[:, :3], near[:, 6:] * (60 + 60 * share) / 90
    noted({**cone, "vectors": save("near.npy", near)}, "a detector before or in the volume", "near.npy", words, f"{VIEWS} of {VIEWS}")
inside = np.pad(random.random((VIEWS, 2, 8)), ((0, 0), (2, 2), (8, 8))).astype(np.float32)
quiet({**cone, "measurement": save("inside.npy", inside)}, "a detector behind the volume")

# A region of interest beside the axis: the size and the axis that show all.
roi = {**radon, "measurement": save("wide.npy", scan_of(50, 20.2)), "centre": 20.2, "axis": [4.5, 12.5], "size": 20, "range": None, "noise": 0.05}
for entries in (roi, {**roi, "circle": False}, {**roi, "circle": False, "axis": [0.5, 18.5]}, {**roi, "circle": False, "size": 12, "axis": [1, 9]}):
    result = run(entries)
    if not bench.check(result.status == 0 and '"size": ' in result.err and '"axis": [' in result.err, f"a note names both: {result}"):
        continue
    bench.check(float(result.err.split("hold up to ")[1].split(" %")[0]) <= 100, f"no share is above all: {result.err}")
    more = json.loads("{" + result.err[result.err.index('"size"'):result.err.index(" shows all")].replace(" with ", ", ") + "}")
    result = run({**entries, **more})
    bench.check(result.status == 0 and "outside the shadow" not in result.err, f"with {more} nothing is outside: {result}")

# White noise in the outer columns is no object; an object that is cut off is one, also with noise.
found = 0
for seed in range(8):
    random = np.random.default_rng(seed)
    noisy = {**radon, "measurement": save("noisy.npy", scan_of(SIDE, 15.2, 0.8)), "centre": "auto"}
    result = run(noisy)
    bench.check("wider" not in result.err, f"noise of 5 %: {result}")
    found += result.status == 0
    refused({**noisy, "measurement": save("cut.npy", scan_of(18, 8.2, 0.8)), "size": SIDE}, "cut.npy", "centre", "as a column")
bench.check(found >= 6, f"the centre is found in spite of it: {found} of 8")

# --- bands ------------------------------------------------------------------------------------------------------------------

bands = np.stack([100 * picture, 1000 * picture], 2).astype(np.float32)
noted({**blur, "measurement": save("bands.npy", bands)}, "bands of different ranges", "band 1", "of its own")
result = run({**blur, "measurement": save("alike.npy", bands * np.float32([1, 0.15]))})
bench.check(result.status == 0 and "band" not in result.err, f"bands that are alike: {result}")

# --- outputs --------------------------------------------------------------------------------------------------------------

if gdal:
    words = np.rint(60000 * picture).astype(np.uint16)
    write_tiff(bench.path("place.tif"), words, position=True)
    entries = {**blur, "measurement": "place.tif", "noise": 600}
    _, values = solve(entries)
    result = run(entries, out="out.tif")
    if bench.check(result.status == 0 and not result.err, f"a raster like the measurement: {result}"):
        bench.check(np.array_equal(read_tiff(bench.path("out.tif")), values), "a TIFF file has the values, as an array has them")
        tags = [tags_of(bench.path(name)) for name in ("place.tif", "out.tif")]
        bench.check(all(tags[0][tag] == tags[1].get(tag) for tag in (33550, 33922)), "and the position of the measurement")
    meaning = ('<Item name="OFFSET" sample="0" role="offset">-0.1</Item><Item name="SCALE" sample="0" role="scale">0.0001</Item>'
               '<Item name="UNITTYPE" sample="0" role="unittype">W/m2</Item>')
    write_tiff(bench.path("meaning.tif"), words, items=meaning)
    scaled = {**entries, "measurement": "meaning.tif"}
    result = run(scaled, out="out.tif")
    items = tags_of(bench.path("out.tif")).get(42112, b"").decode()
    bench.check(result.status == 0 and not result.err and all(part in items for part in (">-0.1", ">0.0001", ">W/m2<")), f"scale, offset and unit: {items!r}, {result}")
    noted(scaled, "an array has neither", "scale and offset", "unit")
    noted(scaled, "nor has a picture", "scale and offset", "unit", out="out.png")
    two = {**entries, "kernel": None, "kernels": ["k.npy"] * 2}
    noted(two, "two blurs have no position", "georeference", out="out.tif")
    noted(entries, "nor has an array", "georeference")
    noted(cone, "one slice of a volume", "slice in the middle", ".npy", out="slice.tif")
    record, all_slices = solve(cone)
    bench.check(record and np.array_equal(read_tiff(bench.path("slice.tif")), all_slices[2]), "which is that of the array")
    result = bench.run("reconstruct", bench.path("raw.bil"), "--problem", problem(radon), *few)
    bench.check(result.status == 0 and np.array_equal(np.fromfile(bench.path("raw.bil"), "<f4").reshape(SIDE, SIDE), right), "ENVI, too")
result = run(radon, out="upper.NPY")
bench.check(result.status == 0 and np.array_equal(np.load(bench.path("upper.NPY")), right), "a suffix in capitals")

# A name that is too long is found before the work, of an hour here.
long = bench.path("n" * 252 + ".npy")
for args in ([long], [bench.path("out.npy"), "--side-by-side", long], [bench.path("out.npy"), "--save-measurement", long]):
    result = bench.run("reconstruct", *args, "--problem", "tomo2d", "--size", 64, "--iterations", 1000000, timeout=60)
    bench.check_refused(result, 1, "too long")
# Advice on memory names what the problem has; here it is the file that is large.
if gdal:
    bench.path("tall").mkdir()
    packed = zlib.compress(bytes(4096 * 1024 * 4))  # one tile, which is read whole
    tags = ((256, 1024), (257, 4096), (258, 32), (259, 8), (262, 1), (277, 1), (322, 1024), (323, 4096), (324, 8), (325, len(packed)), (339, 3))
    for i in range(2):
        bench.path(f"tall/{i}.tif").write_bytes(b"II*\0" + struct.pack("<I", 8 + len(packed)) + packed + struct.pack("<H", len(tags)) +
                                                b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) + bytes(4))
    tall = {**radon, "angles": [0, 90], "measurement": "tall", "row": 7, "size": 24, "counts": False}
    result = bench.run("reconstruct", bench.path("no.npy"), "--problem", problem(tall), "--memory", "60M")
    bench.check(result.status == 1 and "smaller measurement" in result.err and "--operators" not in result.err, f"no option of another problem: {result}")
# What is read is part of the plan.
write_png(bench.path("photo.png"), np.zeros((300, 200, 3), np.uint8))
jobs = {"a resized image": ["--problem", "deblur", "--image", bench.path("photo.png"), "--size", 32]}
for what, entries in (("float64", {**blur, "measurement": save("f8.npy", np.float64(picture)), "truth": save("t8.npy", np.float64(picture))}), ("views", radon), ("a volume", cone),
                      ("an entire view", {**radon, "measurement": save("rows.npy", np.stack([scan] * 3, 1)), "row": 1})):
    bench.path(f"{what}.json").write_text(json.dumps(entries))
    jobs[what] = ["--problem", bench.path(f"{what}.json")]
for what, args in jobs.items():
    record = bench.record("reconstruct", bench.path("out.npy"), *args, *few)
    bench.check(record and record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"], f"planned = counted: {what}: {record and (record['plan']['peak_bytes'], record['measured']['peak_bytes'])}")
write_png(bench.path("large.png"), np.zeros((3000, 2000, 3), np.uint8))
result = bench.run("reconstruct", bench.path("no.npy"), "--problem", "deblur", "--image", bench.path("large.png"), "--size", 32, "--memory", "60M")
bench.check(result.status == 1 and "smaller --image" in result.err, f"a picture that is made smaller: {result}")
bench.check(not bench.path("no.npy").exists() and not leftovers(bench.folder), "nothing is written for what is refused")
bench.finish()
