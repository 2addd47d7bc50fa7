"""Measures the error of the blind noise estimate: runs noise_rates over sets of images and prints a table, or fits the formula.

    python3 bench/studies/noise_study.py build/noise_rates DATA              the table over kodak24, bsd68 and photo
    python3 bench/studies/noise_study.py build/noise_rates DATA --photons    the same for photon noise, gray images
    python3 bench/studies/noise_study.py build/noise_rates DATA --fit        the constants of src/tensor/noise_fit.c

The table has a line for each set, level and kind of noisy image: as float, or clipped and rounded to 8 bits. Errors are
relative to the noise that was added, in percent: of the image (root mean square over channels) and of single channels.
"own" is the error against sqrt(sigma^2 + own^2), where own is the estimate for the image without added noise.
The fit uses only images of bsd400_color, none of which is in the sets of the table, and images of pure noise.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

LEVELS = [5, 10, 15, 25, 35, 50]
COUNTS = [20, 50, 200, 1000]  # at white
SETS = ["kodak24", "bsd68", "photo"]


def run(program, options, levels, files):
    command = [program, *options, ",".join(map(str, levels)), *map(str, files)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def images(folder):
    return sorted(path for path in folder.iterdir() if path.suffix in (".png", ".jpg"))


def table(program, data, sets):
    print("set      noisy  sigma  images  mean%  mean|%|  worst%  >10%  own:mean% own:>10%  channels:worst% >10%  gain>0 rough")
    for name in sets:
        files = images(data / name)
        own = {r["image"]: r["overall"] for r in run(program, ["--clip"], [0], files)}
        for options, kind in (([], "float"), (["--clip"], "8 bit")):
            records = run(program, options, LEVELS, files)
            for level in LEVELS:
                chosen = [r for r in records if r["sigma"] == level]
                error = np.array([100 * (r["overall"] / level - 1) for r in chosen])
                truth = np.array([np.hypot(level, own[r["image"]]) for r in chosen])
                against = np.array([100 * (r["overall"] / t - 1) for r, t in zip(chosen, truth)])
                single = np.array([100 * (c["sigma"] / level - 1) for r in chosen for c in r["channels"]])
                gains = sum(c["gain"] > 0 for r in chosen for c in r["channels"])
                rough = sum(r["confidence"] < 2 for r in chosen)
                worst = error[np.argmax(abs(error))]
                print(f"{name:8} {kind:6} {level:5} {len(chosen):7} {error.mean():6.2f} {abs(error).mean():8.2f} {worst:7.2f} "
                      f"{(abs(error) > 10).sum():5} {against.mean():9.2f} {(abs(against) > 10).sum():8} "
                      f"{single[np.argmax(abs(single))]:16.2f} {(abs(single) > 10).sum():4} {gains:7} {rough:5}", flush=True)


def photons(program, data, sets):
    print("set      counts  images  mean%  mean|%|  worst%  >10%  of them sure  gain found  its mean error%  rough")
    for name in sets:
        records = run(program, ["--photons", "--gray"], COUNTS, images(data / name))
        for counts in COUNTS:
            chosen = [r for r in records if r["sigma"] == counts]
            error = np.array([100 * (r["overall"] / r["truth"] - 1) for r in chosen])
            sure = np.array([r["confidence"] == 2 for r in chosen])
            gains = np.array([r["channels"][0]["gain"] for r in chosen])
            off = 100 * np.mean(abs(gains[gains > 0] * counts - 1)) if (gains > 0).any() else 0
            print(f"{name:8} {counts:6} {len(chosen):7} {error.mean():6.2f} {abs(error).mean():8.2f} {error[np.argmax(abs(error))]:7.2f} "
                  f"{(abs(error) > 10).sum():5} {((abs(error) > 10) & sure).sum():13} {(gains > 0).sum():11} {off:16.1f} {(~sure).sum():6}", flush=True)


def terms(features):
    """As in noise_fit.c: the six log ratios, and two of them where they exceed what noise alone gives."""
    return np.hstack([features, np.maximum(features[:, :1] + 0.53, 0), np.maximum(features[:, 3:4] - 0.04, 0), np.ones((len(features), 1))])


def fit(program, data):
    files = images(data / "bsd400_color")
    with tempfile.TemporaryDirectory() as folder:
        flat = []
        for i, (height, width) in enumerate([(481, 321), (200, 200), (500, 500), (128, 128)] * 4):
            flat.append(pathlib.Path(folder) / f"{i:02}.npy")
            np.save(flat[-1], np.full((height, width), 0.5, np.float32))
        records = run(program, ["--features"], [5], flat) * 10
    records += run(program, ["--features", "--gray"], [3, 5, 8, 14, 30], files[1::2])
    records += run(program, ["--features"], [3, 5, 10], files[0::6])
    rows = [(2 * np.log(r["sigma"] / c[0]), *c[1:]) for r in records for c in r["channels"]]
    wanted, design = np.array(rows)[:, 0], terms(np.array(rows)[:, 1:])
    weight = np.ones(len(wanted))
    for _ in range(30):  # Huber's loss: photographs with much noise of their own must not count fully
        scaled = design * weight[:, None]
        answer = np.linalg.solve(scaled.T @ design + 1e-2 * np.eye(design.shape[1]), scaled.T @ wanted)
        weight = np.minimum(1, 0.15 / np.maximum(abs(design @ answer - wanted), 1e-6))
    print("error of the logarithm of sigma:", np.sqrt(np.mean(((design @ answer - wanted) / 2) ** 2)))
    print("weights:", ", ".join(f"{x:.3f}" for x in answer[:-1]), " offset:", f"{answer[-1]:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--photons", action="store_true")
    parser.add_argument("--sets", nargs="+", default=SETS)
    args = parser.parse_args()
    if args.fit:
        fit(args.program, args.data)
    elif args.photons:
        photons(args.program, args.data, args.sets)
    else:
        table(args.program, args.data, args.sets)


main()
