"""detect_missing.py PROGRAM: pixels that have no value because a mask hides them are left out of statistics and scores as declared nodata
are."""
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
            bench.check(record["detect"].get("pixels_without_score") == hidden.sum(), f"{graph}, {name}: counted: {record['detect']} {said}")
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


def main():
    bench = Quiet(sys.argv[1])
    write_graphs(bench)
    for test in (test_masks, test_truth_of_one_bit):
        if bench.has_gdal():
            test(bench)
    bench.finish()


main()
