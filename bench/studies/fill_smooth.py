"""Measures smooth fills of elevation maps beside gdal_fillnodata, by width of void, and fits the blend.

    python3 bench/studies/fill_smooth.py build/terrain_rates DATA          the table
    python3 bench/studies/fill_smooth.py build/terrain_rates DATA --fit    the constants of src/tensor/terrain/smooth.c

Voids of the generator are cut into 4 windows of up to 192 x 192 pixels of each map of DATA/dem_train; windows that are
nearly level or have voids of their own are left out. The table gives the root mean square error in the voids over that of
gdal_fillnodata (search distance 1000, no smoothing): "mean" is the geometric mean over windows, "all" is over all pixels of
the class together, and so is ruled by mountains. Numbers as kinds are bending lengths in widths of the void. "best" takes
the best kind of each window. Then come the maps of DATA/dem with their masks, in metres. Needs osgeo.
"""
import argparse
import pathlib
import struct
import subprocess

import numpy as np

import fill_peers

SIZE, WINDOWS = 192, 4
LENGTHS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64]
LAGS = [1, 2, 4, 8, 16, 32]
CLASSES = ["under 16", "16 to 64", "above 64", "all"]


def samples(program, data):
    files = sorted((data / "dem_train").glob("*.tif"))
    command = [program, "voids", str(SIZE), str(SIZE), str(len(files) * WINDOWS), "7"]
    voids = np.frombuffer(subprocess.run(command, check=True, capture_output=True).stdout, np.uint8).reshape(-1, SIZE, SIZE) > 0
    random = np.random.default_rng(5)
    for number, path in enumerate(files):
        heights, bad, _ = fill_peers.read(path)
        h, w = min(SIZE, heights.shape[0]), min(SIZE, heights.shape[1])
        for i in range(WINDOWS):
            for _ in range(20):
                y, x = random.integers(0, heights.shape[0] - h + 1), random.integers(0, heights.shape[1] - w + 1)
                part = heights[y:y + h, x:x + w]
                mask = voids[number * WINDOWS + i][:h, :w]
                if not bad[y:y + h, x:x + w].any() and part.std() >= 0.5 and (part == 0).mean() <= 0.3 and mask.any():
                    yield path.stem, part.copy(), mask
                    break


def fill(program, windows, kinds):
    """[(width, {kind: (seconds, heights)})] of windows (name, heights, voids)."""
    text = b"".join(struct.pack("qq", *z.shape) + np.where(m, 0, z).astype(np.float32).tobytes() + m.astype(np.uint8).tobytes()
                    for _, z, m in windows)
    out = subprocess.run([program, "fill", ",".join(kinds)], input=text, check=True, capture_output=True).stdout
    at, results = 0, []
    for _, z, _ in windows:
        width, fills = struct.unpack_from("d", out, at)[0], {}
        at += 8
        for kind in kinds:
            fills[kind] = struct.unpack_from("d", out, at)[0], np.frombuffer(out, np.float32, z.size, at + 8).reshape(z.shape)
            at += 8 + 4 * z.size
        results.append((width, fills))
    return results


def rmse(fill, truth, mask):
    return max(float(np.sqrt(np.mean((fill - truth)[mask].astype(float) ** 2))), 0.01)


def scores(errors, against, pixels):
    mean = np.exp(np.mean(np.log(errors / against)))
    return mean, np.sqrt((errors ** 2 * pixels).sum() / (against ** 2 * pixels).sum())


def table(program, data, windows):
    kinds = ["membrane", "0.02", "0.08", "0.32", "biharmonic", "blend"]
    results = fill(program, windows, kinds)
    widths = np.array([width for width, _ in results])
    pixels = np.array([mask.sum() for _, _, mask in windows])
    errors = np.array([[rmse(fills[kind][1], z, m) for kind in kinds] for (_, z, m), (_, fills) in zip(windows, results)])
    against = np.array([rmse(fill_peers.gdal_fill(z, m), z, m) for _, z, m in windows])
    which = np.digitize(widths, [16, 64.0001])
    print("width     windows      ", *(f"{kind[:9]:>9}" for kind in kinds), "     best")
    for number, name in enumerate(CLASSES):
        chosen = which == number if number < 3 else which >= 0
        columns = [scores(errors[chosen, k], against[chosen], pixels[chosen]) for k in range(len(kinds))]
        columns.append(scores(errors[chosen].min(1), against[chosen], pixels[chosen]))
        for row, label in enumerate(("mean", "all")):
            print(f"{name:9} {chosen.sum():7} {label:5}", *(f"{column[row]:9.3f}" for column in columns))
    seconds = np.array([[fills[kind][0] for kind in kinds] for _, fills in results])
    print("milliseconds           ", *(f"{1e3 * s:9.2f}" for s in seconds.mean(0)))
    squares = lambda values, chosen: np.sqrt((values[chosen] ** 2 * pixels[chosen]).sum())
    peers = (errors[:, kinds.index("membrane")], errors[:, kinds.index("biharmonic")], against)
    ratios = [squares(errors[:, -1], which == c) / min(squares(e, which == c) for e in peers) for c in range(3)]
    print("blend / best of membrane, biharmonic and gdal_fillnodata, over all pixels of a class:", *(f"{r:.3f}" for r in ratios))
    maps = []
    for name in ("city01", "land01", "land02"):
        mask = fill_peers.gdal.Open(str(data / "dem" / f"{name}mask.png")).ReadAsArray()
        maps.append((name, fill_peers.read(data / "dem" / f"{name}.tif")[0], (mask[0] if mask.ndim == 3 else mask) > 0))
    for (name, z, m), (width, fills) in zip(maps, fill(program, maps, kinds)):
        print(f"{name}, width {width:.0f}", " ", *(f"{rmse(fills[kind][1], z, m):9.2f}" for kind in kinds), f"  gdal_fillnodata {rmse(fill_peers.gdal_fill(z, m), z, m):.2f}")


def second_differences(heights, voids, lag):
    squares = []
    for z, m in ((heights, voids), (heights.T, voids.T)):
        if len(z) > 2 * lag:
            z = z.astype(float)
            good = ~(m[2 * lag:] | m[lag:-lag] | m[:-2 * lag])
            squares.append((z[2 * lag:] - 2 * z[lag:-lag] + z[:-2 * lag])[good] ** 2)
    squares = np.concatenate(squares) if squares else np.zeros(0)
    return squares.mean() if len(squares) >= 16 else np.nan


def fit(program, windows):
    """Length = width * 2^(a + b (exponent - 1)), where the exponent is the mean of the one at a part of the width and of the one
    at 2 pixels: the a and b with the smallest product of both scores over the classes. A few mountains rule the scores over
    all pixels: prefer a fit that is good for most."""
    kinds = ["membrane", *map(str, LENGTHS), "biharmonic"]
    results = fill(program, windows, kinds)
    widths = np.array([width for width, _ in results])
    pixels = np.array([mask.sum() for _, _, mask in windows])
    logs = np.log([[rmse(fills[kind][1], z, m) for kind in kinds] for (_, z, m), (_, fills) in zip(windows, results)])
    against = np.array([rmse(fill_peers.gdal_fill(z, m), z, m) for _, z, m in windows])
    rough = np.array([[second_differences(z, m, lag) for lag in LAGS] for _, z, m in windows])
    slopes = np.log2(np.maximum(rough[:, 1:], 1e-6) / np.maximum(rough[:, :-1], 1e-6)) / 2
    which = np.digitize(widths, [16, 64.0001])
    rows, found = np.arange(len(windows)), []
    for divisor in (4, 6, 8, 12, 16):
        octave = np.clip(np.log2(np.maximum(widths / divisor, 1)), 0, 3.999)
        low = octave.astype(int)
        near, far = np.nan_to_num(slopes[rows, low], nan=1), slopes[rows, low + 1]
        exponent = near + (octave - low) * (np.where(np.isfinite(far), far, near) - near)
        exponent = (exponent + np.nan_to_num(slopes[:, 1], nan=1)) / 2
        for a in np.arange(-4, 0.6, 0.5):
            for b in (0, 2, 4, 6, 8, 10, 12, 16):
                place = np.clip(a + b * (exponent - 1) - np.log2(LENGTHS[0] / 2), 0, len(kinds) - 1.001)
                low, part = place.astype(int), place % 1
                errors = np.exp((1 - part) * logs[rows, low] + part * logs[rows, low + 1])
                product = np.prod([scores(errors[which == c], against[which == c], pixels[which == c]) for c in range(3)])
                found.append((product, *scores(errors, against, pixels), divisor, a, b))
    print("lag = width /   a    b     mean   all")
    for _, mean, pooled, divisor, a, b in sorted(found)[:8]:
        print(f"{divisor:11} {a:5.1f} {b:4} {mean:8.3f} {pooled:5.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    windows = list(samples(options.program, options.data))
    if options.fit:
        fit(options.program, windows)
    else:
        table(options.program, options.data, windows)


main()
