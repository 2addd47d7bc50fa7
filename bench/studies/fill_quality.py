"""Compares filled elevation maps with the truth, by width of void, in one run beside other programs.

    python3 bench/studies/fill_quality.py build/tessera DATA [--model M] [--json FILE] [--keep FOLDER]

Cases: the three maps of DATA/dem with their masks, and voids of the generator cut into windows of 192 x 192 pixels of the
maps of DATA/dem_train that models/training/dem-held.txt names: whole sources, which no model may be trained on. Each map gets
--draws voids of each class of width. Ours: `tessera fill` with a model (the mean of 8 samples), and the blend of smooth fills. Others:
the membrane, the biharmonic fill, gdal_fillnodata without and with 3 smoothings (search distance 1000), and r.fillnulls of
GRASS (rst, bicubic) where it is installed.

Errors are in metres, and in degrees for the slope. "all" takes the pixels of all windows together, so that mountains rule it; "mean" is the
geometric mean over windows, with errors below 1 cm counted as 1 cm. Pixels count in the class of the void they lie in. The factor
of the deviation is fitted so that 90 % of the void pixels of the maps in models/training/dem-validation.txt lie within mean +- 1.645 *
factor * deviation; then the share is counted in the cases. --keep keeps all fills and takes those that are there, so that a model's fills
can be made on another machine (--only-model) and slow peers run once. Needs osgeo; build/terrain_rates is taken from beside PROGRAM.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import zlib

import numpy as np
from osgeo import gdal

import fill_peers as peers

SIZE, POOL = 192, 400
CLASSES = ["under 16 px", "16 to 64 px", "above 64 px"]  # as the records of terrain_rates name them
LISTS = pathlib.Path(__file__).resolve().parents[2] / "models" / "training"
OURS = ("model", "blend")
AGAINST = "gdal"
LEAST = 0.01


def void_pool(rates, seed):
    """Voids of the generator by the class of their widest."""
    out = subprocess.run([rates, "voids", str(SIZE), str(SIZE), str(POOL), str(seed)], check=True, capture_output=True).stdout
    pool = np.frombuffer(out, np.uint8).reshape(-1, SIZE, SIZE) > 0
    flat = np.zeros((SIZE, SIZE), np.float32)
    widths = peers.smooth(rates, [("", flat, m, (1, 1)) for m in pool], ["membrane"])[1]
    return [pool[np.digitize(widths, [16, 64.0001]) == c] for c in range(3)]


def cut(rates, data, names, draws, seed):
    """Cases of 3 classes * draws for each map."""
    pool, cases, used = void_pool(rates, seed), [], [0, 0, 0]
    for name in names:
        heights, bad, pixel = peers.read(data / "dem_train" / name)
        random = np.random.default_rng(zlib.crc32(name.encode()) + seed)
        for which in range(3):
            for draw in range(draws):
                for _ in range(50):
                    y, x = random.integers(0, heights.shape[0] - SIZE + 1), random.integers(0, heights.shape[1] - SIZE + 1)
                    part = heights[y:y + SIZE, x:x + SIZE]
                    if not bad[y:y + SIZE, x:x + SIZE].any() and part.std() >= 0.5 and (part == 0).mean() <= 0.3:
                        voids = pool[which][used[which] % len(pool[which])]
                        used[which] += 1
                        cases.append((f"{pathlib.Path(name).stem}.{which}{draw}", part.copy(), voids, pixel))
                        break
        if not cases or not cases[-1][0].startswith(pathlib.Path(name).stem + "."):
            print(f"{name}: no window of {SIZE} x {SIZE} pixels without voids, sea and plains; left out")
    return cases


def real_maps(data):
    for path in sorted((data / "dem").glob("*.tif")):
        mask = gdal.Open(str(path.with_name(path.stem + "mask.png"))).ReadAsArray()
        heights, _, pixel = peers.read(path)
        yield path.stem, heights, (mask[0] if mask.ndim == 3 else mask) > 0, pixel


def fill_all(options, rates, cases, folder):
    """{method: fills} and the deviations of the model, or None."""
    fills, deviations = {}, None
    if options.model:
        fills["model"], deviations = peers.model(options.program, cases, folder, model_options(options), options.jobs)
    fills.update(peers.smooth(rates, cases, ["blend", "membrane", "biharmonic"])[0])
    fills["gdal"] = [peers.gdal_fill(z, m) for _, z, m, _ in cases]
    fills["gdal smooth 3"] = [peers.gdal_fill(z, m, 3) for _, z, m, _ in cases]
    fills.update(peers.grass(cases, folder, 0 if options.no_grass else options.jobs))
    return fills, deviations


def model_options(options):
    return ["--model", options.model, "--samples", str(options.samples), *options.fill_options.split()]


def measure(rates, cases, fills):
    """{method: array of cases x (3 classes and all) x (pixels, rmse, mae, slope)}; NaN where there is nothing."""
    table = {}
    for method, results in fills.items():
        rows = np.full((len(cases), 4, 4), np.nan)
        found = [i for i, fill in enumerate(results) if fill is not None]
        if len(found) < len(cases):
            print(f"{method}: {len(cases) - len(found)} of {len(cases)} cases have no result and are left out for it")
        records = peers.errors(rates, [cases[i] for i in found], [results[i] for i in found])
        for i, record in zip(found, records):
            for c, key in enumerate((*CLASSES, "all")):
                if key in record:
                    rows[i, c] = [record[key][k] for k in ("pixels", "rmse", "mae", "slope_mae")]
        table[method] = rows
    return table


def pooled(rows):
    """rmse, mae, slope over all pixels of the cases."""
    rows = rows[np.isfinite(rows[:, 0])]
    pixels = rows[:, 0]
    if not len(rows):
        return np.full(3, np.nan)
    weigh = lambda values: (values * pixels)[np.isfinite(values)].sum() / pixels[np.isfinite(values)].sum()
    return np.array([np.sqrt(weigh(rows[:, 1] ** 2)), weigh(rows[:, 2]), weigh(rows[:, 3])])


def ratios(rows, against):
    """Over all pixels and as geometric mean over windows, where both have a result."""
    both = np.isfinite(rows[:, 1]) & np.isfinite(against[:, 1])
    if not both.any():
        return np.nan, np.nan
    logs = np.log(np.maximum(rows[both, 1], LEAST) / np.maximum(against[both, 1], LEAST))
    return pooled(rows[both])[0] / pooled(against[both])[0], np.exp(logs.mean())


def print_tables(table, title):
    methods = list(table)
    print(f"\n{title}")
    print(f"{'width':11} {'cases':>5} {'pixels':>8} {'':13}", *(f"{m:>13}" for m in methods))
    for c, name in enumerate((*CLASSES, "all")):
        against = table[AGAINST][:, c]
        here = np.isfinite(against[:, 0])
        if not here.any() or (len(here) == 1 and name == "all"):
            continue
        head = f"{name:11} {here.sum():5} {int(against[here, 0].sum()):8}"
        sums = np.array([pooled(table[m][:, c]) for m in methods])
        scores = np.array([ratios(table[m][:, c], against) for m in methods])
        for k, label in enumerate(("RMSE", "MAE", "slope")):
            print(head if k == 0 else " " * len(head), f"{label:13}", *(f"{v:13.3f}" for v in sums[:, k]))
        for k, label in enumerate(("/ gdal, all", "/ gdal, mean")):
            print(" " * len(head), f"{label:13}", *(f"{v:13.3f}" for v in scores[:, k]))
        for k, label in enumerate(("all", "mean")):
            best = min((m for m in methods if m not in OURS), key=lambda m: scores[methods.index(m), k])
            own = [f"{m} {scores[methods.index(m), k] / scores[methods.index(best), k]:.3f}" for m in OURS if m in methods]
            print(" " * len(head), f"/ best of others, {label} ({best}):", ", ".join(own))


def print_lines(path, cases, table):
    with open(path, "w") as file:
        for method, rows in table.items():
            for (name, *_), row in zip(cases, rows):
                for c, label in enumerate((*CLASSES, "all")):
                    if np.isfinite(row[c, 0]):
                        keys = dict(zip(("pixels", "rmse", "mae", "slope_mae"), map(float, row[c])))
                        print(json.dumps({"case": name, "method": method, "width": label, **keys}), file=file)


def spreads(cases, means, deviations):
    """|error| / deviation at the void pixels of each case."""
    return [np.abs(mean - z)[m] / np.maximum(deviation[m], 1e-6) for (_, z, m, _), mean, deviation in zip(cases, means, deviations)]


def print_coverage(options, rates, cases, fills, deviations, folder):
    if options.factor:
        factor, text = options.factor, "given"
    else:
        names = (LISTS / "dem-validation.txt").read_text().split()
        maps = cut(rates, options.data, names, options.draws, 29)
        fitted = spreads(maps, *peers.model(options.program, maps, folder, model_options(options), options.jobs))
        factor = float(np.quantile(np.concatenate(fitted), 0.9)) / 1.645
        text = f"fitted on {len(maps)} windows of {len(names)} validation maps"
    parts = spreads(cases, fills["model"], deviations)
    inside = lambda some: 100 * np.mean(np.concatenate(some) < 1.645 * factor)
    print(f"\nfactor of the deviation {factor:.3f} ({text}); within the 90 % interval: all {inside(parts):.1f} %", end="")
    for c, name in enumerate(CLASSES):
        some = [part for (case, *_), part in zip(cases, parts) if case.split(".")[-1][0] == str(c) and "." in case]
        if some:
            print(f", {name} {inside(some):.1f} %", end="")
    print(", without the factor", f"{100 * np.mean(np.concatenate(parts) < 1.645):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--model")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--fill-options", default="", help="more options of `tessera fill`, in one string")
    parser.add_argument("--factor", type=float, help="of the deviation; 0 (default) fits it")
    parser.add_argument("--draws", type=int, default=1, help="voids of each class and map")
    parser.add_argument("--maps", help="a file with names of maps instead of dem-held.txt")
    parser.add_argument("--jobs", type=int, default=1, help="runs of `tessera fill` and of GRASS at a time")
    parser.add_argument("--no-grass", action="store_true", help="run no GRASS; its fills in --keep are used")
    parser.add_argument("--only-model", action="store_true", help="make the model's fills in --keep and stop")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all fills")
    parser.add_argument("--json", help="a file for one line a case, method and class")
    options = parser.parse_args()
    rates = str(pathlib.Path(options.program).resolve().with_name("terrain_rates"))
    names = (pathlib.Path(options.maps) if options.maps else LISTS / "dem-held.txt").read_text().split()
    held, real = cut(rates, options.data, names, options.draws, 17), list(real_maps(options.data))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        cases = held + real
        if options.only_model:
            maps = cut(rates, options.data, (LISTS / "dem-validation.txt").read_text().split(), options.draws, 29)
            peers.model(options.program, cases + maps, folder, model_options(options), options.jobs)
            return
        fills, deviations = fill_all(options, rates, cases, folder)
        table = measure(rates, cases, fills)
        found = {case[0].split(".")[0] for case in held}
        print_tables({m: rows[:len(held)] for m, rows in table.items()}, f"{len(held)} windows of {len(found)} maps, metres and degrees")
        for i, (name, *_) in enumerate(real):
            print_tables({m: rows[len(held) + i:len(held) + i + 1] for m, rows in table.items()}, name)
        print_tables(table, "all of them")
        if options.json:
            print_lines(options.json, cases, table)
        if options.model:
            print_coverage(options, rates, cases, fills, deviations, folder)


main()
