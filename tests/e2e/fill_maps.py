"""fill_maps.py PROGRAM: what `fill` takes for voids in second maps and truths, islands, depths and very low relief, and
the digits of ASCII grids."""
import json
import sys

import numpy as np

from fill import FAST, NODATA, UTM, Bench, fill, gdal, load, model_weights, save, skip, voids
from support import write_pth

H, W = 150, 190
CODES = {np.float32: gdal.GDT_Float32, np.int16: gdal.GDT_Int16, np.int32: gdal.GDT_Int32}


def told(bench, *options, source="map.tif"):
    result = bench.run("fill", bench.path(source), bench.path("out.tif"), "--model", bench.path("net.pth"), "--device", "cpu", *FAST, *options, "--json", bench.path("told.json"))
    bench.check(result.status == 0, f"{source} {options}: {result}")
    record = json.loads(bench.path("told.json").read_text()) if result.status == 0 else {"fill": {"voids": {}}}
    return result.err, record, load(bench.path("out.tif")) if result.status == 0 else np.zeros((H, W))


def plane(side, pixel, left, top):
    """Heights at pixel centres of a grid that begins at this corner, in metres from that of the map; bilinear sampling is exact."""
    y, x = np.mgrid[0:side[0], 0:side[1]]
    return 1000 + 0.02 * (left + (x + 0.5) * pixel) + 0.03 * (top + (y + 0.5) * pixel)


def lay(path, data, pixel, left, top, nodata=None):
    save(path, data, nodata=nodata, kind=CODES[data.dtype.type])
    d = gdal.Open(str(path), gdal.GA_Update)
    d.SetGeoTransform((500000 + left, pixel, 0, 5100000 - top, 0, -pixel))


def check_second(bench):
    """A plane 5 m below the map on a finer grid, of which small parts are marks: all that is filled is exact."""
    inner, sea = voids(H, W)
    z = plane((H, W), 30, 0, 0) + 5
    save(bench.path("map.tif"), np.where(inner | sea, NODATA, z).astype(np.float32))
    pixel, left, top = 10, -6005, -8005
    calm = plane((2000, 2000), pixel, left, top)
    spot = lambda y, x: (slice(int((30 * y - top) / pixel), int((30 * y - top) / pixel) + 7), slice(int((30 * x - left) / pixel), int((30 * x - left) / pixel) + 7))  # noqa: E731
    places = [spot(35, 45), spot(42, 60), spot(91, 110), spot(38, 52)]
    for kind, declared, marks in ((np.float32, None, (-9999,)), (np.float32, None, (-32768, -9999)), (np.float32, None, (1e20, -3.4028234663852886e38)),
                                  (np.float32, -9999, (-32768, 1e30)), (np.int32, None, (-9999, -32767)), (np.int32, -32768, (-9999,)), (np.int32, None, (99999,)),
                                  (np.float32, -9999, (9999, 65535, -9999, 1e25)), (np.float32, None, (5e5,))):
        data = np.round(calm).astype(kind) if kind == np.int32 else calm.astype(kind)
        for place, mark in zip(places, marks):
            data[place] = mark
        lay(bench.path("second.tif"), data, pixel, left, top, declared)
        err, record, out = told(bench, "--second", bench.path("second.tif"))
        said = record["fill"]["voids"]
        filled = inner & (out != NODATA)
        error = np.abs(out[filled] - z[filled]).max() if filled.any() else np.inf
        bench.check(error < (1.2 if kind == np.int32 else 0.2), f"{kind.__name__}, {declared} declared, {marks}: no mark enters a height, but by {error}")
        bench.check(2 * len(marks) <= said.get("left_without_second", 0) <= 9 * len(marks), f"{marks}: pixels of the second map that are void are counted: {said}")
        beside = [m for m in marks if m != declared] if declared is not None else []
        listed = [one["value"] for one in said.get("undeclared_second", [])]
        bench.check(all(m in listed or abs(m) >= 1e20 and any(abs(v) >= 1e20 for v in listed) for m in beside) and err.count("second.tif: ") >= len(listed) and
                    (not beside or "far from all heights" in err), f"{marks} beside {declared}: told: {err!r} {listed}")
    lay(bench.path("second.tif"), calm.astype(np.float32), pixel, left, top, None)
    err, record, out = told(bench, "--second", bench.path("second.tif"))
    bench.check(err == "" and np.abs(out[inner] - z[inner]).max() < 1e-3 and "undeclared_second" not in record["fill"]["voids"], f"nothing to tell of a good map: {err!r}")


def check_zeros(bench):
    """Zeros in a second map or a truth are told of, as in the map itself."""
    inner, sea = voids(H, W)
    z = plane((H, W), 30, 0, 0)
    data = np.where(inner | sea, NODATA, z + 5).astype(np.float32)
    save(bench.path("map.tif"), data)
    for option in ("--second", "--truth"):
        for declared, advice in ((None, "-a_nodata 0"), (NODATA, "change them to -9999")):
            other = z.astype(np.float32)
            other[100:112, 20:40] = 0
            save(bench.path("other.tif"), other, nodata=declared)
            err, *_ = told(bench, option, bench.path("other.tif"))
            bench.check("other.tif: 240 pixels are 0" in err and advice in err, f"{option} with zeros, {declared} declared: {err!r}")
    data[60:70, 100:110] = 0
    save(bench.path("map.tif"), data)
    save(bench.path("other.tif"), z.astype(np.float32), nodata=None)
    err, *_ = told(bench, "--second", bench.path("other.tif"))
    bench.check("map.tif: 100 pixels are 0" in err and "other.tif" not in err, f"zeros of the map beside a second one: {err!r}")
    finer = plane((500, 650), 10, -5, -5).astype(np.float32)
    finer[10:30, 10:40] = 0
    save(bench.path("map.tif"), np.where(inner | sea, NODATA, z + 5).astype(np.float32))
    lay(bench.path("other.tif"), finer, 10, -5, -5)
    err, *_ = told(bench, "--second", bench.path("other.tif"))
    bench.check("other.tif: 600 pixels are 0" in err, f"zeros of a second map on another grid: {err!r}")


def counted(bench, data, name):
    """The map after filling, and how many pixels counted as void. It declares nothing."""
    save(bench.path("map.tif"), data, nodata=None, kind=CODES[data.dtype.type])
    err, record, out = told(bench, "--voids", "all")
    bench.check(err == "", f"{name}: nothing to tell: {err!r}")
    return out, record["fill"]["voids"].get("pixels")


def check_islands(bench):
    """A small island in a map of calm sea is no outlier; spikes, constants and noise are."""
    inner, sea = voids(H, W)
    dice = np.random.default_rng(7)
    y, x = np.mgrid[0:H, 0:W]
    calm = 0.01 * np.sin(x / 9) * np.cos(y / 7)
    island = 400 * np.maximum(0, 1 - ((y - 70) ** 2 + (x - 140) ** 2) / 81) + 5 * np.sin(x) * np.cos(y)
    for sign in (1, -1):
        land = np.where(island > 6, sign * island, calm).astype(np.float32)
        bench.check(0 < (island > 6).mean() < 0.01, "the island is on less than a hundredth")
        data = land.copy()
        data[inner] = NODATA
        data[68:72, 138:142] = NODATA
        void = data == NODATA
        out, count = counted(bench, data, "island")
        bench.check(count == void.sum() and np.array_equal(out[~void], data[~void]), f"heights of an island of sign {sign} stay: {count} voids of {void.sum()}")
        data[100, 20] = sign * 3e6
        out, count = counted(bench, data, "island and spike")
        bench.check(count == void.sum() + 1 and abs(out[100, 20]) < 1e4, f"a spike beside an island is an outlier: {count}")
    for name, block in (("spike", np.full((1, 1), 2e5)), ("constant", np.full((12, 14), 2e5)), ("noise", dice.uniform(-1e6, 1e6, (12, 14))),
                        ("resampled spike", 1e6 * np.outer([0.25, 0.5, 1, 0.5, 0.25], [0.25, 0.5, 1, 0.5, 0.25]))):
        data = calm.astype(np.float32)
        data[inner] = NODATA
        data[60:60 + block.shape[0], 100:100 + block.shape[1]] = block
        out, count = counted(bench, data, name)
        bench.check(count == inner.sum() + block.size and np.abs(out).max() < 3, f"{name}: {count} voids, {np.abs(out).max()}")


def check_depths(bench):
    """Depths of -999 m are heights where the ground goes on to them, and marks where it does not."""
    inner, _ = voids(H, W)
    y, x = np.mgrid[0:H, 0:W]
    for kind in (np.float32, np.int16):
        for name, ground, mark in (("shelf", -1000 + 0.3 * x + 0.2 * y - 40, -999), ("slope", -3000 + 30 * x + 7 * y, -999), ("trench", -10300 + 3 * x + 2 * y, -9999)):
            data = np.round(ground).astype(kind)
            bench.check((data == mark).any(), f"{name} has {mark}")
            data[inner] = -32768
            out, count = counted(bench, data, name)
            bench.check(count == inner.sum() and np.array_equal(out[~inner], data[~inner]), f"{mark} on a {name} of {kind.__name__} stays: {count} voids of {inner.sum()}")
        for name, ground in (("sea", -5000 + 33 * x + 7 * y), ("hills", 300 + 100 * np.sin(x / 9)), ("flat sea", 0 * x - 3)):
            data = np.round(ground).astype(kind)
            data[data == -999] = -998
            data[inner] = -999
            _, count = counted(bench, data, name)
            bench.check(count == inner.sum(), f"-999 in {name} of {kind.__name__} is void: {count} of {inner.sum()}")


def check_low(bench):
    """A surface of very low relief is filled as the same surface of higher relief, also far above 0."""
    inner, sea = voids(H, W)
    y, x = np.mgrid[0:H, 0:W]
    z = 100 * np.sin(x / 17) * np.cos(y / 13) + 5 * np.sin(1.7 * x + 0.9 * y) + 3 * np.cos(0.8 * x - 2.1 * y)
    outs = {}
    for scale, offset in ((1, 0), (2.0**-13, 0), (2.0**-13, 7.3), (2.0**-30, 0), (2.0**-13, 0.5)):
        data = np.where(inner | sea, NODATA, scale * z + offset)
        save(bench.path("map.tif"), data, kind=gdal.GDT_Float64)
        result = bench.run("fill", bench.path("map.tif"), bench.path("out.tif"), "--steps", 4, "--device", "cpu")
        bench.check(result.status == 0, f"{scale}: {result}")
        outs[scale, offset] = (load(bench.path("out.tif"))[inner] - offset) / scale
    usual, spread = outs[1, 0], np.abs(outs[1, 0] - z[inner]).max()
    bench.check(spread > 0.5, f"the fill is not the truth, but by {spread}")
    for key, out in outs.items():
        bench.check(np.abs(out - usual).max() < 0.05, f"heights times {key[0]} plus {key[1]}: as the map itself to {np.abs(out - usual).max()}")


def check_ascii(bench):
    """Numbers of an ASCII grid keep the digits that they have; those that float32 holds stay float32."""
    y, x = np.mgrid[0:80, 0:90]
    hole = (slice(30, 40), slice(30, 45))
    for digits, nodata, z, kind in ((0, "-9999", 20000001 + 3 * x + 2 * y, np.int32), (0, "-9999.0", 20000001 + 3 * x + 2 * y, np.float64), (3, "-9999", 123456.789 + 0.003 * x, np.float64),
                                    (2, "-9999", 1234.56 + 0.01 * x, np.float32), (0, "-3.4028234663852886e+38", 20000001 + 3 * x, np.float64), (1, "-9999.00", 0.5 + x, np.float32)):
        words = np.char.mod(f"%.{digits}f", z).astype(object)
        words[hole] = nodata
        head = f"ncols 90\nnrows 80\nxllcorner 123456.789\nyllcorner 0\ncellsize 30\nNODATA_value {nodata}\n"
        bench.path("map.asc").write_text(head + "\n".join(" ".join(row) for row in words) + "\n")
        there = np.ones(z.shape, bool)
        there[hole] = False
        want = np.array(words[there], dtype=kind)
        _, record, out = told(bench, source="map.asc")
        bench.check(record["fill"]["voids"].get("filled_pixels") == 150 and out.dtype == kind and np.array_equal(out[there], want), f"{words[3, 2]} beside {nodata}: {out.dtype} {out[3, 2]!r}")
        record = fill(bench, "out.asc", source="map.asc")
        rows = [line.split() for line in bench.path("out.asc").read_text().splitlines() if not line[0].isalpha()] if record else []
        bench.check(record and np.array_equal(np.array(rows, float).astype(kind)[there], want), f"as text: {rows and rows[3][2]} of {words[3, 2]}")


def check_int8(bench):
    """Samples of int8, and what to do, which a conversion by gdal_translate may spoil."""
    z = (np.arange(H * W) % 200 - 100).astype(np.int8).reshape(H, W)
    options = ["PIXELTYPE=SIGNEDBYTE"] if gdal.VersionInfo() < "3070000" else []
    d = gdal.GetDriverByName("GTiff").Create(str(bench.path("bytes.tif")), W, H, 1, gdal.GDT_Byte if options else gdal.GDT_Int8, options)
    d.GetRasterBand(1).WriteRaster(0, 0, W, H, z.tobytes())
    del d
    result = bench.run("fill", bench.path("bytes.tif"), bench.path("no.tif"), "--model", bench.path("net.pth"), *FAST)
    bench.check_refused(result, 1, "bytes.tif", *(("int8", "astype('int16')") if options else ("Int8", "-ot Int16")))


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("the program has no GDAL")
    write_pth(bench.path("net.pth"), model_weights())
    check_second(bench)
    check_zeros(bench)
    check_islands(bench)
    check_depths(bench)
    check_low(bench)
    check_ascii(bench)
    check_int8(bench)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
