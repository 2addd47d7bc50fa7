"""Deblurs photographs as they should be and with what cameras do to them, and prints PSNR before and after, the record's `misfit` and the noise that was taken.

    python bench/studies/blur_faults.py build/tessera PHOTO.png ... [--rows 160] [--only TEXT] [--jpeg QUALITY] [--keep]

Faults: highlights that are cut off, gamma encoding, a black frame (PSNR of what it does not hide), missing values, a kernel that is 1.3 times too wide, stripes of 2.5 of 255, hot
pixels. The limits in src/job/reconstruct/run/settle.c and look/noise.c come from Kodak's images 5, 13, 19 and 23. `--keep` uses all values, `--only` takes faults whose name
has TEXT in it, and `--jpeg` saves what is measured as a JPEG (except where values are missing).
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

from deblur_boundary import blurred, gaussian
from osgeo import gdal

gdal.UseExceptions()


def disc(radius):
    reach = int(np.ceil(radius))
    kernel = np.clip(radius + 0.5 - np.hypot(*np.mgrid[-reach:reach + 1, -reach:reach + 1]), 0, 1)
    return kernel / kernel.sum()


def crop(image, kernel):
    rows, columns = (n // 2 for n in kernel.shape)
    return image[rows:image.shape[0] - rows, columns:image.shape[1] - columns]


def faults(photo, kernel, wide, random):
    """(name, what is measured, the truth, the kernel that is given)"""
    def blur(image):
        return blurred(image[..., None], kernel)[..., 0]
    clean, truth = blur(photo) + random.normal(0, 1, crop(photo, kernel).shape), crop(photo, kernel)
    for level in (0, 3, 9):
        yield f"right, noise of {level + 1}", clean + random.normal(0, level, clean.shape), truth, kernel
    yield "highlights cut off", blur(1.6 * photo) + random.normal(0, 1, clean.shape), np.clip(1.6 * truth, 0, 255), kernel
    yield "gamma encoded", 255 * np.clip(blur((photo / 255) ** 2.2), 0, 1) ** (1 / 2.2) + random.normal(0, 1, clean.shape), truth, kernel
    framed = clean.copy()
    framed[:10] = framed[-10:] = 0
    yield "black frame", framed, truth, kernel
    missing = clean.copy()
    missing[random.random(clean.shape) < 0.05] = np.nan
    missing[40:50, 60:90] = np.nan
    yield "missing values", missing, truth, kernel
    if wide is not None:
        yield "kernel too wide", clean, truth, wide
    yield "stripes of rows", clean + random.normal(0, 2.5, (clean.shape[0], 1)), truth, kernel
    hot = clean.copy()
    hot.flat[random.integers(0, hot.size, 20)] = 255
    yield "20 hot pixels", hot, truth, kernel


def saved(path, values, quality):
    """What a JPEG keeps of the values."""
    source = gdal.GetDriverByName("MEM").Create("", values.shape[1], values.shape[0])
    source.GetRasterBand(1).WriteArray(values)
    gdal.GetDriverByName("JPEG").CreateCopy(str(path), source, options=[f"QUALITY={quality}"])
    return gdal.Open(str(path)).ReadAsArray()


def psnr(image, truth):
    return 10 * np.log10(255**2 / np.mean((np.float64(image) - truth) ** 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tessera")
    parser.add_argument("photos", nargs="+")
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--only", default="")
    parser.add_argument("--jpeg", type=int)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    random = np.random.default_rng(5)
    kernels = (("Gaussian of 1", gaussian(1, 1, 0), gaussian(1.3, 1.3, 0)), ("Gaussian of 3", gaussian(3, 3, 0), None), ("disc of 4.5", disc(4.5), None))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path in options.photos:
            bands = gdal.Open(path).ReadAsArray()
            green = np.float64(bands if bands.ndim == 2 else bands[1])
            top, left = (max((side - options.rows) // 2, 0) for side in green.shape)
            photo = green[top:top + options.rows, left:left + options.rows]
            for label, kernel, wide in kernels:
                for name, values, truth, given in faults(photo, kernel, wide, random):
                    hidden = ~np.isfinite(values)
                    if (hidden.any() and (options.keep or options.jpeg)) or options.only not in name:
                        continue  # missing values would be refused, or have no place in the file
                    values = np.clip(np.rint(np.where(hidden, 0, values)), 0, 255).astype(np.uint8)
                    seen = ~hidden & (values > 0) if name == "black frame" else ~hidden
                    measured = "y.jpg" if options.jpeg else "y.npy"
                    if options.jpeg:
                        values = saved(folder / measured, values, options.jpeg)
                    else:
                        np.save(folder / measured, np.where(hidden, np.nan, np.float32(values)) if hidden.any() else values)
                    np.save(folder / "k.npy", given)
                    more = {"saturated": False, "frame": False} if options.keep else {}
                    if hidden.any():
                        more["range"] = [0, 255]
                    (folder / "p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": measured, **more}))
                    subprocess.run([options.tessera, "reconstruct", folder / "out.npy", "--problem", folder / "p.json", "--json", folder / "r.json", "--quiet"], check=True)
                    own = json.loads((folder / "r.json").read_text())["reconstruct"]
                    print(f"{pathlib.Path(path).stem}, {label}, {name}: {psnr(values[seen], truth[seen]):.2f} to {psnr(np.load(folder / 'out.npy')[seen], truth[seen]):.2f} dB, left out {own.get('masked', {})}, misfit {own.get('misfit', 0):.1f}, noise {own.get('raised_noise', own['noise']):.2f}",
                          flush=True)


if __name__ == "__main__":
    main()
