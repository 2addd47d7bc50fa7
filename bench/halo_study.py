"""How small may the halo be? The study behind the table in src/model/halo.c.

    python bench/halo_study.py --images kodak24 --weights models/drunet-color-small.safetensors ... > halo.jsonl

For every weight file, noise level and halo: the PSNR against the truth, tiled and whole, and the PSNR between the two,
over all images; gray networks get the luma. A halo will do when the first two differ by less than 0.01 dB and the third
is above 55 dB at every noise level. Images are PNG (needs Pillow) or uint8 NPY; the noise is numpy's, seeded.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import numpy as np


def read_image(path, gray):
    if path.suffix == ".npy":
        image = np.load(path)
    else:
        from PIL import Image
        image = np.asarray(Image.open(path).convert("RGB"))
    image = image.astype(np.float32)
    if gray:
        image = np.rint(image @ np.array([0.299, 0.587, 0.114], np.float32))
    return image / 255


def psnr(a, b):
    error = np.mean((np.clip(a, 0, 1).astype(np.float64) - np.clip(b, 0, 1)) ** 2)
    return 200.0 if error == 0 else -10 * math.log10(error)


def run(args, weights, sigma, folder, out, extra):
    command = [args.tessera, "denoise", folder, out, "--model", weights, "--sigma", str(sigma), "--quiet", "--json", "-"]
    record = json.loads(subprocess.run(command + extra, check=True, capture_output=True, text=True).stdout)
    return record, [np.load(path) for path in sorted(pathlib.Path(out).glob("*.npy"))]


def channels_of(args, weights, work):
    command = [args.tessera, "convert", weights, work / "copy.safetensors", "--quiet", "--json", "-"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["convert"]["channels"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--images", type=pathlib.Path, required=True)
    parser.add_argument("--weights", nargs="+", required=True)
    parser.add_argument("--halos", default="4,8,12,16,24,32,48,64")
    parser.add_argument("--sigmas", default="15,25,50")
    parser.add_argument("--tile", default="128")
    args = parser.parse_args()
    paths = sorted(path for path in args.images.iterdir() if path.suffix in (".png", ".npy"))
    for weights in args.weights:
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            tried = set()
            gray = channels_of(args, weights, work) == 1
            for sigma in [int(value) for value in args.sigmas.split(",")]:
                truths = [read_image(path, gray) for path in paths]
                noisy = work / f"noisy{sigma}"
                noisy.mkdir()
                for index, truth in enumerate(truths):
                    noise = np.random.default_rng([sigma, index]).normal(0, sigma / 255, truth.shape)
                    np.save(noisy / f"{index:03d}.npy", (truth + noise).astype(np.float32))
                _, whole = run(args, weights, sigma / 255, noisy, work / "whole", ["--tile", "whole"])
                base = np.mean([psnr(a, b) for a, b in zip(whole, truths)])
                for halo in [int(value) for value in args.halos.split(",")]:
                    record, tiled = run(args, weights, sigma / 255, noisy, work / "tiled",
                                        ["--tile", args.tile, "--halo", str(halo)])
                    real = record["plan"]["halo"]
                    if (sigma, real) in tried:
                        continue
                    tried.add((sigma, real))
                    to_truth = np.mean([psnr(a, b) for a, b in zip(tiled, truths)])
                    to_whole = np.mean([psnr(a, b) for a, b in zip(tiled, whole)])
                    print(json.dumps({"study": "halo", "engine": "tessera", "weights": pathlib.Path(weights).name,
                                      "architecture": record["denoise"]["architecture"], "sigma": sigma, "halo": real,
                                      "tile": record["plan"]["tile"], "psnr_whole_db": round(base, 4),
                                      "psnr_tiled_db": round(to_truth, 4), "tiled_to_whole_db": round(to_whole, 2),
                                      "enough": bool(abs(base - to_truth) < 0.01 and to_whole > 55)}), flush=True)


if __name__ == "__main__":
    main()
