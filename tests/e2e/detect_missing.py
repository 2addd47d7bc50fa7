"""detect_missing.py PROGRAM: pixels that have no value because a mask hides them, or because they are one usual mark in all bands, are left out of statistics and
scores as NaN and declared nodata are; zeros that are spectra stay."""
import json
import sys

import numpy as np

from support import Bench

BANDS, H, W = 12, 60, 50
GRAPHS = {"rx": [{"kind": "rx", "eps": 0}], "snv": [{"kind": "snv"}, {"kind": "rx"}], "local": [{"kind": "rx", "over": "local", "inner": 3, "outer": 9}],
          "minmax": [{"kind": "minmax", "over": "image"}, {"kind": "rx"}]}


class Quiet(Bench):
    """Prints only what does not hold."""

    def check(self, good, text):
        return bool(good) or super().check(False, text)


def cube(seed=3, dtype=np.int16, bands=BANDS):
    rng = np.random.default_rng(seed)
    return np.rint(900 + 40 * np.cumsum(rng.normal(0, 1, (H, W, bands)), -1) + rng.normal(0, 15, (H, W, bands))).clip(1, 30000).astype(dtype)


def corners():
    """The collar of a turned scene."""
    y, x = np.mgrid[:H, :W]
    return (y + 2 * x < 25) | (y + 2 * x > H + 2 * W - 30)


def block():
    hidden = np.zeros((H, W), bool)
    hidden[20:30, 12:31] = True
    return hidden


def filled(image, hidden, value, dtype=None):
    out = image.astype(dtype or image.dtype)
    out[hidden] = value
    return out


def detect(bench, source, *options, out="s.npy"):
    """Scores, the record and what was said."""
    result = bench.run("detect", source, bench.path(out), "--json", bench.path("r.json"), *options)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return np.zeros((H, W), np.float32), {"input": {}, "detect": {}}, ""
    return np.load(bench.path(out)) if out.endswith(".npy") else None, json.loads(bench.path("r.json").read_text()), result.err


def saved(bench, image, name="in.npy"):
    np.save(bench.path(name), image)
    return bench.path(name)


def write_graphs(bench):
    for name, nodes in GRAPHS.items():
        bench.path(f"{name}.json").write_text(json.dumps({"nodes": nodes}))


def same(a, b):
    return np.array_equal(np.isnan(a), np.isnan(b)) and np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


# --- masks ----------------------------------------------------------------------------------------------------------------

def write_tif(path, image, hidden=None, inside=True, each=False, nodata=None, options=()):
    from osgeo import gdal
    gdal.UseExceptions()
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES" if inside else "NO")
    kind = {"int16": gdal.GDT_Int16, "float32": gdal.GDT_Float32, "uint8": gdal.GDT_Byte}[image.dtype.name]
    d = gdal.GetDriverByName("ENVI" if path.suffix == ".img" else "GTiff").Create(str(path), image.shape[1], image.shape[0], image.shape[2], kind, list(options))
    for b in range(image.shape[2]):
        d.GetRasterBand(b + 1).WriteArray(image[..., b])
        if nodata is not None:
            d.GetRasterBand(b + 1).SetNoDataValue(nodata)
    if hidden is not None and not each:
        d.CreateMaskBand(gdal.GMF_PER_DATASET)
        d.GetRasterBand(1).GetMaskBand().WriteArray(np.where(hidden, 0, 255).astype(np.uint8))
    del d
    if each:  # a mask for every band; that of the sixth hides
        d = gdal.GetDriverByName("GTiff").Create(f"{path}.msk", image.shape[1], image.shape[0], image.shape[2], gdal.GDT_Byte)
        for b in range(image.shape[2]):
            d.SetMetadataItem(f"INTERNAL_MASK_FLAGS_{b + 1}", "0")
            d.GetRasterBand(b + 1).WriteArray(np.where(hidden & (b == 5), 0, 255).astype(np.uint8))
        del d
    gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", None)
    return path


def test_masks(bench):
    try:
        from osgeo import gdal  # noqa: F401
    except ImportError:
        return print("GDAL's Python module is not there: no masks of GDAL's")
    image, hidden = cube(), corners() | block()
    wild = filled(image, hidden, 0)
    wild[hidden] = np.random.default_rng(8).integers(-20000, 20000, (hidden.sum(), BANDS))
    for graph in GRAPHS:
        graph_of = ("--pipeline", bench.path(f"{graph}.json"))
        nodata = detect(bench, write_tif(bench.path("nodata.tif"), filled(image, hidden, -9999), nodata=-9999), *graph_of)[0]
        bench.check(np.array_equal(np.isnan(nodata), hidden), f"{graph}: declared nodata has no score")
        for name, more in (("inside.tif", {}), ("beside.tif", {"inside": False}), ("beside.img", {"inside": False, "options": ["INTERLEAVE=BIP"]}), ("band.tif", {"inside": False, "each": True}),
                           ("both.tif", {"nodata": -30000}), ("tiled.tif", {"options": ["TILED=YES", "BLOCKXSIZE=16", "BLOCKYSIZE=16", "INTERLEAVE=PIXEL"]})):
            scores, record, said = detect(bench, write_tif(bench.path(name), wild, hidden, **more), *graph_of)
            bench.check(np.array_equal(scores, nodata, equal_nan=True), f"{graph}, {name}: the scores of declared nodata, bit for bit")
            bench.check(record["detect"].get("pixels_without_score") == hidden.sum() and "undeclared" not in record["input"], f"{graph}, {name}: counted: {record['detect']} {said}")
            plan, peak = record["plan"]["peak_bytes"], record["measured"]["peak_bytes"]
            bench.check(plan["total"] >= peak["total"], f"{graph}, {name}: planned {plan}, counted {peak}")
    overlay = [bench.path(n) for n in ("a.png", "b.png")]
    for path, name in zip(overlay, ("nodata.tif", "inside.tif")):
        detect(bench, bench.path(name), "--overlay", path)
    bench.check(overlay[0].read_bytes() == overlay[1].read_bytes(), "the overlay is stretched without what the mask hides")


def test_truth_of_one_bit(bench):
    try:
        from osgeo import gdal
    except ImportError:
        return
    truth = block()
    saved(bench, truth.astype(np.uint8), "truth.npy")
    wanted = detect(bench, saved(bench, cube()), "--truth", bench.path("truth.npy"))[1].get("quality")
    for options in ([], ["PHOTOMETRIC=MINISWHITE"], ["COMPRESS=CCITTFAX4"]):
        d = gdal.GetDriverByName("GTiff").Create(str(bench.path("bit.tif")), W, H, 1, gdal.GDT_Byte, ["NBITS=1", *options])
        d.GetRasterBand(1).WriteArray(truth.astype(np.uint8))
        del d
        bench.check(detect(bench, bench.path("in.npy"), "--truth", bench.path("bit.tif"))[1].get("quality") == wanted, f"a truth of one bit {options}")


# --- undeclared marks -------------------------------------------------------------------------------------------------------

def test_marks(bench):
    image, collar = cube(), corners()
    for dtype, value in ((np.int16, -9999), (np.int16, -32768), (np.float32, 1e20), (np.float32, -3.4028235e38), (np.float64, -99999), (np.int16, 0), (np.uint16, 65535), (np.float32, 0),
                         (np.int32, 32767), (np.uint8, 0)):
        plain = (image / 12).clip(1, 254) if dtype == np.uint8 else image
        source = plain.astype(dtype)
        for hidden in (collar, block()):
            right = detect(bench, saved(bench, filled(source, hidden, np.nan, np.float64 if dtype == np.float64 else np.float32)), "--pipeline", bench.path("rx.json"))[0]
            scores, record, said = detect(bench, saved(bench, filled(source, hidden, value)), "--pipeline", bench.path("rx.json"))
            found = record["input"].get("undeclared", {})
            what = f"{np.dtype(dtype)} {value}, {'collar' if hidden is collar else 'block'}"
            bench.check(same(scores, right) and np.array_equal(np.isnan(scores), hidden), f"{what}: scores as if they were NaN")
            bench.check(found.get("pixels") == hidden.sum() and found.get("looked_at") == H * W and abs(found.get("value", 1) / (value or 1) - (value != 0)) < 1e-6, f"{what}: in the record: {found}")
            bench.check(f"{hidden.sum()} of {H * W} pixels" in said and "missing data" in said and "--nodata nan" in said, f"{what}: a note: {said}")
            bench.check(record["detect"].get("pixels_without_score") == hidden.sum(), f"{what}: counted: {record['detect']}")
    for graph in GRAPHS:
        options = ("--pipeline", bench.path(f"{graph}.json"))
        right = detect(bench, saved(bench, filled(image, collar, np.nan, np.float32)), *options)[0]
        for order, array in (("HWC", filled(image, collar, 0)), ("CHW", np.moveaxis(filled(image, collar, 0), -1, 0))):
            scores = detect(bench, saved(bench, np.ascontiguousarray(array)), *options, "--axes", order)[0]
            bench.check(same(scores, right), f"{graph}, {order}: scores as if the collar were NaN")
    scores, record, said = detect(bench, saved(bench, filled(image, collar, 0)), "--nodata", "nan")
    bench.check(np.isfinite(scores).all() and "missing" not in said and "undeclared" not in record["input"], f"--nodata nan: zeros are spectra: {said}")
    odd = filled(image, collar, 7777)
    odd[5, 40, 3] = 7777
    scores, record, said = detect(bench, saved(bench, odd), "--nodata", "7777")
    bench.check(np.array_equal(np.isnan(scores), collar | (odd == 7777).any(-1)) and "undeclared" not in record["input"], f"--nodata 7777: in any band: {said}")
    result = bench.run("detect", bench.path("in.npy"), bench.path("s.npy"), "--nodata", "none")
    bench.check_refused(result, 2, "--nodata", "nan")
    lines = np.zeros((H, W), bool)
    lines[17], lines[:, 33] = True, True
    scores = detect(bench, saved(bench, filled(image, lines, 0)))[0]
    bench.check(np.array_equal(np.isnan(scores), lines), "a row and a column without data")


def test_spectra_stay(bench):
    """Dark and saturated pixels, counts of few photons, few bands, a cube of zeros, marks that are spectra by their number of bands."""
    image, few = cube(), np.zeros((H, W), bool)
    few[31, 20:23] = True
    scores, record, said = detect(bench, saved(bench, filled(image, few, 0)))
    bench.check(np.isfinite(scores).all() and "undeclared" not in record["input"], "three dark pixels have scores")
    bench.check("3 of 3000 pixels are 0" in said and "--nodata 0" in said, f"and are noted: {said}")
    scores, record, said = detect(bench, saved(bench, filled(image.astype(np.uint16), few, 65535)))
    bench.check(np.isfinite(scores).all() and "missing" not in said and scores[few].min() > np.delete(scores, np.flatnonzero(few)).max(), f"saturated pixels stand out: {said}")
    rare = np.random.default_rng(2).poisson(0.2, (H, W, BANDS)).astype(np.uint16)
    for name, array in (("counts of few photons", rare), ("zeros", np.zeros((H, W, BANDS), np.uint8)), ("clean", image), ("three bands", filled(image[..., :3], corners(), 0)),
                        ("one band", filled(image[..., :1], block(), -9999))):
        scores, record, said = detect(bench, saved(bench, array))
        bench.check(np.isfinite(scores).all() and "missing" not in said and "undeclared" not in record["input"], f"{name}: all pixels have scores: {said}")
    certain = filled(image, few, -9999)
    scores, record, said = detect(bench, saved(bench, certain))
    bench.check(np.array_equal(np.isnan(scores), few) and "3 of 3000" in said, f"three pixels of -9999 are no spectra: {said}")
    certain[few, 4] = 900
    scores, record, said = detect(bench, saved(bench, certain))
    bench.check(np.isfinite(scores).all() and "missing" not in said, f"-9999 in some bands only is none of these marks: {said}")


def test_sets(bench):
    """A folder with a tile that has no data at all, several cubes in a file, and a fitted pipeline."""
    folder, right = bench.path("set"), bench.path("right")
    tiles = {"a": cube(1), "b": filled(cube(2), corners(), 0), "c": np.zeros((H, W, BANDS), np.int16)}
    for path in (folder, right):
        path.mkdir()
        for name, image in tiles.items():
            np.save(path / f"{name}.npy", image if path == folder else filled(image, (image == 0).all(-1), np.nan, np.float32))
    said = detect(bench, folder, "--save", bench.path("f.safetensors"), out="scores")[2]
    detect(bench, right, out="wanted")
    for name in tiles:
        bench.check(same(np.load(bench.path("scores") / f"{name}.npy"), np.load(bench.path("wanted") / f"{name}.npy")), f"tile {name} of a folder")
    bench.check("b.npy" in said and "1 more file" in said, f"two files are noted: {said}")
    scores, _, said = detect(bench, folder / "b.npy", "--pipeline", bench.path("f.safetensors"))
    bench.check(np.array_equal(scores, np.load(bench.path("scores") / "b.npy"), equal_nan=True), "the fitted pipeline gives the same scores")
    scores = detect(bench, folder / "a.npy", "--fit", folder / "b.npy")[0]
    bench.check(same(scores, detect(bench, folder / "a.npy", "--fit", right / "b.npy")[0]), "statistics of other cubes leave them out")
    both = np.stack([tiles["a"], tiles["b"]])
    scores = detect(bench, saved(bench, both))[0]
    bench.check(np.isfinite(scores[0]).all() and np.array_equal(np.isnan(scores[1]), corners()), "two cubes in a file")


def test_large(bench):
    """Of a file of 300 MB a part is looked at, in blocks of rows."""
    height, width, bands = 1500, 500, 100
    rng = np.random.default_rng(5)
    image = rng.integers(400, 900, (height, width, bands), np.uint16).view(np.int16)
    y, x = np.mgrid[:height, :width]
    hidden = y + 4 * x < 1300
    image[hidden] = 0
    saved(bench, image, "large.npy")
    record = bench.record("detect", bench.path("large.npy"), bench.path("s.npy"), "--memory", "96M")
    found = record["input"].get("undeclared", {}) if record else {}
    bench.check(0 < found.get("looked_at", 0) < height * width / 2 and np.array_equal(np.isnan(np.load(bench.path("s.npy"))), hidden), f"a large cube: {found}")
    bench.path("large.npy").unlink()


def test_training(bench):
    """Phase 1, crops and validation leave them out as they do NaN."""
    for folder, value in (("marked", 0), ("gaps", np.nan)):
        bench.path(folder).mkdir()
        for seed in range(3):
            np.save(bench.path(folder) / f"{seed}.npy", filled(cube(seed, np.float32), corners(), value))
            np.save(bench.path(folder) / f"{seed}_mask.npy", block().astype(np.uint8))
    losses = {}
    for name, folder, more in (("marked", "marked", {}), ("gaps", "gaps", {}), ("values", "marked", {"marks_are_values": True})):
        bench.path("t.json").write_text(json.dumps({"pipeline": "selector", "data": {"folders": [folder], "workers": 1, "crop": 40, **more}, "batch": 2, "epochs": 2,
                                                    "validation": {"folder": folder}, "output": f"{name}.safetensors", "log": f"{name}.log"}))
        result = bench.run("train", bench.path("t.json"), cwd=bench.folder)
        bench.check(result.status == 0 and ("missing data" in result.err) == (name == "marked"), f"training, {name}: {result}")
        losses[name] = [v for line in bench.path(f"{name}.log").read_text().splitlines() for k, v in sorted(json.loads(line).items()) if k in ("loss", "auroc", "area", "validation")]
    bench.check(len(losses["gaps"]) > 2 and losses["marked"] == losses["gaps"] != losses["values"], f"losses with marks as with NaN: {losses}")


def main():
    bench = Quiet(sys.argv[1])
    write_graphs(bench)
    for test in (test_masks, test_truth_of_one_bit, test_marks, test_spectra_stay, test_sets, test_large, test_training):
        if test not in (test_masks, test_truth_of_one_bit) or bench.has_gdal():
            test(bench)
    bench.finish()


main()
