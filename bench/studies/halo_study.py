"""Finds how small the halo may be, for the table in src/model/halo.c.

    python bench/studies/halo_study.py --images kodak24 --weights models/drunet-color-small.safetensors ... > halo.jsonl

Prints for every weight file, noise level, tile and halo: the PSNR against the truth, tiled and whole, and the PSNR between the
two; gray networks get the luma. A halo is large enough for a tile if, on every image and at every noise level, the first two
differ by less than 0.01 dB; the table is based on `margin_db` of the worst image. Images are PNG (needs Pillow) or
uint8 NPY; the noise is numpy's, seeded by the level and the name of the image. `--only 3,7` uses only the images at these
indices: the worst ones found by a first pass over all of them.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile
import zlib

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
    command = [args.tessera, "denoise", folder, out, "--model", weights, "--sigma", str(sigma), "--quiet", "--json", "-",
               "--precision", args.precision]
    record = json.loads(subprocess.run(command + extra, check=True, capture_output=True, text=True).stdout)
    return record, [np.load(path) for path in sorted(pathlib.Path(out).glob("*.npy"))]


def channels_of(args, weights, work):
    command = [args.tessera, "convert", weights, work / "copy.safetensors", "--quiet", "--json", "-"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["convert"]["channels"]


def numbers(text):
    return [int(value) for value in text.split(",")]


def study(args, weights, sigma, paths, work):
    gray = channels_of(args, weights, work) == 1
    truths = [read_image(path, gray) for path in paths]
    noisy = work / f"noisy{sigma}"
    noisy.mkdir()
    for path, truth in zip(paths, truths):
        noise = np.random.default_rng([sigma, zlib.crc32(path.stem.encode())]).normal(0, sigma / 255, truth.shape)
        np.save(noisy / f"{path.stem}.npy", (truth + noise).astype(np.float32))
    _, whole = run(args, weights, sigma / 255, noisy, work / "whole", ["--tile", "whole"])
    base = [psnr(a, b) for a, b in zip(whole, truths)]
    tried = set()
    for tile in numbers(args.tiles):
        for halo in numbers(args.halos):
            record, tiled = run(args, weights, sigma / 255, noisy, work / "tiled",
                                ["--tile", str(tile), "--halo", str(halo), "--batch", "1"])
            real = (tuple(record["plan"]["tile"]), record["plan"]["halo"])
            if real in tried:
                continue
            tried.add(real)
            moved = [abs(psnr(a, b) - c) for a, b, c in zip(tiled, truths, base)]
            order = sorted(range(len(moved)), key=lambda i: -moved[i])
            print(json.dumps({"study": "halo", "engine": "tessera", "weights": pathlib.Path(weights).name,
                              "architecture": record["denoise"]["architecture"], "precision": args.precision,
                              "sigma": sigma, "images": len(paths), "tile": record["plan"]["tile"], "halo": real[1],
                              "psnr_whole_db": round(float(np.mean(base)), 4),
                              "margin_db": round(moved[order[0]], 5), "mean_db": round(float(np.mean(moved)), 5),
                              "worst": [paths[i].stem for i in order[:4]],
                              "tiled_to_whole_db": round(min(psnr(a, b) for a, b in zip(tiled, whole)), 2),
                              "enough": bool(moved[order[0]] < 0.01)}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default="build/tessera")
    parser.add_argument("--images", type=pathlib.Path, required=True)
    parser.add_argument("--weights", nargs="+", required=True)
    parser.add_argument("--halos", default="8,16,32,64,96")
    parser.add_argument("--sigmas", default="15,25,50")
    parser.add_argument("--tiles", default="32,64,96,128")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--only", help="places in the sorted list of images, from 0")
    args = parser.parse_args()
    paths = sorted(path for path in args.images.iterdir() if path.suffix in (".png", ".npy"))
    if args.only:
        paths = [paths[i] for i in sorted(numbers(args.only))]  # results are read in the order of their names
    for weights in args.weights:
        for sigma in numbers(args.sigmas):
            with tempfile.TemporaryDirectory() as name:
                study(args, weights, sigma, paths, pathlib.Path(name))


if __name__ == "__main__":
    main()
