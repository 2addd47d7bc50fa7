"""fill.py PROGRAM [KILLS]: voids of elevation maps are filled, all of those that should be and no other pixel.

The network is small and has random weights: what is checked is which pixels change, that results do not depend on batches,
threads and being killed, that memory is as planned, and that files keep everything else."""
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np

from support import DATA, Bench, leftovers, read_safetensors, skip, write_pth, write_safetensors

try:
    from osgeo import gdal, osr
except ImportError:
    skip("GDAL's Python module is not there (Debian: python3-gdal)")

gdal.UseExceptions()
UTM = osr.SpatialReference()
UTM.ImportFromEPSG(32632)
PLACE = (500000.0, 30.0, 0.0, 5100000.0, 0.0, -30.0)
NODATA = -9999.0
FAST = ("--steps", 4, "--tile", 64, "--overlap", 8)


def model_weights(channels=2):
    """The network of the committed dump, which takes three channels, with as many as `fill` gives it."""
    dump = read_safetensors(DATA / "networks" / "diffusion.safetensors")
    weights = {k: v for k, v in dump.items() if k.startswith("denoise_fn.")}
    first = "denoise_fn.input_blocks.0.0.weight"
    weights[first] = np.repeat(weights[first], 2, 1)[:, :channels]
    return weights


def heights(h, w):
    y, x = np.mgrid[0:h, 0:w]
    return (900 + 200 * np.sin(x / 37) * np.cos(y / 53) + 0.1 * ((x * 13 + y * 7) % 11)).astype(np.float32)


def save(path, data, nodata=NODATA, kind=gdal.GDT_Float32, options=("TILED=YES", "COMPRESS=DEFLATE")):
    d = gdal.GetDriverByName("GTiff").Create(str(path), data.shape[1], data.shape[0], 1, kind, list(options))
    d.SetProjection(UTM.ExportToWkt())
    d.SetGeoTransform(PLACE)
    if nodata is not None:
        d.GetRasterBand(1).SetNoDataValue(nodata)
    d.GetRasterBand(1).WriteArray(data)
    return path


def load(path):
    return gdal.Open(str(path)).ReadAsArray()


def voids(h, w):
    """Inner ones, and a sea that touches the edge."""
    inner, sea = np.zeros((h, w), bool), np.zeros((h, w), bool)
    inner[30:50, 40:70] = inner[90:93, 100:150] = inner[120, 20] = True
    sea[:12, 100:] = True
    return inner, sea


def make(bench, name="map.tif", h=150, w=190):
    z = heights(h, w)
    inner, sea = voids(h, w)
    data = np.where(inner | sea, NODATA, z).astype(np.float32)
    save(bench.path(name), data)
    save(bench.path("truth.tif"), z, nodata=None)
    return z, data, inner, sea


def fill(bench, to, *options, source="map.tif"):
    return bench.record("fill", bench.path(source), bench.path(to), "--model", bench.path("net.pth"), "--device", "cpu",
                        *FAST, *options)


def info(path):
    facts = gdal.Info(str(path), format="json")
    for key in ("files", "description"):
        facts.pop(key)
    for band in facts["bands"]:
        for key in ("metadata", "minimum", "maximum", "mean", "stdDev", "checksum"):
            band.pop(key, None)
    return facts


def check_filled(bench):
    z, data, inner, sea = make(bench)
    record = fill(bench, "out.tif", "--truth", bench.path("truth.tif"))
    if not record:
        return
    out, told = load(bench.path("out.tif")), record["fill"]["voids"]
    bench.check(np.array_equal(out[~inner], data[~inner]), "pixels outside of inner voids keep their bits")
    bench.check(np.all(out[inner] != NODATA) and np.all(np.isfinite(out[inner])), "all inner voids are filled")
    bench.check(out[inner].min() >= z.min() and out[inner].max() <= z.max(), "filled heights are in the tile's range")
    bench.check(told["filled_pixels"] == inner.sum() and told["left_at_edge"] == sea.sum() and told["count"] == 3 and told["rule"] == ["nodata value of the file"],
                f"the record counts them: {told}")
    error = out[inner].astype(float) - z[inner]
    bench.check(abs(record["quality"]["rmse"] - np.sqrt(np.mean(error**2))) < 1e-3 and
                abs(record["quality"]["mae"] - np.abs(error).mean()) < 1e-3 and
                record["quality"]["by_width"]["16 to 64 px"]["pixels"] == 600 and record["quality"]["psnr_db"] > 0,
                f"errors against the truth: {record['quality']}")
    planned, measured = (record[k]["peak_bytes"]["total"] for k in ("plan", "measured"))
    bench.check(measured <= planned <= 1.01 * measured + (1 << 20), f"planned {planned} bytes, measured {measured}")
    parts = {k: (record["plan"]["peak_bytes"].get(k, 0), v) for k, v in record["measured"]["peak_bytes"].items()}
    bench.check(all(v <= p for p, v in parts.values()), f"so is each part: {parts}")
    learned = [path.name for path in bench.cache.iterdir() if '"job fill"' in path.read_text()]
    bench.check(len(learned) == 1, f"a first run, whose ops were never timed, says what a job takes besides them: {learned}")
    bench.check(info(bench.path("map.tif")) == info(bench.path("out.tif")), "gdalinfo tells the same of both")
    plan = bench.record("plan", "fill", bench.path("map.tif"), bench.path("no.tif"), "--model", bench.path("net.pth"),
                        "--device", "cpu", *FAST, "--truth", bench.path("truth.tif"))
    bench.check(plan and plan["plan"]["peak_bytes"] == record["plan"]["peak_bytes"] and "measured" not in plan and
                not bench.path("no.tif").exists(), "plan fill predicts the same bytes and writes nothing")
    bench.check(not leftovers(bench.folder) and not bench.path("out.tif.unfinished").exists(), "nothing is left behind")


def check_equal(bench):
    make(bench)
    reference = fill(bench, "one.tif", "--batch", 1, "--samples", 3, "--deviation", bench.path("dev1.tif"))
    if not reference:
        return
    one, dev = load(bench.path("one.tif")), load(bench.path("dev1.tif"))
    inner, _ = voids(*one.shape)
    bench.check(np.all(np.isfinite(dev[inner])) and dev[inner].mean() > 0 and not np.isfinite(dev[~inner]).any(),
                "the deviation has a value in each filled pixel and in no other")
    for options in (("--batch", 4), ("--batch", 8, "--threads", 1), ("--trace", bench.path("trace.json"), "--profile")):
        record = fill(bench, "other.tif", *options, "--samples", 3, "--deviation", bench.path("dev2.tif"))
        bench.check(np.array_equal(one, load(bench.path("other.tif"))) and
                    np.array_equal(dev, load(bench.path("dev2.tif")), equal_nan=True), f"the same bits with {options}")
    events = json.loads(bench.path("trace.json").read_text())["traceEvents"]
    names = {event["name"] for event in events if event.get("cat") == "op"}
    bench.check({"read", "write", "op"} <= {event.get("cat") for event in events} and len(record["profile"]["layers"]) == 10 and
                {key[:-7] for key in model_weights() if key.endswith(".weight")} <= names,
                f"the trace has windows read and written, and each layer: {sorted(names)[:5]}")
    fill(bench, "other.tif", "--seed", 5, "--samples", 3)
    bench.check(not np.array_equal(one, load(bench.path("other.tif"))), "another seed gives another fill")
    for sampler, steps in (("ddim", 3), ("ddpm", 6)):
        record = fill(bench, "other.tif", "--sampler", sampler, "--steps", steps)
        bench.check(record and record["fill"]["steps"] == steps, f"{sampler} runs")
    result = bench.run("fill", bench.path("map.tif"), bench.path("x.tif"), "--model", bench.path("net.pth"), *FAST,
                       "--sampler", "ddpm", "--steps", 12, "--schedule", "linear:1e-6:0.01")
    bench.check(result.status == 0 and "linear" in result.err, f"a schedule that leaves signal is warned of: {result.err!r}")


def check_pairs(bench):
    """A network that predicts no noise leaves each sample to its noise alone, which cancels in a pair."""
    _, _, inner, _ = make(bench)
    write_pth(bench.path("still.pth"), {k: 0 * v if k.startswith("denoise_fn.out.") else v for k, v in model_weights().items()})
    one, two, three, four = ((fill(bench, "pair.tif", "--samples", k, "--model", bench.path("still.pth")), load(bench.path("pair.tif"))[inner])[1]
                             for k in (1, 2, 3, 4))
    bench.check(np.abs(two - four).max() < 1e-3 < np.abs(one - two).mean(), "the noise of a pair cancels in the mean")
    bench.check(np.abs(three - (one + 2 * two) / 3).mean() > 1e-3, "each pair has noise of its own")


def check_which(bench):
    z, data, inner, sea = make(bench)
    fill(bench, "all.tif", "--voids", "all")
    bench.check(np.all(load(bench.path("all.tif")) != NODATA), "--voids all fills the sea too")
    fill(bench, "near.tif", "--max-distance", 3)
    out = load(bench.path("near.tif"))
    bench.check(np.all(out[32:48, 43:67][3:-3, 3:-3] == NODATA) and out[31, 50] != NODATA and out[91, 120] != NODATA,
                "--max-distance leaves the middle of a void")
    mask = np.zeros(data.shape, np.uint8)
    mask[60:80, 60:80] = 255
    save(bench.path("mask.tif"), mask, nodata=None, kind=gdal.GDT_Byte)
    fill(bench, "masked.tif", "--mask", bench.path("mask.tif"))
    out = load(bench.path("masked.tif"))
    bench.check(np.array_equal(out[mask == 0], data[mask == 0]) and np.any(out[mask > 0] != data[mask > 0]),
                "--mask fills these pixels and no others")
    save(bench.path("whole.tif"), z)
    record = fill(bench, "same.tif", source="whole.tif")
    bench.check(record and np.array_equal(load(bench.path("same.tif")), z) and record["fill"]["tiles"] == 0,
                "a map without voids is copied")


def check_nodata(bench):
    """A given value that replaces another is warned of; nan leaves only NaN."""
    z, data, inner, _ = make(bench)
    path = bench.path("both.tif")
    two = np.round(z).astype(np.int16)
    two[inner] = -9999
    two[70:75, 10:15] = -32768
    save(path, two, nodata=-32768, kind=gdal.GDT_Int16)
    result = bench.run("fill", path, bench.path("b.tif"), "--model", bench.path("net.pth"), *FAST, "--nodata", -9999)
    bench.check(result.status == 0 and "--nodata -9999 replaces" in result.err and "-32768" in result.err, f"warned: {result.err!r}")
    result = bench.run("fill", path, bench.path("b.tif"), "--model", bench.path("net.pth"), *FAST, "--nodata", -32768)
    bench.check(result.status == 0 and "replaces" not in result.err, f"the same value is not: {result.err!r}")
    deep = data.copy()
    deep[inner] = np.nan
    deep[70:75, 10:15] = -9999
    save(path, deep, nodata=None)
    for options, count in ((("--nodata", "nan"), inner.sum()), ((), inner.sum() + 25)):
        told = fill(bench, "b.tif", *options, source="both.tif")["fill"]["voids"]
        bench.check(told["filled_pixels"] == count, f"{options}: {told}")


def check_marks(bench):
    """Marks beside those that the file declares are void too, with a note and a count; real heights stay."""
    z = heights(150, 190)
    inner, _ = voids(*z.shape)
    block = np.zeros(z.shape, bool)
    block[60:66, 20:30] = True
    low = -3.4028234663852886e38
    for kind, declared, mark, options in ((np.float32, -9999, low, ()), (np.float32, np.nan, -9999, ()), (np.float64, -9999, -1.7976931348623157e308, ()),
                                          (np.int16, -32768, -9999, ()), (np.int16, -9999, 32767, ()), (np.int32, -32768, 9999, ()), (np.float32, "mask", -9999, ()),
                                          (np.int16, None, -9999, ("--nodata", -32768)), (np.float32, low, -999, ())):
        data = np.round(z).astype(kind)
        data[inner] = -32768 if declared is None else 0 if declared == "mask" else declared
        calm = data.copy()
        calm[block] = data[inner][0]
        data[block] = mark
        code = {np.float32: gdal.GDT_Float32, np.float64: gdal.GDT_Float64, np.int16: gdal.GDT_Int16, np.int32: gdal.GDT_Int32}[kind]
        results = []
        for values, name in ((calm, "calm"), (data, "marks")):
            save(bench.path(name + ".tif"), values, nodata=None if declared == "mask" else declared, kind=code)
            if declared == "mask":
                gdal.SetConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES")
                d = gdal.Open(str(bench.path(name + ".tif")), gdal.GA_Update)
                d.CreateMaskBand(gdal.GMF_PER_DATASET)
                d.GetRasterBand(1).GetMaskBand().WriteArray(np.where(inner | (block & (name == "calm")), 0, 255).astype(np.uint8))
                del d
            result = bench.run("fill", bench.path(name + ".tif"), bench.path(name + "_out.tif"), "--model", bench.path("net.pth"), "--device", "cpu", *FAST, *options,
                               "--json", bench.path("marks.json"))
            results.append((result, load(bench.path(name + "_out.tif")) if result.status == 0 else None))
        result, out = results[1]
        told = json.loads(bench.path("marks.json").read_text())["fill"]["voids"] if out is not None else {}
        bench.check(out is not None and np.array_equal(out, results[0][1]), f"{kind.__name__}, {declared} declared, {mark} beside it: filled as if all were declared: {result}")
        bench.check("far from all heights" in result.err and "60 pixels are" in result.err and told.get("undeclared") == [{"value": mark, "pixels": 60}],
                    f"told: {result.err!r}, {told}")
        bench.check("pixels are" not in results[0][0].err, f"nothing to tell: {results[0][0].err!r}")
    deep = np.round(-9990 + 3 * (z - 900)).astype(np.int16)  # a trench: -9999 and -9998 are depths
    coast = np.maximum(np.round(z - 1000), 0).astype(np.int16)
    for name, data, told in (("trench", deep, -9999), ("coast", coast, 0)):
        bench.check((data[~inner] == told).any(), f"{name} has {told}")
        data[inner] = -32768
        save(bench.path("real.tif"), data, nodata=-32768, kind=gdal.GDT_Int16)
        record = fill(bench, "real_out.tif", source="real.tif")
        bench.check(record and record["fill"]["voids"]["pixels"] == inner.sum() and "undeclared" not in record["fill"]["voids"], f"{name}: {record and record['fill']['voids']}")
    zeros = np.round(z).astype(np.int16)
    zeros[inner] = -32768
    zeros[60:70, 20:30] = 0
    save(bench.path("real.tif"), zeros, nodata=-32768, kind=gdal.GDT_Int16)
    result = bench.run("plan", "fill", bench.path("real.tif"), bench.path("no.tif"), "--model", bench.path("net.pth"), *FAST)
    bench.check(result.status == 0 and "100 pixels are 0" in result.err and "change them to -32768" in result.err, f"zeros beside a declared value: {result.err!r}")


def check_impossible(bench):
    """A declared value that no sample can have says nothing: the usual ones count, as without it."""
    z = np.round(heights(150, 190))
    inner, _ = voids(*z.shape)
    for kind, code, declared, mark in ((np.uint16, gdal.GDT_UInt16, -9999, 65535), (np.int16, gdal.GDT_Int16, np.nan, -9999), (np.int16, gdal.GDT_Int16, -99999, -32768)):
        data = z.astype(kind)
        data[inner] = mark
        save(bench.path("beyond.tif"), data, nodata=declared, kind=code)
        result = bench.run("fill", bench.path("beyond.tif"), bench.path("beyond_out.tif"), "--model", bench.path("net.pth"), "--device", "cpu", *FAST,
                           "--json", bench.path("beyond.json"))
        told = json.loads(bench.path("beyond.json").read_text())["fill"]["voids"] if result.status == 0 else {}
        out = load(bench.path("beyond_out.tif")) if told else data
        bench.check(told and told["filled_pixels"] == inner.sum() and told["rule"] == ["usual nodata values"] and abs(out[inner].astype(float) - z[inner]).max() < 1000 and
                    f"nodata value {declared:g}" in result.err and "cannot have" in result.err, f"{kind.__name__} that declares {declared}: {result.err!r} {told}")


def check_wide(bench):
    """A void that is wider than a tile is filled coarse to fine, to its middle."""
    z = heights(400, 420)
    data = z.copy()
    data[60:340, 50:360] = NODATA
    save(bench.path("wide.tif"), data)
    record = fill(bench, "wide_out.tif", source="wide.tif")
    out = load(bench.path("wide_out.tif"))
    bench.check(record and record["fill"]["levels"] > 1 and record["fill"]["guided_tiles"] > 0 and
                np.all(out != NODATA) and np.array_equal(out[data != NODATA], data[data != NODATA]),
                f"nothing is left void: {record and record['fill']}")
    again = fill(bench, "wide_out2.tif", "--batch", 1, source="wide.tif")
    bench.check(again and np.array_equal(out, load(bench.path("wide_out2.tif"))), "the same with batches of one")


def check_second(bench):
    """The difference to a second map that is 5 m lower everywhere is 5, so that the fill is exact."""
    z, data, inner, _ = make(bench)
    save(bench.path("second.tif"), z - 5, nodata=None)
    record = fill(bench, "second_out.tif", "--second", bench.path("second.tif"))
    out = load(bench.path("second_out.tif"))
    bench.check(record and np.abs(out[inner] - z[inner]).max() < 1e-3, "a constant difference is filled exactly")
    marked = z - 5
    marked[60:66, 20:30] = -32768  # beside the value that it declares
    save(bench.path("marked.tif"), marked)
    record = fill(bench, "second_out.tif", "--second", bench.path("marked.tif"))
    bench.check(record and np.abs(load(bench.path("second_out.tif"))[inner] - z[inner]).max() < 1e-3, "marks of the second map are void too")
    gdal.Translate(str(bench.path("wide.tif")), str(bench.path("marked.tif")), width=95, height=75, resampleAlg="nearest")
    record = fill(bench, "wide_out.tif", "--second", bench.path("wide.tif"))
    bench.check(record and record["fill"]["voids"].get("undeclared_second", [{}])[0].get("value") == -32768 and np.abs(load(bench.path("wide_out.tif"))[inner] - z[inner]).max() < 40, "on another grid too")
    marked = z.copy()
    marked[32:36, 45:50] = -32768
    save(bench.path("marked.tif"), marked)
    record = fill(bench, "truth_out.tif", "--truth", bench.path("marked.tif"))
    bench.check(record and record["quality"]["rmse"] < 500, f"marks of the truth do not count as errors: {record and record['quality']['rmse']}")
    short = z - 5
    save(bench.path("short.tif"), short[:-2], nodata=None)
    near = data.copy()
    near[100:150, 60:90] = NODATA
    near[149, 60:90] = z[149, 60:90]
    save(bench.path("near.tif"), near)
    record = fill(bench, "short_out.tif", "--second", bench.path("short.tif"), source="near.tif")
    told = record["fill"]["voids"] if record else {}
    bench.check(told and told["left_without_second"] == 30 and load(bench.path("short_out.tif"))[110, 70] != NODATA,
                f"a second map that ends in a void leaves that part only: {told}")
    small = (z - 5)[:, :60]
    save(bench.path("part.tif"), small, nodata=None)
    record = fill(bench, "part_out.tif", "--second", bench.path("part.tif"))
    left = record["fill"]["voids"]["left_without_second"] if record else 0
    bench.check(left > 0 and np.all(load(bench.path("part_out.tif"))[30:50, 62:70] == NODATA),
                f"pixels that the second map lacks stay void and are counted: {left}")


def has_tiles(path):
    return path.exists() and path.stat().st_size > 1000


def check_killed(bench, kills):
    make(bench, h=300, w=320)
    options = ("--samples", 2, "--steps", 8)
    begin = time.monotonic()
    fill(bench, "calm.tif", *options)
    seconds, dice = time.monotonic() - begin, random.Random(3)
    command = ("fill", bench.path("map.tif"), bench.path("killed.tif"), "--model", bench.path("net.pth"), "--device", "cpu",
               *FAST, *options, "--quiet")
    done = 0
    for _ in range(kills):
        process = bench.start(*command, *(("--resume",) if bench.path("killed.tif.unfinished").exists() else ()))
        time.sleep(seconds * dice.uniform(0.3, 0.8))
        done += process.poll() is not None
        process.kill()
        process.wait()
    # A kill may also fall between a finished run and the next, or between the output and the end of its journal.
    if not bench.path("killed.tif").exists() or bench.path("killed.tif.unfinished").exists():
        result = bench.run(*command, "--resume")
        bench.check(result.status == 0, f"resumed: {result}")
    bench.check(not bench.path("killed.tif.unfinished").exists(), "the journal is removed")
    bench.check(np.array_equal(load(bench.path("calm.tif")), load(bench.path("killed.tif"))),
                f"killed {kills} times ({done} too late) and resumed: the same bits")
    command += ("--samples", 12)  # long enough to be stopped between two tiles
    process = bench.start(*command, stderr=subprocess.PIPE)
    while process.poll() is None and not has_tiles(bench.path("killed.tif.unfinished")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    told = process.communicate()[1].decode()
    kept = bench.path("killed.tif.unfinished").exists()  # not if the first tile was still being written
    bench.check(process.returncode == 0 or process.returncode == 130 and ("--resume" in told) == kept,
                f"Ctrl-C ends with 130 and says how to go on: {process.returncode}, {told!r}")
    if bench.path("killed.tif.unfinished").exists():
        bench.check_refused(bench.run(*command), 1, "unfinished", "--resume")
        bench.check_refused(bench.run(*command, "--resume", "--seed", 9), 1, "unfinished", "other settings")
        os.unlink(bench.path("killed.tif.unfinished"))


def check_before_reading(bench, refused):
    """What does not depend on the heights is refused before they are read: here they cannot be."""
    path = bench.path
    save(path("hollow.tif"), heights(300, 320))
    whole = path("hollow.tif").read_bytes()
    path("hollow.tif").write_bytes(whole[:len(whole) // 2] + bytes(len(whole) - len(whole) // 2))
    refused("hollow.tif", "damaged", source="hollow.tif")
    refused("--memory 1M", "320 x 300", "or more", source="hollow.tif", options=("--memory", "1M"))
    refused("no.pth", source="hollow.tif", model=path("no.pth"))
    refused("bad.png", "suffix", source="hollow.tif", to="bad.png", status=2)
    refused("--create", source="hollow.tif", options=("--create", "NOPE=1"), status=2)
    refused("nowhere", source="hollow.tif", options=("--samples", 2, "--deviation", path("nowhere/d.tif")))
    path("bad.tif.unfinished").mkdir()
    refused("unfinished", source="hollow.tif")
    path("bad.tif.unfinished").rmdir()


def check_full_disk(bench):
    """A disk that is full at the end (a limit of file sizes): the tiles are kept, and a later run goes on with them."""
    z = heights(500, 500)
    z[100:120, 100:130] = NODATA
    save(bench.path("plain.tif"), z, options=())
    command = ("fill", bench.path("plain.tif"), bench.path("full.tif"), "--model", bench.path("net.pth"), "--device", "cpu", *FAST)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500000, 500000))
    result = bench.run(*command, preexec_fn=limit)
    bench.check_refused(result, 1, "full.tif", "cannot be written", "tiles are finished and kept", "--resume")
    result = bench.run(*command, "--resume", "--verbose")
    bench.check(result.status == 0 and "were there already" in result.err and (load(bench.path("full.tif")) != NODATA).all(),
                f"resumed: {result}")
    bench.check(not bench.path("full.tif.unfinished").exists(), "the journal is removed")


def check_memory(bench):
    """The size that a refusal names is enough, and can be typed as it stands."""
    make(bench)
    size, named = "1.5M", []
    for _ in range(3):
        result = bench.run("fill", bench.path("map.tif"), bench.path("m.tif"), "--model", bench.path("net.pth"), "--device", "cpu",
                           *FAST, "--memory", size, "--quiet")
        if result.status == 0:
            break
        bench.check(f"--memory {size} is too little" in result.err, f"{size}: {result.err!r}")
        size = result.err.split("--memory ")[-1].split()[0]
        named.append(size)
    bench.check(result.status == 0 and named, f"refusals name {named}: {result.err!r}")
    bench.path("m.tif").unlink(missing_ok=True)


def check_refused(bench):
    z, data, *_ = make(bench)
    path, net = bench.path, bench.path("net.pth")

    def refused(*words, source="map.tif", to="bad.tif", model=net, options=(), status=1, there=False):
        result = bench.run("fill", path(source), path(to), "--model", model, *FAST, *options, "--quiet")
        bench.check_refused(result, status, *words)
        bench.check(there or not path(to).exists() or to == "map.tif", f"no output after {words}")

    save(path("void.tif"), np.full((80, 90), NODATA, np.float32))
    refused("void.tif", "every pixel is void", source="void.tif")
    marked = data.copy()
    marked[3:9, 5:11] = -3.4028235e38
    save(path("marked.tif"), marked)
    refused("marked.tif", "-3.4028", "no height", "--mask", source="marked.tif", options=("--nodata", "nan"))
    d = gdal.GetDriverByName("GTiff").Create(str(path("two.tif")), 70, 70, 2, gdal.GDT_Float32)
    d.GetRasterBand(1).WriteArray(z[:70, :70])
    d = None
    refused("two.tif", "--band", source="two.tif", status=2)
    save(path("small.tif"), np.zeros((10, 10), np.uint8), nodata=None, kind=gdal.GDT_Byte)
    refused("small.tif", options=("--mask", path("small.tif")))
    refused("no.pth", model=path("no.pth"))
    write_safetensors(path("other.safetensors"), {"conv.weight": np.zeros((4, 4, 3, 3), np.float32)})
    refused("other.safetensors", model=path("other.safetensors"))
    write_pth(path("three.pth"), model_weights(3))
    refused("three.pth", "channels", model=path("three.pth"))
    refused("no.tif", source="no.tif")
    refused("--overlap", options=("--overlap", 60), status=2)
    refused("--deviation", options=("--deviation", path("d.tif")), status=2)
    refused("--eta", "ddim", options=("--eta", 0.5), status=2)
    refused("--create COMPRESS=BLAH", options=("--create", "COMPRESS=BLAH"), status=2)
    refused("--memory", options=("--memory", "1M"))
    check_before_reading(bench, refused)
    refused("map.tif", to="map.tif", status=2)
    bench.check(np.array_equal(load(path("map.tif")), data), "the input is as it was")
    save(path("other.tif"), z, nodata=None)
    save(path("marks.tif"), np.zeros(data.shape, np.uint8) + 1, nodata=None, kind=gdal.GDT_Byte)
    gdal.BuildVRT(str(path("mosaic.vrt")), [str(path("map.tif"))]).FlushCache()
    kept = {name: path(name).read_bytes() for name in ("other.tif", "marks.tif", "map.tif", "net.pth")}
    for options in (("--mask", "marks.tif"), ("--second", "other.tif"), ("--truth", "other.tif")):
        refused(options[1], to=options[1], options=(options[0], path(options[1])), status=2, there=True)
        refused(options[1], options=(options[0], path(options[1]), "--samples", 2, "--deviation", path(options[1])), status=2)
    refused("map.tif", source="mosaic.vrt", to="map.tif", options=("--overwrite",), status=2, there=True)
    refused("net.pth", to="net.pth", status=2, there=True)
    save(path("moved.tif"), z, nodata=None)
    d = gdal.Open(str(path("moved.tif")), gdal.GA_Update)
    d.SetGeoTransform((PLACE[0], PLACE[1], 0, PLACE[3] + 3, 0, PLACE[5]))  # a tenth of a pixel
    d = None
    refused("moved.tif", "0.1 pixels", options=("--truth", path("moved.tif")))
    refused("nowhere", options=("--samples", 2, "--deviation", path("nowhere/d.tif")))
    bench.check(all(path(name).read_bytes() == was for name, was in kept.items()), "files that are read are as they were")
    result = bench.run("fill", path("map.tif"), path("x.tif"), "--sampler", "euler")
    bench.check_refused(result, 2, "--sampler", "euler", "dpmpp")
    bench.check(not leftovers(bench.folder), "nothing is left behind")


def main():
    bench = Bench(sys.argv[1])
    if not bench.has_gdal():
        skip("the program has no GDAL")
    write_pth(bench.path("net.pth"), model_weights())
    check_filled(bench)
    check_equal(bench)
    check_pairs(bench)
    check_which(bench)
    check_nodata(bench)
    check_marks(bench)
    check_impossible(bench)
    check_wide(bench)
    check_second(bench)
    check_killed(bench, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    check_full_disk(bench)
    check_memory(bench)
    check_refused(bench)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
