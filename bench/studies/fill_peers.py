"""Fills of elevation maps by this project and by other programs, for studies: a case is (name, heights, voids, pixel), with
pixel = (height, width) in metres; every function returns heights without a void, one array a case."""
import concurrent.futures
import json
import pathlib
import shutil
import struct
import subprocess
import zlib

import numpy as np
from osgeo import gdal

gdal.UseExceptions()
NODATA = -99999.0
GRASS_METHODS = ("rst", "bicubic")
GRASS_LIMIT = 300  # seconds a fill


def read(path):
    """Heights, which of them are void, and the pixel's height and width in metres."""
    raster = gdal.Open(str(path))
    heights = raster.ReadAsArray().astype(np.float32)
    nodata = raster.GetRasterBand(1).GetNoDataValue()
    bad = ~np.isfinite(heights)
    if nodata is not None and nodata == nodata:
        bad |= heights == np.float32(nodata)
    step = raster.GetGeoTransform()
    px, py = abs(step[1]), abs(step[5])
    reference = raster.GetSpatialRef()
    if reference is not None and reference.IsGeographic():
        latitude = step[3] + step[5] * raster.RasterYSize / 2
        px, py = px * 111320 * np.cos(np.radians(latitude)), py * 111320
    return heights, bad, (py, px)


def write(path, heights, voids=None, pixel=(1, 1)):
    raster = gdal.GetDriverByName("GTiff").Create(str(path), heights.shape[1], heights.shape[0], 1, gdal.GDT_Float32)
    raster.SetGeoTransform((0, pixel[1], 0, 0, 0, -pixel[0]))
    band = raster.GetRasterBand(1)
    if voids is not None:
        band.SetNoDataValue(NODATA)
    band.WriteArray(heights if voids is None else np.where(voids, np.float32(NODATA), heights))


def smooth(rates, cases, kinds):
    """{kind: fills} and the width of each case's widest void, by bench/rates/terrain_rates."""
    text = b"".join(struct.pack("qq", *z.shape) + np.where(m, 0, z).astype(np.float32).tobytes() + m.astype(np.uint8).tobytes()
                    for _, z, m, _ in cases)
    out = subprocess.run([rates, "fill", ",".join(kinds)], input=text, check=True, capture_output=True).stdout
    at, fills, widths = 0, {kind: [] for kind in kinds}, []
    for _, z, _, _ in cases:
        widths.append(struct.unpack_from("d", out, at)[0])
        at += 8
        for kind in kinds:
            fills[kind].append(np.frombuffer(out, np.float32, z.size, at + 8).reshape(z.shape))
            at += 8 + 4 * z.size
    return fills, np.array(widths)


def errors(rates, cases, fills):
    """The record of `terrain_rates metrics` for each case."""
    records = []
    for (_, z, m, pixel), fill in zip(cases, fills):
        text = struct.pack("qq", *z.shape) + z.tobytes() + fill.astype(np.float32).tobytes() + m.astype(np.uint8).tobytes()
        out = subprocess.run([rates, "metrics", str(pixel[0]), str(pixel[1])], input=text, check=True, capture_output=True)
        records.append(json.loads(out.stdout.replace(b":inf", b":1e9").replace(b":nan", b":-1")))
    return records


def gdal_fill(heights, voids, smoothings=0):
    driver = gdal.GetDriverByName("MEM")
    raster = driver.Create("", heights.shape[1], heights.shape[0], 1, gdal.GDT_Float32)
    raster.GetRasterBand(1).WriteArray(np.where(voids, 0, heights))
    mask = driver.Create("", heights.shape[1], heights.shape[0], 1, gdal.GDT_Byte)
    mask.GetRasterBand(1).WriteArray((~voids).astype(np.uint8))
    gdal.FillNodata(raster.GetRasterBand(1), mask.GetRasterBand(1), 1000, smoothings)
    return np.where(voids, raster.ReadAsArray(), heights)


def kept(folder, case, part, made_with=b""):
    """The file of a fill. Its name tells heights, voids and what made it, so that no fill of another void is taken for it."""
    name, z, m, _ = case
    return folder / f"{name}.{zlib.crc32(made_with, zlib.crc32(m.tobytes(), zlib.crc32(z.tobytes()))):08x}.{part}.tif"


def fillnulls_script(case, folder):
    """Fills a case by those methods whose result is not there yet; None when all are."""
    wanted = [method for method in GRASS_METHODS if not kept(folder, case, f"grass_{method}").exists()]
    if not wanted:
        return None
    plain = kept(folder, case, "plain")
    write(plain, case[1], case[2])
    lines = [f"r.in.gdal -o --q input='{plain}' output=holes && g.region raster=holes"]
    for method in wanted:
        output = kept(folder, case, f"grass_{method}")
        lines.append(f"timeout {GRASS_LIMIT} r.fillnulls --q input=holes output={method} method={method} && "
                     f"r.out.gdal -c -f --q input={method} output='{output}' format=GTiff type=Float32")
    return "\n".join(lines)


def grass(cases, folder, jobs):
    """{method: fills}. Fills that are in the folder already are taken from it; with 0 jobs no others are made. A fill that is
    missing or failed is None."""
    if jobs and not shutil.which("grass"):
        print("GRASS is not installed, so r.fillnulls is left out (Debian: apt-get install grass-core)")
        jobs = 0
    run = lambda script: subprocess.run(["grass", "--tmp-location", "XY", "--exec", "bash", "-c", script], capture_output=True)
    if jobs:
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(run, filter(None, (fillnulls_script(case, folder) for case in cases))))
    fills = {f"grass {method}": [] for method in GRASS_METHODS}
    for method in GRASS_METHODS:
        for case in cases:
            _, z, m, _ = case
            path = kept(folder, case, f"grass_{method}")
            fill = gdal.Open(str(path)).ReadAsArray() if path.exists() else None
            if fill is not None:  # pixels that GRASS leaves void
                left = m & ~(np.isfinite(fill) & (np.abs(fill) < 1e6))
                fill = np.where(left, gdal_fill(z, m) if left.any() else 0, fill)
            fills[f"grass {method}"].append(fill)
    return {method: found for method, found in fills.items() if any(fill is not None for fill in found)}


def model(program, cases, folder, options, jobs):
    """Mean and standard deviation of each case's samples by `tessera fill`. Results that are in the folder are taken from it."""
    weights = [pathlib.Path(option).read_bytes() for option in options if pathlib.Path(option).is_file()]
    made_with = b"".join([" ".join(options).encode(), *weights])

    def one(case):
        name, z, m, pixel = case
        source, mean, deviation = (kept(folder, case, part, made_with) for part in ("voids", "mean", "deviation"))
        if not mean.exists() or not deviation.exists():
            write(source, z, m, pixel)
            command = [program, "fill", str(source), str(mean), "--voids", "all", "--deviation", str(deviation), "--quiet", *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{name}: {' '.join(command)}\n{done.stderr.strip()}")
        return gdal.Open(str(mean)).ReadAsArray(), gdal.Open(str(deviation)).ReadAsArray()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(one, cases))
    return [mean for mean, _ in results], [deviation for _, deviation in results]
