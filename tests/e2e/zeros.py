"""zeros.py PROGRAM: zeros that stand apart from all other values are missing data: they stay, and do not spoil their surroundings. `fill` only names them."""
import json
import sys

from support import Bench, np
from tiff import write_tiff

bench = Bench(sys.argv[1])
random = np.random.default_rng(4)
side = 160
y, x = np.mgrid[0:side, 0:side].astype(float)


def depth():
    """Millimetres: a floor and two boxes, with shadows of the boxes and a border in which nothing was measured."""
    truth = 3000 - 6 * y
    hole = x < 5
    for top, left, tall, wide, far in ((40, 30, 50, 40, 1500), (80, 100, 60, 40, 900)):
        truth[top:top + tall, left:left + wide] = far
        hole[top:top + tall, left - 10:left] = True
    return truth, hole


def picture():
    return 110 + 60 * np.sin(x / 17) * np.cos(y / 23) + 30 * ((x // 20 + y // 20) % 2)


def rmse(a, b, where):
    return np.sqrt(np.mean((a.astype(float) - b)[where] ** 2))


def denoise(noisy, *args):
    np.save(bench.path("noisy.npy"), noisy)
    result = bench.run("denoise", bench.path("noisy.npy"), bench.path("out.npy"), "--json", bench.path("record.json"), *args)
    bench.check(result.status == 0, f"runs: {result.err[:80]}")
    record = json.loads(bench.path("record.json").read_text())["denoise"]["files"][0]
    return np.load(bench.path("out.npy")), record, result.err


def check_holes(name, truth, noisy, hole):
    result, record, words = denoise(noisy)
    count = hole.sum() * (noisy.shape[2] if noisy.ndim == 3 else 1)
    before, after = rmse(noisy, truth, ~hole), rmse(result, truth, ~hole)
    bench.check(not result[hole].any(), f"{name}: the zeros stay")
    bench.check(record["holes"] == count and record.get("zeros_are_holes") is True, f"{name}: {record['holes']} holes are counted")
    bench.check("missing data" in words and "--zeros-are-data" in words, f"{name}: a note says so")
    bench.check(after < 0.75 * before, f"{name}: an error of {after:.2f}, of {before:.2f}")
    beside = ~hole & (np.roll(hole, 2, 1) | np.roll(hole, -2, 1) | np.roll(hole, 2, 0) | np.roll(hole, -2, 0))
    bench.check(rmse(result, truth, beside) < 1.1 * before, f"{name}: beside the holes an error of {rmse(result, truth, beside):.2f}")


truth, hole = depth()
noisy = np.where(hole, 0, np.round(truth + 20 * random.standard_normal(truth.shape)))
check_holes("depth in millimetres", truth, noisy.astype(np.uint16), hole)
check_holes("depth in metres", truth / 1000, (noisy / 1000).astype(np.float32), hole)
check_holes("heights", truth, noisy.astype(np.int16), hole)
for kind in (np.int32, np.uint32):  # whose range is found before they become floats
    check_holes(f"far from 0 as {kind.__name__}", 1e8 + truth, np.where(hole, 0, 1e8 + noisy).astype(kind), hole)
check_holes("far from 0 as float64", 1e6 + truth / 1e6, np.where(hole, 0, 1e6 + noisy / 1e6), hole)
speckle = random.random(truth.shape) < 0.03
check_holes("single pixels", truth, np.where(speckle, 0, noisy).astype(np.uint16), speckle | hole)
collar = y + 0.4 * x < 45
truth = np.stack([picture(), 0.8 * picture() + 30, picture() - 10], -1)
noisy = np.uint8(np.clip(np.round(truth + 12 * random.standard_normal(truth.shape)), 1, 255))
noisy[collar] = 0
check_holes("collar in 8 bits", truth, noisy, collar)
result, record, words = denoise(noisy, "--zeros-are-data")
bench.check("zeros_are_holes" not in record and record["holes"] == 0 and "missing" not in words, "zeros are data if that is said")


def check_data(name, noisy):
    _, record, words = denoise(noisy)
    bench.check("zeros_are_holes" not in record and "missing" not in words, f"{name}: the zeros are values")


# Black that noise was clipped at, counts of photons, black that fades out, and a drawing.
check_data("night", np.uint8(np.clip(np.round(120 - y + 10 * random.standard_normal(y.shape)), 0, 255)))
check_data("night in 16 bits", np.uint16(np.clip(np.round(9000 - 100 * y + 500 * random.standard_normal(y.shape)), 0, 65535)))
check_data("counts", random.poisson(0.5 + x / 80).astype(np.uint16))
check_data("counts as floats", random.poisson(0.05 + x / 800).astype(np.float32))
check_data("fading out", np.uint8(np.clip(np.round(2 * x - 120 + (x > 60) * random.standard_normal(y.shape)), 0, 255)))
nothing = np.where(depth()[1], np.nan, depth()[0] + 20 * random.standard_normal(y.shape)).astype(np.float32)
check_data("NaN", nothing)
ink = np.uint8(np.where((x // 12 + y // 12) % 3 == 0, 0, 255))
ink[:8] = ink[-8:] = ink[:, :8] = ink[:, -8:] = 255
check_data("drawing", ink)


def fill(name, heights, *args, **more):
    write_tiff(bench.path("map.tif"), heights, position=True, **more)
    result = bench.run("plan", "fill", bench.path("map.tif"), bench.path("filled.tif"), *args)
    bench.check(result.status == 0, f"{name}: runs: {result}")
    return "pixels are 0, far from all others" in result.err, result.err


if bench.has_gdal():
    truth, hole = depth()
    for dtype in (np.int16, np.float32):
        heights = np.where(hole, 0, np.round(truth + 5 * random.standard_normal(y.shape))).astype(dtype)
        noted, words = fill(dtype.__name__, heights)
        bench.check(noted and f"{hole.sum()} pixels" in words and "--nodata 0" in words, f"fill names zeros of {dtype.__name__} that nobody declared: {words}")
        bench.check(not fill("declared", heights, nodata="0")[0] and not fill("given", heights, "--nodata", "0")[0] and
                    not fill("nan", heights, "--nodata", "nan")[0], "not if they are declared, or if it is said what is void")
    bench.check(not fill("coast", np.round(np.maximum(truth - 2500 + 5 * random.standard_normal(y.shape), 0)).astype(np.int16))[0], "nor zeros beside low heights")
bench.finish()
