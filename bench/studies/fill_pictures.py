"""One picture of a filled elevation map: hillshade with its voids, hillshade after filling, and the standard deviation of the fills.

    python3 bench/studies/fill_pictures.py build/tessera DATA/dem_large/srtm3_N46E008.tif docs/pictures/fill.png --model M

Without --model the smooth fill of build/terrain_rates is shown, to see the layout; its uncertainty panel is then the difference between the
plate and the membrane. --window ROW COLUMN SIZE chooses a part; by default the part of 400 x 400 pixels with the most pixels in inner
voids. Voids are red. Both hillshades have one light from north-west, 45 degrees high; the third panel goes from white (0) to dark
blue (its 99th percentile, which is printed), with valid pixels as a pale hillshade. Needs osgeo.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy as np
from osgeo import gdal

import fill_peers as peers

GAP = 8
VOID = np.array([200, 60, 50], float)
DARK = np.array([12, 44, 132], float)


def hillshade(heights, pixel, exaggeration):
    south, east = np.gradient(heights.astype(float) * exaggeration, *pixel)
    light = (0.5 * east + 0.5 * south + np.sqrt(0.5)) / np.sqrt(1 + east ** 2 + south ** 2)
    return 255 * np.clip(light, 0, 1)


def inner(voids):
    """Voids that are not connected to the raster's edge: found by letting the edge's voids grow until nothing changes."""
    outer = np.zeros_like(voids)
    outer[0], outer[-1], outer[:, 0], outer[:, -1] = voids[0], voids[-1], voids[:, 0], voids[:, -1]
    while True:
        grown = outer.copy()
        grown[1:] |= outer[:-1]
        grown[:-1] |= outer[1:]
        grown[:, 1:] |= grown[:, :-1].copy()
        grown[:, :-1] |= grown[:, 1:].copy()
        grown &= voids
        if (grown == outer).all():
            return voids & ~outer
        outer = grown


def choose(voids, size):
    """Row and column of the part with the most void pixels."""
    sums = np.pad(voids.astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    h, w = min(size, voids.shape[0]), min(size, voids.shape[1])
    counts = sums[h:, w:] - sums[:-h, w:] - sums[h:, :-w] + sums[:-h, :-w]
    return np.unravel_index(counts.argmax(), counts.shape)


def fill(options, heights, voids, pixel):
    """Filled heights and their uncertainty."""
    case = ("map", heights, voids, pixel)
    if options.model:
        with tempfile.TemporaryDirectory() as folder:
            more = ["--model", options.model, "--samples", str(options.samples), *options.fill_options.split()]
            mean, deviation = peers.model(options.program, [case], pathlib.Path(folder), more, 1)
            return mean[0], deviation[0] * options.factor
    rates = str(pathlib.Path(options.program).resolve().with_name("terrain_rates"))
    fills = peers.smooth(rates, [case], ["blend", "membrane", "biharmonic"])[0]
    return fills["blend"][0], np.abs(fills["membrane"][0] - fills["biharmonic"][0])


def panels(heights, voids, filled, spread, pixel):
    exaggeration = 0.35 / max(np.median(np.hypot(*np.gradient(filled.astype(float), *pixel))), 0.05)
    gray = hillshade(filled, pixel, min(max(exaggeration, 0.5), 8))[..., None] * np.ones(3)
    top = max(np.quantile(spread[voids], 0.99), 1e-3)
    share = np.clip(spread / top, 0, 1)[..., None]
    before = np.where(voids[..., None], VOID, gray)
    uncertain = np.where(voids[..., None], 255 * (1 - share) + DARK * share, 190 + gray / 5)
    return [before, gray, uncertain], top


def save(path, parts, scale):
    gap = np.full((parts[0].shape[0] * scale, GAP, 3), 255.0)
    parts = [part.repeat(scale, 0).repeat(scale, 1) for part in parts]
    picture = np.concatenate([parts[0], gap, parts[1], gap, parts[2]], 1).round().astype(np.uint8)
    raster = gdal.GetDriverByName("MEM").Create("", picture.shape[1], picture.shape[0], 3, gdal.GDT_Byte)
    for band in range(3):
        raster.GetRasterBand(band + 1).WriteArray(picture[..., band])
    gdal.SetConfigOption("GDAL_PAM_ENABLED", "NO")  # no .aux.xml beside the picture
    gdal.GetDriverByName("PNG").CreateCopy(str(path), raster, options=["ZLEVEL=9"])
    print(f"{path}: {picture.shape[1]} x {picture.shape[0]} pixels, {pathlib.Path(path).stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("map")
    parser.add_argument("picture")
    parser.add_argument("--model")
    parser.add_argument("--mask", help="a raster that is not 0 where pixels are void, for maps that are complete")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--factor", type=float, default=1, help="of the deviation, from the model's card")
    parser.add_argument("--fill-options", default="", help="more options of `tessera fill`, in one string")
    parser.add_argument("--window", type=int, nargs=3, metavar=("ROW", "COLUMN", "SIZE"))
    parser.add_argument("--scale", type=int, default=1, help="picture pixels a map pixel")
    options = parser.parse_args()
    heights, voids, pixel = peers.read(options.map)
    if options.mask:
        mask = gdal.Open(options.mask).ReadAsArray()
        voids = voids | ((mask[0] if mask.ndim == 3 else mask) > 0)
    voids_inside = inner(voids)
    size = options.window[2] if options.window else 400
    y, x = options.window[:2] if options.window else choose(voids_inside, size)
    part = (slice(y, y + size), slice(x, x + size))
    heights, voids = heights[part], voids[part]
    if not voids.any() or voids.all():
        raise SystemExit(f"{options.map}: the window at {y}, {x} has {'nothing but voids' if voids.all() else 'no void'}")
    filled, spread = fill(options, heights, voids, pixel)
    parts, top = panels(heights, voids, filled, spread, pixel)
    print(f"rows {y} to {y + len(heights)}, columns {x} to {x + heights.shape[1]}: {voids.sum()} void pixels; the darkest blue is {top:.1f} m")
    save(options.picture, parts, options.scale)


main()
