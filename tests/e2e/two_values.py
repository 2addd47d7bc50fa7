"""two_values.py PROGRAM: a mask, whose samples have two values only, stays as it is unless a noise level is given."""
import struct
import sys

from support import Bench, np, read_png, write_png
from tiff import tags_of

bench = Bench(sys.argv[1])
random = np.random.default_rng(6)
y, x = np.mgrid[0:96, 0:120]
drawn = np.sin(x / 9) * np.cos(y / 13) + 0.5 * np.sin((x + y) / 5) > 0
speckled = drawn ^ (random.random(drawn.shape) < 0.03)


def denoise(array, *options):
    """The result, the record's entry and what was said."""
    np.save(bench.path("in.npy"), array)
    run = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), *options, "--json", "-")
    bench.check(run.status == 0, f"runs: {run}")
    return (np.load(bench.path("out.npy")), run.record["denoise"]["files"][0], run.err) if run.status == 0 else (array, {}, run.err)


for name, mask in (("drawn", drawn), ("speckled", speckled)):
    for dtype, low, high in ((np.uint8, 0, 255), (np.uint8, 0, 1), (np.uint8, 10, 200), (np.uint16, 0, 1), (np.uint16, 500, 40000), (np.int32, -1, 1),
                             (np.float32, 0, 1), (np.float64, 0, 1e-3)):
        image = np.where(mask, high, low).astype(dtype)
        result, entry, said = denoise(image)
        where = f"{name}, {dtype.__name__} of {low} and {high}"
        bench.check(np.array_equal(result, image.astype(result.dtype)) and entry.get("sigma") == 0 and entry.get("two_values"), f"{where}: stays: {entry}")
        bench.check("two values only" in said and "missing" not in said and len(said.splitlines()) == 1, f"{where}: and one note says so: {said}")
colours = np.stack([drawn, speckled, ~drawn], -1).astype(np.uint8) * 255
for image in (colours, np.stack([drawn] * 5).astype(np.float32), np.stack([drawn] * 20, -1).astype(np.uint16)):
    result, entry, said = denoise(image, "--axes", "DHW" if len(image) == 5 else "HWC")
    bench.check(np.array_equal(result, image) and "two values only" in said, f"{image.shape} stays: {said}")
holes = np.where(drawn, 1, 0).astype(np.float32)
holes[:20, :30] = np.nan
result, entry, said = denoise(holes)
bench.check(np.array_equal(result, holes, equal_nan=True) and entry.get("holes") == 600 and "two values only" in said, f"holes are no third value: {entry}")
alpha = np.dstack([255 * drawn.astype(np.uint8), np.uint8(x)])
write_png(bench.path("in.png"), alpha)
run = bench.run("denoise", bench.path("in.png"), bench.path("out.png"))
bench.check(run.status == 0 and np.array_equal(read_png(bench.path("out.png")), alpha) and "two values only" in run.err, f"nor is alpha: {run}")

if bench.has_gdal():  # a TIFF of one bit a sample stays one, whichever value is white, and becomes black and white in a PNG
    packed = np.packbits(speckled, axis=1).tobytes()
    for white in (0, 1):
        tags = ((256, 3, 120), (257, 3, 96), (258, 3, 1), (259, 3, 1), (262, 3, white), (273, 4, 8), (277, 3, 1), (278, 3, 96), (279, 4, len(packed)))
        directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags) + bytes(4)
        bench.path("bit.tif").write_bytes(struct.pack("<2sHI", b"II", 42, 8 + len(packed)) + packed + directory)
        run = bench.run("denoise", bench.path("bit.tif"), bench.path("bit-out.tif"))
        bench.check(run.status == 0 and "two values only" in run.err, f"one bit: runs: {run}")
        found = tags_of(bench.path("bit-out.tif")) if run.status == 0 else {258: b"", 273: bytes(4)}
        start = struct.unpack("<I", found[273][:4])[0]
        bench.check(found[258][:2] == b"\1\0" and bench.path("bit-out.tif").read_bytes()[start:start + len(packed)] == packed, f"the same bits: {found[258]}")
        given = bench.run("denoise", bench.path("bit.tif"), bench.path("bit-out.tif"), "--sigma", "0.1", "--strength", "0.1")
        bench.check(given.status == 0, f"one bit, with a level: runs: {given}")
    run = bench.run("denoise", bench.path("bit.tif"), bench.path("bit.png"))
    bench.check(run.status == 0 and np.array_equal(read_png(bench.path("bit.png")), 255 * speckled), f"black and white in a PNG: {run}")

# What is asked for is done.
mask = np.where(speckled, 255, 0).astype(np.uint8)
for options in (("--sigma", "0.1"), ("--add-noise", "0.1"), ("--add-noise", "0.1", "--sigma", "auto")):
    result, entry, said = denoise(mask, *options, "--zeros-are-data")
    bench.check(not np.array_equal(result, mask) and "two_values" not in entry and "two values" not in said, f"{options}: is denoised: {said}")
_, entry, said = denoise(np.full((96, 120), 7, np.uint8))
bench.check("two_values" not in entry and "all its samples are equal" in said, f"one value is another matter: {said}")
third = mask.copy()
third[-1, -1] = 90
_, entry, said = denoise(third, "--zeros-are-data")
bench.check("two_values" not in entry and "two values" not in said, f"a third value in the last sample is seen: {said}")
bench.finish()
