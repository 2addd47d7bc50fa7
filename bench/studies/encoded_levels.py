"""Measures the estimate of the noise in photographs as cameras write them. Needs numpy and GDAL's Python module.

    python3 bench/studies/encoded_levels.py build/tessera IMAGE...

Each colour image, reduced by 2, gets photon and read noise in linear light (150 photons at white and read noise of 2; 1000 and 4), and is encoded in
sRGB in 8 bits. Prints the estimate relative to the root mean square of the noise, its confidence, and the PSNR in dB of the noisy image, denoised with
the right root mean square as --sigma, and denoised with --sigma auto.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from osgeo import gdal

gdal.UseExceptions()


def db(a, b):
    return -10 * np.log10(np.mean((a / 255 - b) ** 2))


def denoise(folder, noisy, sigma):
    np.save(folder / "in.npy", noisy)
    subprocess.run([sys.argv[1], "denoise", folder / "in.npy", folder / "out.npy", "--sigma", sigma, "--quiet", "--overwrite", "--json", folder / "record.json"], check=True)
    return np.load(folder / "out.npy"), json.loads((folder / "record.json").read_text())["denoise"]["files"][0]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    print("image        photons  estimate        noisy  one sigma  auto")
    for path in sys.argv[2:]:
        pixels = gdal.Open(path).ReadAsArray()[:3] / 255
        height, width = pixels.shape[1] // 2, pixels.shape[2] // 2
        clean = pixels[:, :2 * height, :2 * width].reshape(3, height, 2, width, 2).mean((2, 4)).transpose(1, 2, 0)
        light = np.where(clean <= 0.04045, clean / 12.92, ((clean + 0.055) / 1.055) ** 2.4)
        for photons, read in ((150, 2), (1000, 4)):
            random = np.random.default_rng(1)
            seen = np.clip((random.poisson(light * photons) + random.normal(0, read, light.shape)) / photons, 0, 1)
            noisy = np.rint(255 * np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)).astype(np.uint8)
            rms = np.sqrt(np.mean((noisy / 255 - clean) ** 2))
            one, _ = denoise(folder, noisy, str(rms))
            auto, entry = denoise(folder, noisy, "auto")
            print(f"{pathlib.Path(path).stem:12} {photons:7}  {entry['sigma'] / rms:8.2f} {entry['confidence']:5} {db(noisy, clean):6.2f} {db(one, clean):10.2f} {db(auto, clean):5.2f}", flush=True)
