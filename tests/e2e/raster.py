"""raster.py PROGRAM TOOL: rasters are read by windows, and results differ from their input in filled pixels only.

TOOL (tests/io/raster_tool.c) fills voids with known numbers. Rasters are made and compared with GDAL's own Python module, which
is another reader than ours: `gdalinfo -json` of input and output must agree in everything but statistics."""
import contextlib
import json
import os
import resource
import shutil
import signal
import sys

import numpy as np

from support import Bench, leftovers, skip

try:
    from osgeo import gdal, osr
except ImportError:
    skip("GDAL's Python module is not there (Debian: python3-gdal)")

gdal.UseExceptions()
H, W = 300, 400
UTM = osr.SpatialReference()
UTM.ImportFromEPSG(32632)
PLACE = (500000.0, 30.0, 0.0, 5100000.0, 0.0, -30.0)
ROTATED = (500000.0, 29.0, 3.0, 5100000.0, 4.0, -28.5)


class Quiet(Bench):
    """Prints only what does not hold."""

    def check(self, good, text):
        return bool(good) or super().check(False, text)


@contextlib.contextmanager
def config(name, value):
    gdal.SetConfigOption(name, value)
    yield
    gdal.SetConfigOption(name, None)


def heights(kind, h=H, w=W):
    y, x = np.mgrid[0:h, 0:w]
    z = 900 + 300 * np.sin(x / 37) * np.cos(y / 53) + (x * 13 + y * 7) % 11
    return z.astype(kind)


def voids(h=H, w=W):
    m = np.zeros((h, w), bool)
    m[20:60, 30:90] = True
    m[100:101, 0:w] = True
    m[200:260, 300:301] = True
    m[::37, ::41] = True
    return m


def filler(h=H, w=W):
    y, x = np.mgrid[0:h, 0:w]
    return 100.25 + (7 * y + 3 * x) % 50


TYPES = {gdal.GDT_Float32: np.float32, gdal.GDT_Int16: np.int16, gdal.GDT_Float64: np.float64, gdal.GDT_UInt16: np.uint16,
         gdal.GDT_Byte: np.uint8, gdal.GDT_Int32: np.int32, gdal.GDT_UInt32: np.uint32}


def make(path, kind=gdal.GDT_Float32, options=(), nodata=-9999.0, transform=PLACE, driver="GTiff", marks=True, bands=1):
    """A raster with voids of the nodata value; returns its samples."""
    data = heights(np.float64) if kind != gdal.GDT_Byte else heights(np.float64) / 8
    data = data.astype(TYPES[kind])
    if marks and nodata is not None:
        data[voids()] = nodata
    d = gdal.GetDriverByName(driver).Create(str(path), W, H, bands, kind, list(options))
    if transform:
        d.SetProjection(UTM.ExportToWkt())
        d.SetGeoTransform(transform)
    for b in range(1, bands + 1):
        if nodata is not None:
            d.GetRasterBand(b).SetNoDataValue(nodata)
        d.GetRasterBand(b).WriteArray(data)
    d.FlushCache()
    del d
    return data


def read(path, band=1):
    d = gdal.Open(str(path))
    return d.GetRasterBand(band).ReadAsArray()


def described(path):
    """gdalinfo -json without the file's name and what depends on samples."""
    info = gdal.Info(str(path), format="json")
    for key in ("description", "files"):
        info.pop(key, None)
    for band in info.get("stac", {}).get("raster:bands", []):
        for key in ("stats", "histogram", "statistics"):
            band.pop(key, None)
    for band in info["bands"]:
        for key in ("min", "max", "minimum", "maximum", "mean", "stdDev", "histogram", "checksum"):
            band.pop(key, None)
        items = band.get("metadata", {}).get("", {})
        for key in [k for k in items if k.startswith("STATISTICS_")]:
            del items[key]
        if not items:
            band.get("metadata", {}).pop("", None)
    return info


def figures(result):
    """The lines of the tool as a dictionary of texts."""
    return dict(line.split(": ", 1) for line in result.out.splitlines() if ": " in line)


def check_filled(bench, name, source, target, mask=None, kind=None, band=1):
    mask = voids() if mask is None else mask
    before, after = read(source, band), read(target, band)
    wanted = filler()
    if before.dtype.kind != "f":
        wanted = np.round(wanted)
    bench.check(before.dtype == after.dtype, f"{name}: type {after.dtype}, not {before.dtype}")
    bench.check(np.array_equal(before[~mask].view(np.uint8), after[~mask].view(np.uint8)), f"{name}: valid pixels changed")
    bench.check(np.array_equal(after[mask], wanted[mask].astype(before.dtype)), f"{name}: filled pixels are wrong")


def check_same(bench, name, source, target):
    before, after = described(source), described(target)
    if before != after:
        for key in sorted(set(before) | set(after)):
            if before.get(key) != after.get(key):
                bench.check(False, f"{name}: {key} differs: {json.dumps(before.get(key))[:300]} / {json.dumps(after.get(key))[:300]}")


def kinds(bench):
    """name -> path of rasters whose description must stay."""
    def path(name):
        return bench.path(name + ".tif")
    make(path("float32"))
    make(path("int16"), gdal.GDT_Int16, nodata=-32768)
    make(path("uint16"), gdal.GDT_UInt16, nodata=0)
    make(path("byte"), gdal.GDT_Byte, nodata=255)
    make(path("int32"), gdal.GDT_Int32)
    make(path("double"), gdal.GDT_Float64, nodata=-1.7976931348623157e308)
    make(path("nan"), nodata=float("nan"))
    make(path("lowest"), nodata=-3.4028234663852886e38)
    make(path("tiled"), options=["TILED=YES", "BLOCKXSIZE=128", "BLOCKYSIZE=64"])
    make(path("one_strip"), options=["BLOCKYSIZE=300", "COMPRESS=LZW"])
    make(path("lzw"), gdal.GDT_Int16, ["COMPRESS=LZW", "PREDICTOR=2"])
    make(path("deflate3"), options=["COMPRESS=DEFLATE", "PREDICTOR=3", "TILED=YES"])
    creation = gdal.GetDriverByName("GTiff").GetMetadataItem("DMD_CREATIONOPTIONLIST")
    if "ZSTD" in creation:
        make(path("zstd"), options=["COMPRESS=ZSTD", "PREDICTOR=2"])
    make(path("rotated"), transform=ROTATED)
    make(path("nowhere"), transform=None)
    make(path("bigtiff"), options=["BIGTIFF=YES", "TILED=YES"])
    make(path("big_endian"), options=["ENDIANNESS=BIG"])
    make(path("sparse"), options=["SPARSE_OK=YES", "TILED=YES"])
    for name, how in (("overviews", "NEAREST"), ("averages", "AVERAGE")):
        make(path(name), options=["TILED=YES"])
        d = gdal.Open(str(path(name)), gdal.GA_Update)
        d.BuildOverviews(how, [2, 4])
        del d
    make(path("beside"), gdal.GDT_Int16)
    d = gdal.Open(str(path("beside")))
    d.BuildOverviews("NEAREST", [2, 4])
    del d
    make(path("tags"))
    d = gdal.Open(str(path("tags")), gdal.GA_Update)
    d.SetMetadataItem("AREA_OR_POINT", "Point")
    d.SetMetadataItem("TIFFTAG_SOFTWARE", "surveyor 3")
    d.SetMetadata({"flight": "12", "crew": "Ö"}, "survey")
    band = d.GetRasterBand(1)
    band.SetDescription("height above the ellipsoid")
    band.SetUnitType("m")
    band.SetMetadataItem("sensor", "lidar")
    band.SetColorInterpretation(gdal.GCI_Undefined)
    del d, band
    make(path("statistics"))
    d = gdal.Open(str(path("statistics")), gdal.GA_Update)
    d.GetRasterBand(1).ComputeStatistics(False)
    del d
    make(path("described"))
    d = gdal.Open(str(path("described")))
    d.GetRasterBand(1).ComputeStatistics(False)
    d.GetRasterBand(1).GetDefaultHistogram(force=True)
    d.SetMetadataItem("beside", "kept")
    d.GetRasterBand(1).SetDescription("kept too")
    del d
    points(path("points"))
    make(path("lerc"), options=["COMPRESS=LERC_DEFLATE", "MAX_Z_ERROR=0.1"]) if "LERC" in creation else None
    make(path("rational"), transform=None)
    d = gdal.Open(str(path("rational")), gdal.GA_Update)
    d.SetMetadata({**{f"{a}_{b}": "100" for a in ("LINE", "SAMP", "LAT", "LONG", "HEIGHT") for b in ("OFF", "SCALE")},
                   **{f"{a}_{b}_COEFF": " ".join(["1"] * 20) for a in ("LINE", "SAMP") for b in ("NUM", "DEN")}}, "RPC")
    del d
    return [name for name in ("float32 int16 uint16 byte int32 double nan lowest tiled one_strip lzw deflate3 zstd rotated nowhere bigtiff "
                              "big_endian sparse overviews averages beside tags statistics described points lerc rational").split() if path(name).exists()]


def points(path):
    make(path, transform=None)
    d = gdal.Open(str(path), gdal.GA_Update)
    d.SetGCPs([gdal.GCP(8.0, 46.0, 0, 0, 0), gdal.GCP(8.5, 46.0, 0, W, 0), gdal.GCP(8.0, 45.5, 0, 0, H), gdal.GCP(8.4, 45.6, 0, W, H)], UTM.ExportToWkt())


def check_kinds(bench):
    for name in kinds(bench):
        source, target = bench.path(name + ".tif"), bench.path(name + "_out.tif")
        before = source.read_bytes()
        result = bench.run(source, target, "--window", 100)
        if not bench.check(result.status == 0, f"{name}: {result} {result.out[-300:]}"):
            continue
        check_filled(bench, name, source, target)
        check_same(bench, name, source, target)
        bench.check(source.read_bytes() == before, f"{name}: the input changed")
        bench.check(figures(result)["counted"].endswith("left 0"), f"{name}: {result.out}")
        bench.check(figures(result)["voids"].startswith(f"{voids().sum()} "), f"{name}: {result.out}")
    for name in ("overviews", "averages", "beside"):
        check_overviews(bench, name)
    text = bench.path("described_out.tif.aux.xml").read_text()
    bench.check("STATISTICS" not in text and "Histogram" not in text and "kept" in text, f"statistics are cut: {text}")


def check_overviews(bench, name):
    """They are what GDAL itself would make of the result."""
    target, again = bench.path(name + "_out.tif"), bench.path(name + "_again.tif")
    full = gdal.Open(str(target))
    copy = gdal.GetDriverByName("GTiff").CreateCopy(str(again), full, options=["COPY_SRC_OVERVIEWS=NO"])
    del copy
    d = gdal.Open(str(again), gdal.GA_Update)
    d.BuildOverviews("AVERAGE" if name == "averages" else "NEAREST", [2, 4])
    for level in range(2):
        ours, theirs = (x.GetRasterBand(1).GetOverview(level).ReadAsArray() for x in (full, d))
        bench.check(np.array_equal(ours, theirs), f"{name}: overview {level} differs in {(ours != theirs).sum()} pixels")


def check_masks(bench):
    """Internal mask, mask beside, alpha."""
    for name, inside in (("masked", "YES"), ("mask_beside", "NO")):
        with config("GDAL_TIFF_INTERNAL_MASK", inside):
            path = bench.path(name + ".tif")
            make(path, nodata=None, marks=False)
            d = gdal.Open(str(path), gdal.GA_Update)
            d.CreateMaskBand(gdal.GMF_PER_DATASET)
            d.GetRasterBand(1).GetMaskBand().WriteArray(np.where(voids(), 0, 255).astype(np.uint8))
            del d
            d = gdal.Open(str(path), gdal.GA_Update if inside == "YES" else gdal.GA_ReadOnly)
            d.BuildOverviews("AVERAGE", [2, 4])
            del d
        out = bench.path(name + "_out.tif")
        result = bench.run(path, out)
        bench.check(result.status == 0, f"{name}: {result.out}")
        check_filled(bench, name, path, out)
        check_same(bench, name, path, out)
        d = gdal.Open(str(out))  # a band is gone with its dataset
        mask = d.GetRasterBand(1).GetMaskBand().ReadAsArray()
        bench.check((mask == 255).all(), f"{name}: filled pixels are valid in the mask")
        smaller = [d.GetRasterBand(1).GetMaskBand().GetOverview(i).ReadAsArray() for i in range(2)]
        bench.check(all((x == 255).all() for x in smaller), f"{name}: and in its overviews")
        check_second_marks(bench, name, path)
    path, out = bench.path("alpha.tif"), bench.path("alpha_out.tif")
    make(path, gdal.GDT_UInt16, ["ALPHA=YES"], nodata=None, marks=False, bands=2)
    d = gdal.Open(str(path), gdal.GA_Update)
    d.GetRasterBand(2).WriteArray(np.where(voids(), 0, 65535).astype(np.uint16))
    del d
    result = bench.run(path, out)
    bench.check(result.status == 0, f"alpha: {result.out}")
    check_filled(bench, "alpha", path, out)
    bench.check((read(out, 2) == 65535).all(), "alpha: filled pixels are opaque")
    for kind, opaque, half in ((gdal.GDT_Int16, 255, 1), (gdal.GDT_Float32, 1, 0.25), (gdal.GDT_Byte, 255, 1)):
        name = f"alpha of {gdal.GetDataTypeName(kind)}"
        make(path, kind, ["ALPHA=YES"], nodata=None if kind != gdal.GDT_Byte else 250, marks=False, bands=2)
        marks = np.where(voids(), 0, opaque).astype(TYPES[kind])
        marks[5, 7] = half  # nearly transparent, but not void
        d = gdal.Open(str(path), gdal.GA_Update)
        d.GetRasterBand(2).WriteArray(marks)
        del d
        result = bench.run(path, out)
        bench.check(result.status == 0 and figures(result)["voids"].startswith(f"{voids().sum()} "), f"{name}: {result.out}")
        check_filled(bench, name, path, out)
        bench.check((read(out, 2) == np.where(voids(), opaque, marks)).all(), f"{name}: filled pixels are opaque")
        check_second_marks(bench, name, path)


def check_second_marks(bench, name, path):
    """As a second map it has no value where mask or alpha is 0, and its own heights elsewhere."""
    plane, out = bench.path("marks_plane.tif"), bench.path("marks_plane_out.tif")
    wanted = np.zeros((H, W), bool)
    wanted[15:40, 20:80] = True
    write(plane, np.where(wanted, -9999, 5).astype(np.float32))
    both, warped = wanted & ~voids(), bench.path("marks_warped.tif")
    gdal.Translate(str(warped), str(path), srcWin=[0, 0, W, H - 50])  # another grid
    for second in (path, warped):
        result = bench.run(plane, out, "--second", second)
        got = read(out)
        bench.check(result.status == 0 and np.allclose(got[both], read(path)[both].astype(np.float32), rtol=0, atol=0.01) and
                    (got[wanted & voids()] == -9999).all(), f"{name}, second map {second.name}: {result.out}")


def check_shared_mask(bench):
    """Two bands under one mask or alpha: filling one would make the voids of the other valid."""
    for name, options, kind in (("mask", (), gdal.GDT_Float32), ("alpha", ["PHOTOMETRIC=MINISBLACK"], gdal.GDT_Byte)):
        path = bench.path(f"shared_{name}.tif")
        bands = 2 if name == "mask" else 3
        make(path, kind, options, nodata=None, marks=False, bands=bands)
        marks = np.where(voids(), 0, 255).astype(np.uint8)
        with config("GDAL_TIFF_INTERNAL_MASK", "YES"):
            d = gdal.Open(str(path), gdal.GA_Update)
            if name == "mask":
                d.CreateMaskBand(gdal.GMF_PER_DATASET)
            else:
                d.GetRasterBand(3).SetColorInterpretation(gdal.GCI_AlphaBand)
            (d.GetRasterBand(1).GetMaskBand() if name == "mask" else d.GetRasterBand(3)).WriteArray(marks)
            del d
        check_error(bench, [path, bench.path("no.tif"), "--band", 1], "no.tif", "2 bands share", name, "gdal_translate -b 1")
        bench.check(not bench.path("no.tif").exists(), f"{name} of two bands: no output")
        one, out = bench.path("one_band.tif"), bench.path("one_band_out.tif")
        with config("GDAL_TIFF_INTERNAL_MASK", "YES"):
            gdal.Translate(str(one), str(path), bandList=[1] if name == "mask" else [1, 3])
        result = bench.run(one, out)
        bench.check(result.status == 0, f"{name}: one band as the message says: {result.out}")
        check_filled(bench, f"{name}, one band", one, out)


def check_mask_file(bench):
    source = bench.path("float32.tif")
    asked = np.zeros((H, W), bool)
    asked[30:50, 10:70] = True  # partly void in the raster
    paths = [bench.path(n) for n in ("mask.tif", "mask.png", "bit.tif", "bit_white.tif", "bit_fax.tif", "bit_palette.tif")]
    d = gdal.GetDriverByName("MEM").Create("", W, H, 3, gdal.GDT_Byte)
    for b in (1, 2, 3):
        d.GetRasterBand(b).WriteArray(asked.astype(np.uint8) * 255)
    d.SetGeoTransform(PLACE)
    gdal.GetDriverByName("GTiff").CreateCopy(str(paths[0]), d)
    with config("GDAL_PAM_ENABLED", "NO"):
        gdal.GetDriverByName("PNG").CreateCopy(str(paths[1]), d)
    table = gdal.ColorTable()
    for i in (0, 1):
        table.SetColorEntry(i, (255 * i, 255 * i, 255 * i, 255))
    for path, options in zip(paths[2:], ([], ["PHOTOMETRIC=MINISWHITE"], ["COMPRESS=CCITTFAX4"], ["PHOTOMETRIC=PALETTE"])):
        bit = gdal.GetDriverByName("GTiff").Create(str(path), W, H, 1, gdal.GDT_Byte, ["NBITS=1", *options])
        if "palette" in path.name:
            bit.GetRasterBand(1).SetColorTable(table)
        bit.GetRasterBand(1).WriteArray(asked.astype(np.uint8))
        del bit
    for path in paths:
        out = bench.path("with_" + path.name + ".tif")
        result = bench.run(source, out, "--mask", path)
        bench.check(result.status == 0, f"{path.name}: {result.out}")
        check_filled(bench, path.name, source, out, mask=asked)
        kept = (voids() & ~asked).sum()
        bench.check(figures(result).get("voids", "").startswith(f"{asked.sum()} kept {kept} "), f"{path.name}: {result.out}")
    small = bench.path("small_mask.tif")
    gdal.Translate(str(small), str(paths[0]), srcWin=[0, 0, W - 1, H])
    moved = bench.path("moved_mask.tif")
    gdal.Translate(str(moved), str(paths[0]), outputBounds=[500015, 5100000, 500015 + 30 * W, 5100000 - 30 * H])
    check_error(bench, [source, bench.path("no.tif"), "--mask", small], "small_mask.tif", "300 x 399")
    check_error(bench, [source, bench.path("no.tif"), "--mask", moved], "moved_mask.tif", "transform", "0.5 pixels")
    check_error(bench, [source, bench.path("no.tif"), "--mask", bench.path("absent.tif")], "absent.tif")


def check_error(bench, args, *words, env=None, **popen):
    result = bench.run(*args, **popen)
    lines = [line for line in result.out.splitlines() if line.startswith("error: ")]
    good = result.status == 1 and len(lines) == 1 and all(w in lines[0] for w in words)
    bench.check(good, f"wants {words}: status {result.status} {result.out[-400:]} {result.err[-200:]}")
    return lines[0] if lines else ""


def check_rules(bench):
    """Undeclared markers, outliers, given values."""
    data = heights(np.float32)
    void = voids()
    for marker in (-9999, -99999, -999, -32767, -32768, np.nan, np.inf, 1e30, -3.4028235e38):
        data[void] = marker
        path = bench.path("undeclared.tif")
        write(path, data)
        result = bench.run(path)
        bench.check(figures(result).get("voids", "").startswith(f"{void.sum()} "), f"undeclared {marker}: {result.out}")
    data[void] = -500
    write(path, data)
    bench.check(figures(bench.run(path)).get("voids", "").startswith("0 "), "-500 is a height")
    result = bench.run(path, "--nodata", "-500")
    bench.check(figures(result).get("voids", "").startswith(f"{void.sum()} "), f"given: {result.out}")
    small = heights(np.int16)
    small[void] = -32768
    write(path, small)
    bench.check(figures(bench.run(path)).get("voids", "").startswith(f"{void.sum()} "), "-32768 of int16")
    bench.check(figures(bench.run(path, "--nodata", "none")).get("voids", "").startswith("0 "), "none")
    check_error(bench, [path, "--nodata", "70000"], "int16", "70000")
    for kind, marker in ((np.uint16, 65535), (np.uint16, 32767), (np.int16, 32767), (np.float32, 32767)):
        small = heights(kind)
        small[void] = marker
        write(path, small)
        result = bench.run(path)
        bench.check(figures(result).get("voids", "").startswith(f"{void.sum()} "), f"{marker} of {kind.__name__}: {result.out}")
    write(path, np.round((heights(np.float64) - 500) * 100).clip(0, 65535).astype(np.uint16))  # the summits are cut off
    result = bench.run(path)
    bench.check((read(path) == 65535).any() and figures(result).get("voids", "").startswith("0 "), f"65535 of a summit: {result.out}")
    make(bench.path("beyond.tif"), gdal.GDT_Int16, nodata=-99999, marks=False)
    bench.check(figures(bench.run(bench.path("beyond.tif"))).get("voids", "").startswith("0 "), "a nodata value that int16 cannot hold")
    both = bench.path("two_values.tif")  # NaN in a file that declares another value
    make(both)
    d = gdal.Open(str(both), gdal.GA_Update)
    d.GetRasterBand(1).WriteArray(np.full((1, 3), np.nan, np.float32), 7, 5)
    del d
    bench.check(figures(bench.run(both)).get("voids", "").startswith(f"{void.sum() + 3} "), "NaN beside a declared value")


def write(path, data, **more):
    kind = {v: k for k, v in TYPES.items()}[data.dtype.type]
    d = gdal.GetDriverByName("GTiff").Create(str(path), data.shape[1], data.shape[0], 1, kind)
    d.GetRasterBand(1).WriteArray(data)
    d.SetGeoTransform(PLACE)
    d.SetProjection(UTM.ExportToWkt())
    del d


def check_values(bench):
    """Scale and offset; a filled pixel never equals the nodata value."""
    path, out = bench.path("scaled.tif"), bench.path("scaled_out.tif")
    make(path, gdal.GDT_Int16, nodata=-9999)
    d = gdal.Open(str(path), gdal.GA_Update)
    d.GetRasterBand(1).SetScale(0.5)
    d.GetRasterBand(1).SetOffset(100)
    del d
    result = bench.run(path, out)
    bench.check(result.status == 0, f"scaled: {result.out}")
    mask = voids()
    wanted = np.floor((filler() - 100) / 0.5 + 0.5)
    bench.check(np.array_equal(read(out)[mask], wanted[mask].astype(np.int16)), "scale and offset are undone")
    check_same(bench, "scaled", path, out)
    path, out = bench.path("near.tif"), bench.path("near_out.tif")
    make(path, gdal.GDT_Int16, nodata=120)
    bench.run(path, out)
    after = read(out)[mask]
    close = np.round(filler()[mask]) == 120
    bench.check(close.any() and (after != 120).all() and (after[close] == 121).all(), "no filled pixel is the nodata value")


def check_formats(bench):
    source = bench.path("tiled.tif")
    for name, options in (("cog.tif", ["--format", "COG"]), ("envi.img", []), ("envi.bil", []), ("grid.asc", []), ("jp2.jp2", None),
                          ("co.tif", ["--co", "COMPRESS=DEFLATE", "--co", "TILED=NO"])):
        given, out = (bench.path("int16.tif"), bench.path(name)) if options is None else (source, bench.path(name))
        result = bench.run(given, out, *(options or []))
        if not bench.check(result.status == 0, f"{name}: {result.out}"):
            continue
        check_filled(bench, name, given, out)
        d = gdal.Open(str(out))
        bench.check(np.allclose(d.GetGeoTransform(), PLACE), f"{name}: transform {d.GetGeoTransform()}")
        bench.check(d.GetSpatialRef() is not None, f"{name}: coordinate system")
        before = gdal.Open(str(given))
        bench.check(d.GetRasterBand(1).GetNoDataValue() == before.GetRasterBand(1).GetNoDataValue(), f"{name}: nodata {d.GetRasterBand(1).GetNoDataValue()}")
    structure = gdal.Open(str(bench.path("cog.tif"))).GetMetadata("IMAGE_STRUCTURE")
    bench.check(structure.get("LAYOUT") == "COG", f"a COG: {structure}")
    bench.check(gdal.Open(str(bench.path("co.tif"))).GetMetadata("IMAGE_STRUCTURE").get("COMPRESSION") == "DEFLATE", "creation options")
    result = bench.run(bench.path("cog.tif"), bench.path("cog_again.tif"), "--nodata", "150")
    bench.check(result.status == 0, f"COG again: {result.out}")
    check_same(bench, "COG to COG", bench.path("cog.tif"), bench.path("cog_again.tif"))
    for driver in ("ENVI", "HFA"):
        given, out = bench.path(f"in_{driver}.img"), bench.path(f"out_{driver}.img")
        make(given, driver=driver)
        result = bench.run(given, out)
        bench.check(result.status == 0, f"{driver}: {result.out}")
        check_filled(bench, driver, given, out)
        check_same(bench, driver, given, out)
    check_error(bench, [source, bench.path("x.img"), "--format", "HFA"], "x.img", "Erdas")
    check_error(bench, [source, bench.path("x.png")], "x.png", "suffix")
    check_error(bench, [source, bench.path("x.vrt")], "x.vrt", "suffix")
    check_error(bench, [source, bench.path("x.jp2")], "x.jp2", "float32")
    check_error(bench, [bench.path("rotated.tif"), bench.path("x.asc")], "x.asc", "rotation")
    check_error(bench, [source, bench.path("x.tif"), "--format", "NITF"], "NITF", "COG")
    check_error(bench, [source, bench.path("x.tif"), "--co", "COMPRESS=BLAH"], "x.tif", "COMPRESS=BLAH", "BLAH", "GTiff")
    check_error(bench, [source, bench.path("x.tif"), "--co", "TILED=YES", "--co", "NOPE=1"], "x.tif", "NOPE=1", "GTiff")
    check_error(bench, [source, bench.path("x.tif"), "--format", "COG", "--co", "TILED=YES"], "x.tif", "TILED=YES", "COG")
    check_error(bench, [source, bench.path("x.tif"), "--co", "BLOCKXSIZE=wide"], "x.tif", "BLOCKXSIZE=wide")
    result = bench.run(source, bench.path("x.tif"), "--co", "compress=lzw", "--co", "PREDICTOR=3")
    bench.check(result.status == 0 and gdal.Open(str(bench.path("x.tif"))).GetMetadata("IMAGE_STRUCTURE").get("COMPRESSION") == "LZW",
                f"creation options of small letters: {result.out}")
    check_lossy(bench)
    check_marks_of_formats(bench)


def check_marks_of_formats(bench):
    """Voids that stay are still marked in another format, or the format is refused."""
    masked, alpha = bench.path("masked.tif"), bench.path("alpha.tif")
    make(alpha, gdal.GDT_UInt16, ["ALPHA=YES"], nodata=None, marks=False, bands=2)
    d = gdal.Open(str(alpha), gdal.GA_Update)
    d.GetRasterBand(2).WriteArray(np.where(voids(), 0, 65535).astype(np.uint16))
    del d
    for name in ("m.img", "m.asc"):
        check_error(bench, [masked, bench.path(name)], name, "no mask band", ".tif")
    check_error(bench, [alpha, bench.path("a.img")], "a.img", "no alpha band", ".tif")
    check_error(bench, [bench.path("scaled.tif"), bench.path("s.jp2")], "s.jp2", "scale", ".tif")
    check_error(bench, [bench.path("scaled.tif"), bench.path("s.asc")], "s.asc", "scale", ".tif")
    few = np.zeros((H, W), bool)
    few[20:40, 30:60] = True  # the other voids stay
    asked = bench.path("few.tif")
    write(asked, few.astype(np.uint8))
    for source, name in ((masked, "m_cog.tif"), (alpha, "a.jp2"), (bench.path("int16.tif"), "n.jp2"), (bench.path("n.jp2"), "n2.jp2")):
        out = bench.path(name)
        result = bench.run(source, out, "--mask", asked, *(["--format", "COG"] if "cog" in name else []))
        if not bench.check(result.status == 0, f"{name}: {result.out}"):
            continue
        d = gdal.Open(str(out))
        bench.check(np.array_equal(d.GetRasterBand(1).GetMaskBand().ReadAsArray() == 0, voids() & ~few), f"{name}: voids that stay")
    text = bench.path("n.jp2.aux.xml").read_text()
    bench.path("n.jp2.aux.xml").write_text(text.replace("</PAMRasterBand>", '<Description>kept</Description>'
                                           '<Metadata><MDI key="STATISTICS_MEAN">1</MDI></Metadata></PAMRasterBand>'))
    bench.run(bench.path("n.jp2"), bench.path("n3.jp2"), "--mask", asked)
    text = bench.path("n3.jp2.aux.xml").read_text()
    bench.check("kept" in text and "STATISTICS" not in text, f"the description beside a JPEG 2000 is kept: {text}")


def check_lossy(bench):
    path, out = bench.path("lossy.tif"), bench.path("lossy_out.tif")
    make(path, gdal.GDT_Byte, ["COMPRESS=JPEG", "TILED=YES"], nodata=None, marks=False)
    mask = bench.path("lossy_mask.tif")
    write(mask, voids().astype(np.uint8))
    result = bench.run(path, out, "--mask", mask)
    bench.check(result.status == 0 and "lossy" in figures(result).get("notes", ""), f"lossy: {result.out}")
    check_filled(bench, "lossy", path, out)


def check_mosaic(bench):
    for i in range(2):
        gdal.Translate(str(bench.path(f"part{i}.tif")), str(bench.path("float32.tif")), srcWin=[i * W // 2, 0, W // 2, H])
    vrt, out = bench.path("mosaic.vrt"), bench.path("mosaic_out.tif")
    d = gdal.BuildVRT(str(vrt), [str(bench.path(f"part{i}.tif")) for i in range(2)])
    del d
    result = bench.run(vrt, out)
    bench.check(result.status == 0, f"VRT: {result.out}")
    check_filled(bench, "VRT", vrt, out)
    huge = vrt.read_text().replace(f'rasterXSize="{W}"', 'rasterXSize="1000000000"').replace(f'rasterYSize="{H}"', 'rasterYSize="1000000000"')
    bench.path("huge.vrt").write_text(huge)
    check_error(bench, [bench.path("huge.vrt"), bench.path("no.tif")], "huge.vrt", "impossible size")
    large = huge.replace("1000000000", "1500000")
    bench.path("large.vrt").write_text(large)
    check_error(bench, [bench.path("large.vrt"), bench.path("no.tif")], "no.tif", "the disk has")
    bench.path("empty.vrt").write_text('<VRTDataset rasterXSize="5" rasterYSize="5"></VRTDataset>')
    check_error(bench, [bench.path("empty.vrt")], "empty.vrt", "bands")


def check_second(bench):
    """Another map in another system, finer or coarser, that covers a part."""
    y, x = np.mgrid[0:H, 0:W]
    plane = (500 + 0.8 * x - 0.6 * y).astype(np.float32)
    data = plane.copy()
    data[voids()] = -9999
    source = bench.path("plane.tif")
    write(source, data)
    d = gdal.Open(str(source), gdal.GA_Update)
    d.GetRasterBand(1).SetNoDataValue(-9999)
    del d
    full = bench.path("plane_full.tif")
    write(full, plane)
    cases = {"finer": dict(dstSRS="EPSG:4326", xRes=1e-4, yRes=1e-4, resampleAlg="cubic", dstNodata=-9999),
             "coarser": dict(dstSRS="EPSG:3857", xRes=100, yRes=100, resampleAlg="bilinear", dstNodata=-9999),
             "part": dict(dstSRS="EPSG:4326", outputBounds=[500000, 5100000 - 30 * 150, 500000 + 30 * 200, 5100000],
                          outputBoundsSRS="EPSG:32632", dstNodata=float("nan"))}
    for name, how in cases.items():
        other, out = bench.path(name + ".tif"), bench.path(name + "_out.tif")
        d = gdal.Warp(str(other), str(full), **how)
        del d
        result = bench.run(source, out, "--second", other, "--window", 97, "--sd", bench.path(name + "_sd.tif"))
        if not bench.check(result.status == 0, f"second {name}: {result.out}"):
            continue
        after = read(out)
        filled = voids() & (after != -9999)
        error = np.abs(after - plane)[filled]
        bench.check(error.max() < 1.0 and error.mean() < 0.2, f"second {name}: error {error.max()} {error.mean()}")
        wanted = np.zeros((H, W), bool)
        wanted[:149, :199] = True
        expected = voids() & wanted if name == "part" else voids()
        missing = expected & ~filled
        missing[[0, -1]] = missing[:, [0, -1]] = False
        bench.check(not missing.any(), f"second {name}: {missing.sum()} pixels are not covered")
        bench.check(np.array_equal(after[~voids()], plane[~voids()]), f"second {name}: valid pixels")
        sd = bench.path(name + "_sd.tif")
        deviation = read(sd)
        bench.check(np.array_equal(np.isfinite(deviation), filled) and np.array_equal(deviation[filled], after[filled]), f"{name}: deviation")
        one, two = described(sd), described(source)
        bench.check(one["geoTransform"] == two["geoTransform"] and one["coordinateSystem"] == two["coordinateSystem"]
                    and one["bands"][0]["description"] == "standard deviation", "the deviation's place")
    bare = bench.path("bare.tif")
    d = gdal.GetDriverByName("GTiff").Create(str(bare), 50, 50)
    del d
    check_error(bench, [source, "--second", bare], "bare.tif", "no transform")


def check_world(bench):
    source = bench.path("rotated.tif")
    for how, wanted in (("centre", [29, 4, 3, -28.5, 500016, 5099987.75]), ("corner", [29, 3, 4, -28.5, 500000, 5100000])):
        out = bench.path(f"world_{how}.tif")
        result = bench.run(source, out, "--world", how)
        numbers = [float(x) for x in bench.path(f"world_{how}.tfw").read_text().split()] if result.status == 0 else []
        bench.check(numbers == wanted, f"world file, {how}: {numbers} {result.out[-200:]}")
    check_error(bench, [bench.path("nowhere.tif"), bench.path("no.tif"), "--world", "centre"], "no.tif", "transform")


def check_refusals(bench):
    source = bench.path("float32.tif")
    make(bench.path("two.tif"), bands=2)
    check_error(bench, [bench.path("two.tif"), bench.path("no.tif")], "two.tif", "2 bands", "`band`")
    result = bench.run(bench.path("two.tif"), bench.path("two_out.tif"), "--band", 2)
    bench.check(result.status == 0, f"band 2: {result.out}")
    check_filled(bench, "band 2", bench.path("two.tif"), bench.path("two_out.tif"), band=2)
    check_filled(bench, "band 1 of two", bench.path("two.tif"), bench.path("two_out.tif"), mask=np.zeros((H, W), bool))
    check_same(bench, "band 2", bench.path("two.tif"), bench.path("two_out.tif"))
    check_error(bench, [bench.path("two.tif"), "--band", 3], "two.tif", "no band 3")
    for name, kind in (("complex", gdal.GDT_CFloat32), ("complex_int", gdal.GDT_CInt16)):
        d = gdal.GetDriverByName("GTiff").Create(str(bench.path(name + ".tif")), 20, 20, 1, kind)
        del d
        check_error(bench, [bench.path(name + ".tif")], name + ".tif", "type C")
    d = gdal.GetDriverByName("GTiff").Create(str(bench.path("half.tif")), 20, 20, 1, gdal.GDT_Float32, ["NBITS=16"])
    del d
    check_error(bench, [bench.path("half.tif")], "half.tif", "16 bits")
    d = gdal.GetDriverByName("GTiff").Create(str(bench.path("palette.tif")), 20, 20, 1, gdal.GDT_Byte)
    table = gdal.ColorTable()
    table.SetColorEntry(1, (9, 8, 7, 255))
    d.GetRasterBand(1).SetColorTable(table)
    del d
    check_error(bench, [bench.path("palette.tif")], "palette.tif", "palette")
    bench.path("text.tif").write_text("no raster at all")
    check_error(bench, [bench.path("text.tif")], "text.tif")
    check_error(bench, [bench.path("absent.tif")], "absent.tif")
    check_error(bench, [source, source], "float32.tif", "`overwrite`")
    bench.path("folder.tif").mkdir()
    check_error(bench, [source, bench.path("folder.tif")], "folder.tif", "folder")
    check_error(bench, [source, bench.path("nowhere/x.tif")], "x.tif", "folder")
    if os.getuid() != 0:
        bench.path("closed").mkdir(mode=0o555)
        check_error(bench, [source, bench.path("closed/x.tif")], "x.tif", "writable")


def check_overwrite(bench):
    path = bench.path("again.tif")
    shutil.copy(bench.path("described.tif"), path)
    shutil.copy(bench.path("described.tif.aux.xml"), str(path) + ".aux.xml")
    result = bench.run(path, path, "--overwrite")
    bench.check(result.status == 0, f"overwrite: {result.out}")
    check_filled(bench, "overwrite", bench.path("described.tif"), path)
    check_same(bench, "overwrite", bench.path("described.tif"), path)
    old = bench.path("replaced.tif")
    shutil.copy(bench.path("beside.tif"), old)
    shutil.copy(bench.path("beside.tif.ovr"), str(old) + ".ovr")
    bench.run(bench.path("tiled.tif"), old)
    bench.check(not os.path.exists(str(old) + ".ovr"), "overviews of a replaced file are removed")
    before = path.read_bytes()
    bench.run(bench.path("tiled.tif"), path, "--abandon")
    bench.check(path.read_bytes() == before, "an abandoned output changes nothing")


def check_disk(bench):
    """A full disk (a limit of file sizes), and a file that shrinks while it is read."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    out = bench.path("full.tif")
    out.write_bytes(b"precious")
    check_error(bench, [bench.path("tiled.tif"), out], "full.tif", "cannot be written", preexec_fn=limit)
    check_error(bench, [bench.path("tiled.tif"), out, "--co", "TILED=NO"], "full.tif", "cannot be written", preexec_fn=limit)

    def tighter():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = bench.path("lzw.tif").stat().st_size + 1000
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    check_error(bench, [bench.path("lzw.tif"), out], "full.tif", "cannot be written", preexec_fn=tighter)
    bench.check(out.read_bytes() == b"precious", "a failed run changes nothing")
    for name in ("tiled", "lzw", "float32", "deflate3"):
        path = bench.path("shrinks.tif")
        shutil.copy(bench.path(name + ".tif"), path)
        check_error(bench, [path, bench.path("no.tif"), "--shrink"], "shrinks.tif")
    bench.check(not bench.path("no.tif").exists(), "no output of a damaged input")


def check_large(bench):
    """20000 x 20000, mostly holes: opened, scanned and updated in little memory."""
    size, path, out = 20000, bench.path("large.tif"), bench.path("large_out.tif")
    d = gdal.GetDriverByName("GTiff").Create(str(path), size, size, 1, gdal.GDT_Int16, ["SPARSE_OK=YES", "TILED=YES"])
    d.GetRasterBand(1).SetNoDataValue(-32768)
    data = np.full((size // 100, size), 77, np.int16)
    data[20:40, 1000:1100] = -32768
    for y in range(0, size, size // 4):
        d.GetRasterBand(1).WriteArray(data, 0, y)
    d.SetGeoTransform(PLACE)
    del d
    narrow = bench.path("large_mask.tif")
    d = gdal.GetDriverByName("GTiff").Create(str(narrow), size, size, 1, gdal.GDT_Byte, ["SPARSE_OK=YES", "TILED=YES"])
    d.GetRasterBand(1).WriteArray(np.full((300, 300), 255, np.uint8), 9000, 15000)
    del d
    result = bench.run(path, out, "--window", 1000, "--mask", narrow, watch=True)
    bench.check(result.status == 0, f"large: {result.out}")
    bench.check(figures(result).get("voids", "").startswith("90000 "), f"large: {result.out}")
    with open(bench.program, "rb") as file:
        sanitized = b"__asan_init" in file.read()  # takes memory of its own
    bench.check(sanitized or result.peak < 300 << 20, f"large: {result.peak >> 20} MiB")
    counted = int(figures(result)["counted"].split()[1])
    bench.check(counted < 200 << 20, f"large: {counted >> 20} MiB counted")


def main():
    bench = Quiet(sys.argv[2])
    check_kinds(bench)
    check_masks(bench)
    check_shared_mask(bench)
    check_mask_file(bench)
    check_rules(bench)
    check_values(bench)
    check_formats(bench)
    check_mosaic(bench)
    check_second(bench)
    check_world(bench)
    check_refusals(bench)
    check_overwrite(bench)
    check_disk(bench)
    check_large(bench)
    bench.check(not leftovers(bench.folder), f"no temporary file is left: {leftovers(bench.folder)}")
    bench.finish()


main()
