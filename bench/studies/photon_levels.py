"""Measures the gain of a noise level for each pixel under photon noise. Needs numpy and GDAL's Python module.

    python3 bench/studies/photon_levels.py build/tessera IMAGE...

Each image, converted to gray and cut to at most 320 x 480 pixels, gets the noise of 20 and of 200 counts at white. Prints the PSNR in dB of the
noisy image, denoised with the right root mean square as --sigma, and denoised with --sigma auto.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from osgeo import gdal

gdal.UseExceptions()


def db(a, b):
    return -10 * np.log10(np.mean((np.float64(a) - b) ** 2))


def denoise(folder, noisy, sigma):
    np.save(folder / "in.npy", np.float32(noisy))
    subprocess.run([sys.argv[1], "denoise", folder / "in.npy", folder / "out.npy", "--range", "0,1", "--sigma", sigma, "--quiet", "--overwrite"], check=True)
    return np.load(folder / "out.npy")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    print("image        counts  noisy  one sigma  auto")
    for path in sys.argv[2:]:
        pixels = gdal.Open(path).ReadAsArray()
        clean = (pixels.mean(0) if pixels.ndim == 3 else pixels)[:320, :480] / 255
        for counts in (20, 200):
            noisy = np.random.default_rng(1).poisson(clean * counts) / counts
            one = denoise(folder, noisy, str(np.sqrt(clean.mean() / counts)))
            print(f"{pathlib.Path(path).stem:12} {counts:6} {db(noisy, clean):6.2f} {db(one, clean):10.2f} {db(denoise(folder, noisy, 'auto'), clean):5.2f}", flush=True)
