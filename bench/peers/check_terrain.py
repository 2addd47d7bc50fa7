"""Holds the terrain metrics against an independent implementation in NumPy, and against piq where it is installed.

    python3 bench/peers/check_terrain.py build/terrain_rates [DATA]

Random surfaces with random voids, and with DATA the maps of DATA/dem filled by gdal_fillnodata. Prints the largest relative
difference of each figure; fails above 1e-9 (1e-4 against piq, which computes in single precision).
"""
import json
import pathlib
import struct
import subprocess
import sys

import numpy as np

FAILED = []


def horn(z, dy, dx):
    z = z.astype(float)
    a, b, c, d, f, g, h, i = z[:-2, :-2], z[:-2, 1:-1], z[:-2, 2:], z[1:-1, :-2], z[1:-1, 2:], z[2:, :-2], z[2:, 1:-1], z[2:, 2:]
    east = ((c + 2 * f + i) - (a + 2 * d + g)) / (8 * dx)
    south = ((g + 2 * h + i) - (a + 2 * b + c)) / (8 * dy)
    return np.degrees(np.arctan(np.hypot(east, south)))


def gaussian(x):
    taps = np.exp(-np.arange(-5, 6) ** 2 / (2 * 1.5 ** 2))
    taps /= taps.sum()
    x = np.stack([np.convolve(row, taps, "valid") for row in x])
    return np.stack([np.convolve(column, taps, "valid") for column in x.T]).T


def ms_ssim(x, y):
    weights = np.array([0.0448, 0.2856, 0.3001])
    weights /= weights.sum()
    result = 1.0
    for scale in range(3):
        if scale:
            pad = max(x.shape[0] % 2, x.shape[1] % 2)
            x, y = (np.pad(v, ((pad, 0), (pad, 0)), "edge") for v in (x, y))
            h, w = x.shape[0] // 2 * 2, x.shape[1] // 2 * 2
            x, y = (v[:h, :w].reshape(h // 2, 2, w // 2, 2).mean((1, 3)) for v in (x, y))
        mx, my = gaussian(x), gaussian(y)
        xx, yy, xy = gaussian(x * x) - mx * mx, gaussian(y * y) - my * my, gaussian(x * y) - mx * my
        contrast = (2 * xy + 9e-4) / (xx + yy + 9e-4)
        value = contrast if scale < 2 else contrast * (2 * mx * my + 1e-4) / (mx * mx + my * my + 1e-4)
        result *= max(value.mean(), 0) ** weights[scale]
    return result


def crops(result, truth, mask):
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    part = np.s_[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
    x, y = np.maximum(result[part].astype(float), 0), np.maximum(truth[part].astype(float), 0)
    return x, y, max(x.max(), y.max())


def plain(result, truth, mask, dy, dx):
    d = (result.astype(float) - truth.astype(float))[mask]
    s = (horn(result, dy, dx) - horn(truth, dy, dx))[mask[1:-1, 1:-1]]
    x, y, most = crops(result, truth, mask)
    figures = {"rmse": np.sqrt(np.mean(d * d)), "mae": np.mean(abs(d)), "bias": np.mean(d), "slope_rmse": np.sqrt(np.mean(s * s)),
               "slope_mae": np.mean(abs(s)), "psnr": 10 * np.log10(most ** 2 / np.mean((x - y) ** 2)), "ms_ssim": -1.0}
    if min(x.shape) >= 41:
        figures["ms_ssim"] = ms_ssim(x / most, y / most)
    return figures


def measured(program, result, truth, mask, dy, dx):
    text = struct.pack("qq", *truth.shape) + truth.tobytes() + result.tobytes() + mask.astype(np.uint8).tobytes()
    record = json.loads(subprocess.run([program, "metrics", str(dy), str(dx)], input=text, check=True, capture_output=True).stdout)
    classes = [value for key, value in record.items() if key not in ("all", "psnr", "ms_ssim")]
    if sum(value["pixels"] for value in classes) != record["all"]["pixels"]:
        FAILED.append("the classes do not add up")
    return {**record["all"], "psnr": record["psnr"], "ms_ssim": record["ms_ssim"]}


def random_case(random, h, w):
    truth = np.cumsum(np.cumsum(random.normal(size=(h, w)), 0), 1) / 5 + random.uniform(-20, 500)
    result = truth + random.normal(size=(h, w)) * random.choice([0.5, 20])
    mask = np.zeros((h, w), bool)
    for _ in range(random.integers(1, 5)):
        y, x = random.integers(0, h - 5), random.integers(0, w - 5)
        mask[y:y + random.integers(3, h), x:x + random.integers(3, w)] = True
    return result.astype(np.float32), truth.astype(np.float32), mask


def map_cases(data):
    from osgeo import gdal
    gdal.UseExceptions()
    driver = gdal.GetDriverByName("MEM")
    for name in ("city01", "land01", "land02"):
        truth = gdal.Open(str(data / "dem" / f"{name}.tif")).ReadAsArray().astype(np.float32)
        mask = gdal.Open(str(data / "dem" / f"{name}mask.png")).ReadAsArray()
        mask = (mask[0] if mask.ndim == 3 else mask) > 0
        raster, valid = driver.Create("", *truth.shape[::-1], 1, gdal.GDT_Float32), driver.Create("", *truth.shape[::-1], 1, gdal.GDT_Byte)
        raster.GetRasterBand(1).WriteArray(truth)
        valid.GetRasterBand(1).WriteArray((~mask).astype(np.uint8))
        gdal.FillNodata(raster.GetRasterBand(1), valid.GetRasterBand(1), 1000, 0)
        yield raster.ReadAsArray(), truth, mask


def main():
    program = sys.argv[1]
    random = np.random.default_rng(3)
    cases = [random_case(random, *random.integers(30, 150, 2)) for _ in range(40)]
    if len(sys.argv) > 2:
        cases += list(map_cases(pathlib.Path(sys.argv[2])))
    worst, scored = {}, 0
    try:
        import piq
        import torch
    except ImportError:
        piq = None
    for result, truth, mask in cases:
        dy, dx = random.choice([1.0, 10.0, 30.0]), random.choice([2.0, 10.0])
        expected, got = plain(result, truth, mask, dy, dx), measured(program, result, truth, mask, dy, dx)
        scored += expected["ms_ssim"] >= 0
        for key, value in expected.items():
            worst[key] = max(worst.get(key, 0), abs(got[key] - value) / max(abs(value), 1e-3))
        if piq and expected["ms_ssim"] >= 0:
            x, y, most = crops(result, truth, mask)
            x, y = (torch.from_numpy(v)[None, None].float() for v in (x, y))
            value = float(piq.multi_scale_ssim(x, y, data_range=float(most), scale_weights=torch.tensor([0.0448, 0.2856, 0.3001])))
            worst["piq"] = max(worst.get("piq", 0), abs(got["ms_ssim"] - value))
    for key, value in worst.items():
        if not value <= (1e-4 if key == "piq" else 1e-9):
            FAILED.append(f"{key} differs by {value:.2g}")
    print(f"{len(cases)} cases, {scored} with MS-SSIM;", ", ".join(f"{key} {value:.1e}" for key, value in worst.items()),
          "" if piq else "; piq is not installed")
    for line in FAILED:
        print("FAILED", line)
    sys.exit(bool(FAILED))


main()
