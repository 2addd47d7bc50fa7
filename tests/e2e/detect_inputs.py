"""detect_inputs.py PROGRAM: cubes, masks, graphs and names that `detect` must refuse in clear words, or stand.

Few pixels, constant and saturated ones, NaN, headers that disagree with their data, strange wavelengths, folders that cannot be
scored, graphs that lead nowhere, outputs that cannot be written (known before a cube is read), Ctrl-C, and a sparse cube of 60 GB.
"""
import json
import pathlib
import signal
import sys
import time

import numpy as np

from support import MIB, Bench, leftovers

ENVI_TYPES = {"uint16": 12, "float32": 4}


def cube(height=40, width=30, bands=8):
    rng = np.random.default_rng(3)
    return np.maximum(1000 + 50 * np.cumsum(rng.normal(0, 1, (height, width, bands)), -1), 1).astype(np.uint16)


def envi(path, image, more="", body=None, **changes):
    fields = {"samples": image.shape[1], "lines": image.shape[0], "bands": image.shape[2], "header offset": 0,
              "data type": ENVI_TYPES[image.dtype.name], "interleave": "bip", "byte order": 0, **changes}
    path.write_bytes(image.tobytes() if body is None else body)
    path.with_suffix(".hdr").write_text("ENVI\n" + "".join(f"{k} = {v}\n" for k, v in fields.items()) + more)
    return path


def graph(bench, name, nodes, **more):
    path = bench.path(f"{name}.json")
    path.write_text(json.dumps({"nodes": [n if isinstance(n, dict) else {"kind": n} for n in nodes], **more}))
    return path


def refuse(bench, *args, words, status=1):
    bench.check_refused(bench.run("detect", *args, "--quiet"), status, *words)


def scores_of(bench, image, *more):
    np.save(bench.path("in.npy"), image)
    record = bench.record("detect", bench.path("in.npy"), bench.path("scores.npy"), *more)
    return record, np.load(bench.path("scores.npy")) if record else None


# --- cubes ------------------------------------------------------------------------------------------------------------

def test_arrays(bench):
    image, out = cube(), bench.path("s.npy")
    for name, array, words in [
            ("few", image[:2, :3], ["6 pixels", "8 channels", "pca"]),
            ("one_pixel", image[:1, :1], ["2 pixels with values", "there are 1"]),
            ("nan", np.full((9, 9, 4), np.nan, np.float32), ["there are 0", "NaN"]),
            ("beyond_fp32", np.full((9, 9, 4), 1e300), ["there are 0", "fp32"]),
            ("empty", np.zeros((0, 9, 4), np.uint8), ["side 0 is 0"]),
            ("plane", image[..., 0], ["(40, 30)", "bands"]),
            ("wide", np.zeros((2, 2, 5000), np.uint8), ["5000 bands", "4096"]),
            ("complex", image.astype(complex), ["complex128"]),
            ("long_integers", image.astype(np.int64), ["type int64"])]:
        np.save(bench.path(f"{name}.npy"), array)
        refuse(bench, bench.path(f"{name}.npy"), out, words=words)
    for name in ("few", "one_pixel"):
        refuse(bench, bench.path(f"{name}.npy"), out, "--pipeline", "rx-local", words=["no ring", "inner window of 15"])
    whole = (np.save(bench.path("c.npy"), image), bench.path("c.npy").read_bytes())[1]
    for name, data in [("short", whole[:-100]), ("long", whole + b"xx")]:
        bench.path(f"{name}.npy").write_bytes(data)
        refuse(bench, bench.path(f"{name}.npy"), out, words=[str(len(data)), str(len(whole))])
    bench.path("nothing.npy").write_bytes(b"")
    refuse(bench, bench.path("nothing.npy"), out, words=["is empty"])
    bench.check(not out.exists() and not leftovers(bench.folder), "a refused cube leaves no file")


def test_order(bench):
    """Arrays with the bands first, as other programs give them, are noted unless the order is named."""
    image = cube(90, 110, 25)
    for what, array, more, noted in (("bands first", np.moveaxis(image, -1, 0), (), True), ("named", np.moveaxis(image, -1, 0), ("--axes", "CHW"), False),
                                     ("confirmed", np.moveaxis(image, -1, 0), ("--axes", "HWC"), False), ("bands last", image, (), False),
                                     ("as many rows as bands", cube(40, 60, 40), (), False), ("one row", image[:1], (), False)):
        np.save(bench.path("order.npy"), np.ascontiguousarray(array))
        result = bench.run("detect", bench.path("order.npy"), bench.path("out.npy"), *more)
        words = "25 x 90 pixels with 110 bands" in result.err and "CHW" in result.err
        bench.check(result.status == 0 and words == noted and ("CHW" in result.err) == noted, f"{what}: {result}")


def test_digits(bench):
    """Pipelines compute in float32."""
    fine = cube() / 65536
    for values, kept in ((fine, True), (fine + 1e6, False), (cube().astype(np.int32), True), (cube().astype(np.int32) + 2 * 10**9, False),
                         (np.where(np.arange(8) == 3, 0.1 + 1e-17 * fine, fine), True), (cube().astype(np.uint32) + 4 * 10**9, False)):
        np.save(bench.path("fine.npy"), values)
        if kept:
            result = bench.run("detect", bench.path("fine.npy"), bench.path("out.npy"), "--quiet")
            bench.check(result.status == 0, f"{values.dtype} that float32 can hold: {result}")
        else:
            refuse(bench, bench.path("fine.npy"), bench.path("out.npy"), words=("fine.npy", "band 1", "vary by", "subtract a constant"))


def test_stands(bench):
    image = cube()
    plain = scores_of(bench, image)[1]
    for name, array in [("Fortran order", np.asfortranarray(image)), ("big endian", image.astype(">u2"))]:
        bench.check(np.array_equal(scores_of(bench, array)[1], plain), f"{name}: the same scores")
    for pipeline in ("rx", "rx-local", "lad"):
        for name, array in [("one band", image[..., :1]), ("one row", image[:1]), ("one column", image[:, :1]),
                            ("1000 bands", np.repeat(image, 125, -1) + np.arange(1000, dtype=np.uint16) % 7),
                            ("equal pixels", np.full((20, 20, 3), 7, np.uint16))]:
            if name == "1000 bands" and pipeline == "rx-local":
                continue  # minutes
            record, scores = scores_of(bench, array, "--pipeline", pipeline)
            bench.check(record is not None and scores.shape == array.shape[:2] and np.isfinite(scores).all() and (scores >= -1e-3).all(),
                        f"{pipeline}, {name}: scores are numbers from 0")
        saturated = image.copy()
        saturated[5:7, 5:7] = 65535
        record, scores = scores_of(bench, saturated, "--pipeline", pipeline)
        rest = np.ones(scores.shape, bool)
        rest[5:7, 5:7] = False
        if pipeline != "lad":  # which sees the shape of a spectrum, and this one is flat
            bench.check(np.isfinite(scores).all() and scores[5:7, 5:7].min() > np.quantile(scores[rest], 0.95), f"{pipeline}: saturated pixels stand out")
        holes = image.astype(np.float32)
        holes[::2] = np.nan
        scores = scores_of(bench, holes, "--pipeline", pipeline)[1]
        bench.check(np.isnan(scores[::2]).all() and np.isfinite(scores[1::2]).all(), f"{pipeline}: scores beside NaN are numbers")


def test_headers(bench):
    if not bench.has_gdal():
        return
    image, out = cube(), bench.path("s.npy")
    for name, changes, words in [
            ("short", {"body": image.tobytes()[:-10]}, ["19200 bytes", "19190"]),
            ("tiny", {"body": image.tobytes()[:90]}, ["19200 bytes", "has 90"]),
            ("long", {"body": image.tobytes() + b"123"}, ["19200 bytes", "19203"]),
            ("bands", {"bands": 9}, ["40 x 30 x 9", "21600", "19200"]),
            ("none", {"bands": 0}, ["none.img"]),
            ("minus", {"lines": -5}, ["minus.img"]),
            ("huge", {"lines": 2000000000, "samples": 2000000000}, ["huge.img"]),
            ("offset", {"header offset": 99999}, ["119199", "19200"]),
            ("type", {"data type": 99}, ["type.img"]),
            ("order", {"interleave": "xyz"}, ["interleave xyz", "bsq, bil or bip"]),
            ("waves", {"more": "wavelength units = Nanometers\nwavelength = {400, 500}\n"}, ["2 wavelengths", "8 bands"])]:
        refuse(bench, envi(bench.path(f"{name}.img"), image, **changes), out, words=words)
    bench.path("headless.img").write_bytes(image.tobytes())
    refuse(bench, bench.path("headless.img"), out, words=["headless.img"])


def test_wavelengths(bench):
    """Bands by wavelength: micrometres and descending lists are the same bands; what is no length is unknown."""
    if not bench.has_gdal():
        return
    image = cube()
    waves = np.array([400, 450, 500, 550, 600, 700, 800, 900.])
    keep = graph(bench, "keep", [{"kind": "bandpass", "from": 440, "to": 720}, {"kind": "rx", "eps": 0}])
    results = []
    for name, unit, values, order in [("nm", "Nanometers", waves, 1), ("um", "Micrometers", waves / 1000, 1), ("bare", None, waves / 1000, 1),
                                      ("down", "Nanometers", waves[::-1], -1)]:
        listed = (f"wavelength units = {unit}\n" if unit else "") + f"wavelength = {{{', '.join(map(str, values))}}}\n"
        path = envi(bench.path(f"{name}.img"), np.ascontiguousarray(image[..., ::order]), listed)
        bench.record("detect", path, bench.path("s.npy"), "--pipeline", keep)
        results.append(np.load(bench.path("s.npy")))
    bench.check(all(np.allclose(r, results[0], rtol=1e-3) for r in results[1:]), "nm, micrometres, no unit, descending: the same scores")
    for name, listed in [("number", "wavelength units = Wavenumber\nwavelength = {4000, 5000, 5100, 5200, 5300, 5400, 5500, 5600}\n"),
                         ("words", "wavelength = {400, red, 500, nan, 1, 2, 3, inf}\n"), ("below", "wavelength = {-1, 2, 3, 4, 5, 6, 7, 8}\n")]:
        refuse(bench, envi(bench.path(f"{name}.img"), image, listed), bench.path("s.npy"), "--pipeline", keep, words=["needs wavelengths"])


def test_bad_bands(bench):
    """Bands that a header marks as bad are used, which a note says."""
    if not bench.has_gdal():
        return
    for listed, bad in (("{1, 0, 1, 1, 1, 0, 0, 1}", 3), ("{1,1,1,1,1,1,1,1}", 0), ("{0, 1}", 0)):
        path = envi(bench.path("marked.img"), cube(), f"bbl = {listed}\n")
        result = bench.run("detect", path, bench.path("s.npy"), "--json", bench.path("r.json"))
        record = json.loads(bench.path("r.json").read_text()) if result.status == 0 else {"input": {}}
        bench.check(result.status == 0 and ("as bad" in result.err) == (bad > 0) and (not bad or f"{bad} of 8 bands" in result.err) and
                    record["input"].get("bad_bands", 0) == bad, f"bbl {listed}: {result}")


# --- folders, masks, graphs, names --------------------------------------------------------------------------------------

def test_folders(bench):
    image = cube()
    for name, files in [("nothing", {}), ("masks", {"a_mask": image[..., 0]}), ("mixed", {"a": image, "b": image[..., :5]}), ("good", {"a": image})]:
        bench.path(name).mkdir()
        for file, array in files.items():
            np.save(bench.path(name) / f"{file}.npy", array)
    (bench.path("good") / "notes.txt").write_text("not a cube")
    out = bench.path("scores")
    refuse(bench, bench.path("nothing"), out, words=["holds no cubes"])
    refuse(bench, bench.path("masks"), out, words=["holds no cubes"])
    refuse(bench, bench.path("mixed"), out, words=["b.npy has 5 bands", "a.npy has 8"])
    refuse(bench, bench.path("good"), bench.path("good"), words=["read and written"], status=2)
    refuse(bench, bench.path("good"), bench.path("no") / "folder", words=["make its folder first"])
    bench.check(not out.exists(), "no folder is made for a refused job")
    for again in range(2):
        bench.check(bench.record("detect", bench.path("good"), out) is not None, f"a folder of scores is {'used again' if again else 'made'}")
    if bench.has_gdal():
        envi(bench.path("good") / "a.img", image)
        refuse(bench, bench.path("good"), bench.path("twice"), words=["a.npy", "two cubes"])


def test_masks(bench):
    image, c, out = cube(), bench.path("c.npy"), bench.path("s.npy")
    np.save(c, image)
    for name, array in [("low", image[:39, :, 0]), ("bands", image)]:
        np.save(bench.path(f"{name}.npy"), array)
        refuse(bench, c, out, "--truth", bench.path(f"{name}.npy"), words=["is a mask of", "40 x 30"])
    bench.check(not out.exists(), "a mask of another size is known before the cube is scored")
    for name, array, count in [("none", image[..., 0] * 0, 0), ("all", image[..., 0] * 0 + 1, 1200)]:
        np.save(bench.path(f"{name}.npy"), array)
        record = bench.record("detect", c, out, "--truth", bench.path(f"{name}.npy"))
        q = record["quality"] if record else {}
        bench.check(q.get("anomalies") == count and "auroc" not in q and "roc" not in q, f"truth with one class only ({name}): no AUROC")


def test_curve(bench):
    """The points of the ROC curve in the record, against all of them by NumPy."""
    rng = np.random.default_rng(8)
    image, truth = rng.integers(0, 40, (90, 80, 1)).astype(np.uint16), (rng.random((90, 80)) < 0.1).astype(np.uint8)
    image[truth > 0] += 12
    np.save(bench.path("truth.npy"), truth)
    record, scores = scores_of(bench, image, "--truth", bench.path("truth.npy"))
    s, t = scores.ravel(), truth.ravel() > 0
    every = {(0.0, 0.0)} | {((s[~t] >= v).mean(), (s[t] >= v).mean()) for v in np.unique(s)}
    corners = every | {((s[~t] > v).mean(), (s[t] > v).mean()) for v in np.unique(s)}
    points = [tuple(p) for p in record["quality"]["roc"]]
    bench.check(2 < len(points) <= 200 and points[0] == (0, 0) and points[-1] == (1, 1), f"{len(points)} points from (0, 0) to (1, 1)")
    near = all(min(abs(a - x) + abs(r - y) for x, y in corners) < 1e-12 for a, r in points)
    bench.check(near and points == sorted(points), "they are points of the curve, in order")
    area = sum((b[0] - a[0]) * (b[1] + a[1]) / 2 for a, b in zip(points, points[1:]))
    bench.check(abs(area - record["quality"]["auroc"]) < 0.005, f"area below them {area:.4f}, AUROC {record['quality']['auroc']:.4f}")


def test_graphs(bench):
    c = bench.path("c.npy")
    np.save(c, cube())
    chain = ["snv", "pca", "rx"]
    for name, nodes, more, words in [
            ("self", ["snv", "rx"], {"connections": [["snv", "snv"], ["snv", "rx"]]}, ["snv -> snv", "circle"]),
            ("loop", chain, {"connections": [["snv", "pca"], ["pca", "snv"], ["pca", "rx"]]}, ["circle"]),
            ("loose", ["snv", "rx"], {"connections": []}, ["'snv' does not lead to 'rx'"]),
            ("branch", ["rx", "score_to_logit", "binary"], {"connections": [["rx", "score_to_logit"], ["rx", "binary"]]},
             ["'binary' must read 'score_to_logit'"]),
            ("join", ["snv", "unit_norm", "rx"], {"connections": [["snv", "rx"], ["unit_norm", "rx"]]}, ["two inputs"]),
            ("unknown", ["rxx"], {}, ["did you mean rx?"]),
            ("setting", [{"kind": "pca", "compnents": 3}, "rx"], {}, ["did you mean components?"]),
            ("many", [{"kind": "pca", "components": 50}, "rx"], {}, ["50", "8 channels"]),
            ("windows", [{"kind": "rx", "over": "local", "inner": 25, "outer": 9}], {}, ["inner the smaller one"]),
            ("no_score", ["pca"], {}, ["none of them scores"]),
            ("backwards", ["quantile", "rx"], {}, ["does not read"])]:
        refuse(bench, c, bench.path("s.npy"), "--pipeline", graph(bench, name, nodes, **more), words=[f"{name}.json" if name != "many" else "pca", *words])
    for name, text, words in [("deep", "[" * 100000, ["not valid JSON"]), ("half", "{", ["not valid JSON"]), ("list", "[]", ["no nodes"]),
                              ("number", '{"nodes": [{"kind": "rx", "eps": 1e999}]}', ["not valid JSON"]),
                              ("long", " " * (MIB + 1), ["no pipeline"])]:
        bench.path(f"{name}.json").write_text(text)
        refuse(bench, c, bench.path("s.npy"), "--pipeline", bench.path(f"{name}.json"), words=[f"{name}.json", *words])


def test_names(bench):
    """Every name is checked before the first cube is read: nothing may be written by a refused job."""
    c, out = bench.path("c.npy"), bench.path("s.npy")
    np.save(c, cube())
    gone = bench.path("gone")
    for option, name in [("--overlay", "o.png"), ("--mask-out", "m.png"), ("--detections", "d.csv"), ("--save", "f.safetensors")]:
        refuse(bench, c, out, option, gone / name, words=[name, "make its folder first"])
        refuse(bench, c, out, option, c, words=["read and written"], status=2)
    refuse(bench, c, gone / "s.npy", words=["make its folder first"])
    refuse(bench, c, out, "--mask-out", bench.path("m.xyz"), words=["m.xyz", "suffix"], status=2)
    refuse(bench, c, out, "--overlay", bench.path("o.png"), "--mask-out", bench.path("o.png"), words=["two outputs"], status=2)
    bench.path("link.npy").symlink_to(c)
    refuse(bench, c, bench.path("link.npy"), words=["read and written"], status=2)
    bench.check(not out.exists() and not leftovers(bench.folder), "a job with one bad name writes nothing")


# --- large cubes --------------------------------------------------------------------------------------------------------

def sparse(path, height, interleave, width=2000, bands=200):
    envi(path, np.zeros((1, 1, 1), np.uint16), body=b"", lines=height, samples=width, bands=bands, interleave=interleave)
    with path.open("r+b") as file:
        file.truncate(2 * height * width * bands)
    return path


def test_sparse(bench):
    if not bench.has_gdal():
        return
    for interleave in ("bsq", "bip"):
        try:
            path = sparse(bench.path(f"{interleave}.img"), 75000, interleave)
        except OSError as why:
            print(f"no sparse file of 60 GB here: {why}")
            return
        for pipeline in ("rx", "rx-local"):
            result = bench.run("plan", "detect", path, bench.path("s.npy"), "--pipeline", pipeline, "--memory", "512M", "--json", "-", "--quiet")
            peak = result.record["plan"]["peak_bytes"]["total"] if result.status == 0 else None
            bench.check(peak is not None and peak <= 512 * MIB, f"60 GB, {interleave}, {pipeline}: planned within 512 MiB")
        path.unlink()
        path = sparse(bench.path(f"{interleave}.img"), 300, interleave)
        out = [bench.path(n) for n in ("s.npy", "o.png", "d.csv")]
        record = bench.record("detect", path, out[0], "--overlay", out[1], "--detections", out[2], "--memory", "64M")
        bench.check(record and record["measured"]["peak_bytes"]["total"] <= 64 * MIB, f"240 MB, {interleave}: streams within 64 MiB")


def test_stop(bench):
    """Ctrl-C: status 130, one line, and no file is left."""
    if not bench.has_gdal():
        return
    try:
        path = sparse(bench.path("long.img"), 20000, "bsq")
    except OSError:
        return
    out = bench.path("stopped")
    out.mkdir()
    for pipeline in ("rx", "rx-local"):
        process = bench.start("detect", path, out / "s.npy", "--pipeline", pipeline, "--quiet", stderr=-1,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        while process.poll() is None and not any(out.iterdir()):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1].decode()
        bench.check(process.returncode == 130 and len(said.splitlines()) == 1, f"{pipeline}: stops with status {process.returncode}, {said.strip()!r}")
        bench.check(not list(out.iterdir()), f"{pipeline}: nothing is left")


def main():
    bench = Bench(sys.argv[1])
    for test in (test_arrays, test_order, test_digits, test_stands, test_headers, test_wavelengths, test_bad_bands, test_folders, test_masks, test_curve, test_graphs, test_names,
                 test_sparse, test_stop):
        for path in pathlib.Path(bench.folder).glob("*.npy"):
            path.unlink()
        test(bench)
    bench.finish()


main()
