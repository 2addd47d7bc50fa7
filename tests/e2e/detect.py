"""detect.py PROGRAM [DEVICE]: hyperspectral pipelines against plain NumPy in float64.

Every kind of node, deciders, metrics, masks, lists of detections, fitted pipelines in files, folders of cubes, memory limits and
refusals, on small synthetic cubes. With TESSERA_DATA also the area under the ROC curve of global RX on ten real scenes,
against the values that NumPy and publications have.
"""
import csv
import json
import os
import pathlib
import re
import sys

import numpy as np

from support import Bench, read_png

# data/README.md: computed by NumPy in float64; seven of them are also published (arXiv 2507.05730, Table 5).
SCENES = {"sandiego": 0.9403, "abu_airport_2": 0.8404, "abu_airport_1": 0.8221, "abu_beach_2": 0.9106, "abu_urban_1": 0.9907,
          "abu_urban_2": 0.9946, "abu_urban_3": 0.9513, "abu_urban_5": 0.9692, "sandiego_aviris1": 0.8866, "muufl_gulfport": 0.9919}
WAVES = np.linspace(430, 910, 24)


def cube(seed, height=40, width=31, bands=24, dtype=np.uint16):
    """Two materials, correlated bands, a slope of light, and some small objects with another spectrum."""
    rng = np.random.default_rng(seed)
    u = np.linspace(0, 1, bands)
    spectra = np.stack([1500 * np.exp(-(u - .5) ** 2 / .1), 900 + 600 * u])
    share = rng.uniform(0, 1, (height, width, 1))
    image = share * spectra[0] + (1 - share) * spectra[1]
    image = image * (1 + .2 * np.sin(np.arange(height) / 9))[:, None, None] + 200
    image = image + np.cumsum(rng.normal(0, 6, image.shape), -1) + rng.normal(0, 12, image.shape)
    truth = np.zeros((height, width), np.uint8)
    for _ in range(5):
        y, x = rng.integers(1, height - 3), rng.integers(1, width - 3)
        truth[y:y + 2, x:x + 2] = 1
        image[y:y + 2, x:x + 2] += 250 * np.exp(-(u - .3) ** 2 / .02)
    return np.maximum(image, 0).astype(dtype), truth


# --- B.2 in NumPy -------------------------------------------------------------------------------------------------

def whiten(x, mean, covariance, eps, cutoff):
    values, vectors = np.linalg.eigh(covariance + eps * np.eye(len(covariance)))
    keep = values > max(cutoff * len(values) * values[-1], 0)
    return (((x - mean) @ vectors[:, keep]) ** 2 / values[keep]).sum(-1)


def statistics(x):
    x = x.reshape(-1, x.shape[-1])
    return x.mean(0), np.cov(x.T)


def hull_removed(spectrum, at):
    """x / upper convex hull, by brute force: the hull at a band is the largest chord over it."""
    n = len(spectrum)
    hull = spectrum.copy()
    for a in range(n):
        for b in range(a + 1, n):
            t = (at[a:b + 1] - at[a]) / (at[b] - at[a])
            hull[a:b + 1] = np.maximum(hull[a:b + 1], spectrum[a] + t * (spectrum[b] - spectrum[a]))
    return spectrum / hull


def savgol(x, window, order, derivative):
    n, half, out = x.shape[-1], window // 2, np.empty_like(x)
    for band in range(n):
        first = min(max(band - half, 0), n - window)
        fit = np.polynomial.polynomial.polyfit(np.arange(window) - half, x[..., first:first + window].reshape(-1, window).T, order)
        if derivative:
            fit = np.polynomial.polynomial.polyder(fit, derivative)
        out[..., band] = np.polynomial.polynomial.polyval(band - first - half, fit).reshape(x.shape[:-1])
    return out


def trimmed(images, pixels, trim, times, eps, cutoff):
    """RX whose statistics are fitted again without pixels that score more than `trim` times the rank."""
    kept = pixels
    for _ in range(times):
        mean, covariance = statistics(kept)
        rank = np.linalg.matrix_rank(covariance + eps * np.eye(len(covariance)), hermitian=True)
        kept = pixels[whiten(pixels, mean, covariance, eps, cutoff) <= trim * rank]
    return [whiten(i, *statistics(kept), eps, cutoff) for i in images]


def around(image, inner, outer, eps):
    """RX of each pixel against the ring between two windows around it."""
    height, width, bands = image.shape
    scores = np.empty((height, width))
    for y in range(height):
        for x in range(width):
            ring = np.zeros((height, width), bool)
            ring[max(0, y - outer // 2):y + outer // 2 + 1, max(0, x - outer // 2):x + outer // 2 + 1] = True
            ring[max(0, y - inner // 2):y + inner // 2 + 1, max(0, x - inner // 2):x + inner // 2 + 1] = False
            mean, covariance = statistics(image[ring])
            far = image[y, x] - mean
            scores[y, x] = far @ np.linalg.solve(covariance + eps * np.eye(bands), far)
    return scores


def apply(node, images, waves):
    """One node over a list of images, fitted to all of them together; scores at the end."""
    kind, get = node["kind"], node.get
    everything = np.concatenate([i.reshape(-1, i.shape[-1]) for i in images]) if images[0].ndim == 3 else None
    image = get("over") == "image"
    if kind == "minmax":
        if image:
            return [(i - i.min((0, 1))) / np.maximum(i.max((0, 1)) - i.min((0, 1)), 1e-6) for i in images], waves
        return [(i - everything.min()) / max(np.ptp(everything), 1e-6) for i in images], waves
    if kind == "zscore":
        if image:
            return [(i - i.mean((0, 1))) / (i.std((0, 1)) + 1e-6) for i in images], waves
        return [(i - everything.mean(0)) / (everything.std(0, ddof=1) + 1e-8) for i in images], waves
    if kind == "sigmoid":
        middle = [np.sort(i.reshape(-1, i.shape[-1]), 0)[(i.shape[0] * i.shape[1] - 1) // 2] for i in images]
        return [1 / (1 + np.exp(-(i - m) / np.maximum(i.std((0, 1)), 1e-6))) for i, m in zip(images, middle)], waves
    if kind in ("unit_norm", "snv"):
        out = []
        for i in images:
            centred = i - i.mean(-1, keepdims=True)
            size = np.linalg.norm(centred, axis=-1, keepdims=True) if kind == "unit_norm" else centred.std(-1, keepdims=True)
            out.append(centred / np.maximum(size, 1e-8))
        return out, waves
    if kind == "savitzky_golay":
        return [savgol(i, get("window", 11), get("order", 2), get("derivative", 0)) for i in images], waves
    if kind == "continuum":
        at = waves if waves is not None else np.arange(images[0].shape[-1], dtype=float)
        return [np.apply_along_axis(hull_removed, -1, i, at) for i in images], waves
    if kind == "bandpass":
        keep = (waves >= get("from", 0)) & (waves <= get("to", 1e9))
        return [i[..., keep] for i in images], waves[keep]
    if kind == "pca":
        mean, covariance = statistics(everything)
        values, vectors = np.linalg.eigh(covariance)
        k = get("components", 3) or len(values)
        w = vectors[:, ::-1][:, :k] / (np.sqrt(values[::-1][:k] + get("eps", 1e-6)) if get("whiten") else 1)
        return [(i - mean) @ w for i in images], None
    if kind == "rx" and get("over") == "local":
        return [around(i, get("inner"), get("outer"), get("eps", 1e-6)) for i in images], None
    if kind == "rx" and get("trim"):
        return trimmed(images, everything, get("trim"), get("trims", 3), get("eps", 1e-6), get("cutoff", 2.0 ** -52)), None
    if kind == "rx":
        eps, cutoff = get("eps", 1e-6), get("cutoff", 2.0 ** -52)
        return [whiten(i, *statistics(i if image else everything), eps, cutoff) for i in images], None
    if kind == "lad":
        mean = everything.mean(0)
        a = 1 / (1 + (np.abs(mean[:, None] - mean) / (mean.mean() + 1e-12)) ** 2)
        np.fill_diagonal(a, 0)
        laplacian = np.diag(a.sum(1)) - a
        if get("normalised", True):
            root = 1 / (np.sqrt(a.sum(1)) + 1e-12)
            laplacian = root[:, None] * laplacian * root
        return [np.einsum("hwi,ij,hwj->hw", i - mean, laplacian, i - mean) for i in images], None
    if kind == "score_to_logit":
        scores = np.concatenate([i.ravel() for i in images])
        return [i - (scores.mean() + 2 * scores.std(ddof=1)) for i in images], None
    raise ValueError(kind)


def evaluate(nodes, images, waves=WAVES):
    images = [i.astype(np.float64) for i in images]
    for node in nodes:
        images, waves = apply(node, images, waves)
    return images


def auroc(scores, truth):
    order, ranks = np.sort(scores), None
    ranks = (np.searchsorted(order, scores, "left") + np.searchsorted(order, scores, "right") + 1) / 2
    p = truth.sum()
    return (ranks[truth > 0].sum() - p * (p + 1) / 2) / (p * (len(truth) - p))


def average_precision(scores, truth):
    total = 0.0
    for threshold in np.unique(scores[truth > 0]):
        marked = scores >= threshold
        total += (truth[scores == threshold]).sum() / truth.sum() * truth[marked].sum() / marked.sum()
    return total


# --- the tests ----------------------------------------------------------------------------------------------------

def write_envi(path, image, interleave, waves=WAVES, place=""):
    order = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}[interleave]
    path.write_bytes(np.ascontiguousarray(image.transpose(order)).tobytes())
    kind = {"uint16": 12, "int16": 2, "float32": 4}[image.dtype.name]
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {image.shape[1]}\nlines = {image.shape[0]}\nbands = {image.shape[2]}\nheader offset = 0\ndata type = {kind}\n"
        f"interleave = {interleave}\nbyte order = 0\nwavelength units = Nanometers\n"
        f"wavelength = {{{', '.join(f'{w:.6f}' for w in waves)}}}\n{place}")


def graph(bench, nodes):
    path = bench.path("graph.json")
    path.write_text(json.dumps({"nodes": nodes}))
    return path


PIPELINES = [
    [{"kind": "rx", "eps": 0}],
    [{"kind": "minmax"}, {"kind": "rx"}],
    [{"kind": "minmax"}, {"kind": "rx", "cutoff": 2.0 ** -23}],
    [{"kind": "minmax"}, {"kind": "pca", "name": "a", "components": 12}, {"kind": "pca", "name": "b", "components": 6, "whiten": True},
     {"kind": "rx"}],
    [{"kind": "zscore"}, {"kind": "lad"}],
    [{"kind": "minmax"}, {"kind": "lad", "normalised": False}],
    [{"kind": "savitzky_golay", "window": 7, "order": 3}, {"kind": "minmax"}, {"kind": "lad"}],
    [{"kind": "savitzky_golay", "window": 9, "order": 2, "derivative": 1}, {"kind": "pca", "components": 5}, {"kind": "rx", "eps": 0}],
    [{"kind": "bandpass", "from": 500, "to": 800}, {"kind": "unit_norm"}, {"kind": "zscore"}, {"kind": "rx", "eps": 1e-3}],
    [{"kind": "snv"}, {"kind": "pca", "components": 4}, {"kind": "rx"}],
    [{"kind": "continuum"}, {"kind": "rx", "eps": 1e-5}],
    [{"kind": "sigmoid"}, {"kind": "rx"}],
    [{"kind": "minmax", "over": "image"}, {"kind": "rx", "over": "image", "eps": 1e-5}],
    [{"kind": "minmax", "over": "image"}, {"kind": "lad"}],
    [{"kind": "zscore", "over": "image"}, {"kind": "pca", "components": 7}, {"kind": "rx"}],
    [{"kind": "minmax"}, {"kind": "rx"}, {"kind": "score_to_logit"}],
    [{"kind": "rx", "eps": 0, "trim": 1.5}],
    [{"kind": "minmax"}, {"kind": "pca", "components": 9}, {"kind": "rx", "eps": 0, "trim": 2, "trims": 2}, {"kind": "score_to_logit"}],
    [{"kind": "snv"}, {"kind": "pca", "components": 6}, {"kind": "rx", "eps": 0, "trim": 1.2, "trims": 1}],
    [{"kind": "sigmoid"}, {"kind": "rx", "trim": 2.5, "trims": 2}],
    [{"kind": "pca", "components": 0, "whiten": True, "eps": 0}, {"kind": "rx", "over": "local", "eps": 1.5, "inner": 3, "outer": 7}],
]


def check_scores(bench, got, want, what, tolerance=1e-4):
    size = np.maximum(np.abs(want), np.abs(want).mean())
    worst = np.max(np.abs(got - want) / size)
    bench.check(got.shape == want.shape and worst <= tolerance, f"{what}: scores within {worst:.2g} of NumPy's")


def test_nodes(bench, device):
    images = [cube(s, 40, 31)[0] for s in (1, 2)]
    folder = bench.path("cubes")
    folder.mkdir()
    for i, image in enumerate(images):
        write_envi(folder / f"c{i}.img", image, ["bil", "bsq"][i])
    for nodes in PIPELINES:
        name = " ".join(n["kind"] for n in nodes)
        record = bench.record("detect", folder, bench.path("scores"), "--pipeline", graph(bench, nodes), *device)
        if not record:
            continue
        for i, want in enumerate(evaluate(nodes, images)):
            check_scores(bench, np.load(bench.path("scores") / f"c{i}.npy"), want, f"{name}, image {i}")


def test_folder_truth(bench, device):
    """Figures of a folder are of all its pixels together."""
    folder, scores, truths = bench.path("set"), [], []
    folder.mkdir()
    for i in range(3):
        image, truth = cube(20 + i, 30 + i, 20)
        np.save(folder / f"c{i}.npy", image)
        np.save(folder / f"c{i}_mask.npy", truth)
        truths.append(truth.ravel())
    planned = bench.run("plan", "detect", folder, bench.path("set_out"), "--quiet", *device)
    bench.check(planned.status == 0 and not bench.path("set_out").exists(), "plan makes no folder")
    record = bench.record("detect", folder, bench.path("set_out"), "--pipeline", "lad", "--truth", folder, *device)
    for i in range(3):
        scores.append(np.load(bench.path("set_out") / f"c{i}.npy").ravel())
    want = auroc(np.concatenate(scores), np.concatenate(truths))
    bench.check(record and abs(record["quality"]["auroc"] - want) < 1e-12, f"AUROC of a folder, pooled: {want:.6f}")
    marks = [s >= np.quantile(s.astype(float), 0.995) for s in scores]
    bench.check(record["detect"]["anomalous_pixels"] == sum(m.sum() for m in marks), "a quantile of each image")
    np.save(bench.path("equal.npy"), np.full((20, 20, 5), 7, np.float32))
    record = bench.record("detect", bench.path("equal.npy"), bench.path("equal_out.npy"), *device)
    bench.check(record and record["detect"]["anomalous_pixels"] == 0, "equal pixels are no anomalies")


def test_forms(bench, device):
    """NPY, BHWC and ENVI in all interleaves give the same bits; so do blocks of any size, and a fitted pipeline from a file."""
    image, truth = cube(3)
    np.save(bench.path("hwc.npy"), image)
    np.save(bench.path("bhwc.npy"), image[None])
    np.save(bench.path("truth.npy"), truth)
    run = lambda source, *more: bench.record("detect", bench.path(source), bench.path("s.npy"), *more, *device)
    first = run("hwc.npy", "--save", bench.path("fitted.safetensors"))
    want = np.load(bench.path("s.npy"))
    run("bhwc.npy")
    bench.check(np.array_equal(np.load(bench.path("s.npy")).reshape(want.shape), want), "HWC and BHWC: the same scores")
    for interleave in ("bsq", "bil", "bip"):
        write_envi(bench.path("e.img"), image, interleave)
        run("e.img")
        bench.check(np.array_equal(np.load(bench.path("s.npy")), want), f"NPY and ENVI {interleave}: the same scores")
    loaded = run("hwc.npy", "--pipeline", bench.path("fitted.safetensors"))
    bench.check(np.array_equal(np.load(bench.path("s.npy")), want), "a fitted pipeline from a file: the same bits")
    bench.check(loaded["plan"]["fit_readings"] == 0 and first["plan"]["fit_readings"] == 1, "a fitted pipeline is not fitted again")
    planned = bench.run("plan", "detect", bench.path("hwc.npy"), bench.path("s.npy"), "--json", "-", "--quiet", *device).record
    bench.check(planned["plan"] == first["plan"] or planned["plan"]["passes"] == first["plan"]["passes"], "plan says what runs")
    bench.check("measured" not in planned, "plan runs nothing")
    told = planned["plan"]
    bench.check(told["seconds"] > 0 and told["devices"] and [c["phase"] for c in told["chosen"]] == ["statistics", "scores"] and
                told["device_reason"], f"plan says seconds and devices: {told}")
    np.save(bench.path("large.npy"), cube(8, 300, 150)[0])
    run("large.npy")
    want = np.load(bench.path("s.npy"))
    refused = bench.run("detect", bench.path("large.npy"), bench.path("s.npy"), "--memory", "1M", *device)
    told = re.search(r"--memory (\d+)M would do", refused.err)
    bench.check(refused.status == 1 and told, f"too little memory: {refused.err}")
    limit = int(told[1]) if told else 4
    limited = run("large.npy", "--memory", f"{limit}M")
    if limited:
        check_scores(bench, np.load(bench.path("s.npy")), want.astype(float), "a memory limit", 1e-6)
        bench.check(limited["plan"]["block_rows"] < 300, f"blocks of {limited['plan']['block_rows']} rows fit the limit")
        bench.check(limited["measured"]["peak_bytes"]["total"] <= limit << 20, "the limit is kept")
    for record in (first, loaded, limited):
        if record and record["device"] == "cpu":
            bench.check(record["plan"]["peak_bytes"] == record["measured"]["peak_bytes"],
                        f"planned {record['plan']['peak_bytes']} is measured {record['measured']['peak_bytes']}")


def components(marks):
    """8-connected groups, by flooding."""
    left, groups = {tuple(p) for p in np.argwhere(marks)}, []
    while left:
        stack, group = [left.pop()], []
        while stack:
            y, x = stack.pop()
            group.append((y, x))
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    if (y + dy, x + dx) in left:
                        left.remove((y + dy, x + dx))
                        stack.append((y + dy, x + dx))
        groups.append(group)
    return groups


def test_results(bench, device):
    image, truth = cube(4, 60, 50)
    image[0, 0] = 0
    np.save(bench.path("c.npy"), image)
    np.save(bench.path("t.npy"), truth)
    out = [bench.path(n) for n in ("s.npy", "m.png", "o.png", "d.csv", "d.geojson")]
    nodes = [{"kind": "rx", "eps": 0}, {"kind": "quantile", "quantile": 0.97}, {"kind": "metrics"}]
    record = bench.record("detect", bench.path("c.npy"), out[0], "--pipeline", graph(bench, nodes), "--truth", bench.path("t.npy"),
                          "--mask-out", out[1], "--overlay", out[2], "--detections", out[3], *device)
    scores = np.load(out[0]).astype(np.float64)
    marks = scores >= np.quantile(scores, 0.97)
    bench.check(np.array_equal(read_png(out[1]), marks * np.uint8(255)), "the mask is NumPy's quantile")
    picture = read_png(out[2])
    bench.check(picture.shape == (60, 50, 3) and (picture[marks] == [255, 0, 0]).all(), "the overlay marks the anomalies in red")
    q, t = record["quality"], truth.ravel()
    bench.check(abs(q["auroc"] - auroc(scores.ravel(), t)) < 1e-12, f"AUROC {q['auroc']:.6f}")
    bench.check(abs(q["average_precision"] - average_precision(scores.ravel(), t)) < 1e-12, "average precision")
    hit = int((marks.ravel() & (t > 0)).sum())
    bench.check(abs(q["precision"] - hit / marks.sum()) < 1e-12 and abs(q["recall"] - hit / t.sum()) < 1e-12, "precision, recall")
    bench.check(abs(q["iou"] - hit / (marks.sum() + t.sum() - hit)) < 1e-12, "IoU")
    groups = components(marks)
    rows = list(csv.DictReader(open(out[3])))
    want = sorted((len(g), round(float(np.mean([p[0] for p in g])), 3), round(max(scores[p] for p in g), 4)) for g in groups)
    got = sorted((int(r["pixels"]), float(r["row"]), round(float(r["score"]), 4)) for r in rows)
    close = len(want) == len(got) and np.allclose(np.array(want), np.array(got), rtol=1e-6, atol=2e-3)
    bench.check(close and record["detect"]["detections"] == len(groups), f"{len(groups)} detections, as flooding finds them")
    highest = [float(r["score"]) for r in rows]
    bench.check(highest == sorted(highest, reverse=True), "the list begins with the highest score")
    bench.record("detect", bench.path("c.npy"), out[0], "--pipeline", graph(bench, nodes), "--detections", out[4], *device)
    listed = json.loads(out[4].read_text())
    bench.check(len(listed["features"]) == len(groups), "GeoJSON lists the same")
    # a threshold fitted to other cubes
    nodes = [{"kind": "rx", "eps": 0}, {"kind": "false_alarm", "rate": 0.01}]
    other = cube(5, 60, 50)[0]
    np.save(bench.path("other.npy"), other)
    record = bench.record("detect", bench.path("c.npy"), out[0], "--pipeline", graph(bench, nodes), "--fit", bench.path("other.npy"),
                          "--mask-out", out[1], *device)
    mean, covariance = statistics(other.astype(float))
    limit = np.quantile(whiten(other.astype(float), mean, covariance, 0, 0), 0.99)
    check_scores(bench, np.load(out[0]), whiten(image.astype(float), mean, covariance, 0, 0), "--fit other cubes")
    bench.check(abs(record["detect"]["threshold"] / limit - 1) < 1e-4, "the threshold of a false-alarm rate is of the fitted cubes")
    bench.check(record["detect"]["fitted_pixels"] == 3000 and len(record["plan"]["passes"]) == 3, "three passes over them")


def test_places(bench, device):
    """Detections of a cube with a place have its coordinates, and so have the scores."""
    if not bench.has_gdal():
        return
    write_envi(bench.path("p.img"), cube(9)[0], "bil", place="map info = {UTM, 1, 1, 500000, 5100000, 30, 20, 32, North, WGS-84}\n")
    record = bench.record("detect", bench.path("p.img"), bench.path("p.tif"), "--detections", bench.path("p.csv"), *device)
    rows = list(csv.DictReader(open(bench.path("p.csv"))))
    good = all(abs(float(r["x"]) - 500000 - 30 * (float(r["column"]) + .5)) < .1 and
               abs(float(r["y"]) - 5100000 + 20 * (float(r["row"]) + .5)) < .1 for r in rows)
    bench.check(record and rows and good, "detections have the coordinates of the cube")
    bench.record("detect", bench.path("p.img"), bench.path("p.tif"), "--detections", bench.path("p.geojson"), *device)
    points = [f["geometry"]["coordinates"] for f in json.loads(bench.path("p.geojson").read_text())["features"]]
    bench.check(len(points) == len(rows) and all(x >= 500000 and y <= 5100000 for x, y in points), "GeoJSON has them too")


def test_holes(bench, device):
    image = cube(6)[0].astype(np.float32)
    image[3, 4, 5] = np.nan
    image[9, 9] = np.inf
    image[:, :, 7] = 100  # a constant band
    np.save(bench.path("h.npy"), image)
    record = bench.record("detect", bench.path("h.npy"), bench.path("s.npy"), *device)
    scores = np.load(bench.path("s.npy"))
    bench.check(np.isnan(scores[3, 4]) and np.isnan(scores[9, 9]) and np.isnan(scores).sum() == 2, "pixels without values have no score")
    bench.check(record["detect"]["pixels_without_score"] == 2 and record["detect"]["rank"] == 23, "a constant band is left out of the rank")
    good = np.isfinite(image).all(-1)
    x = image[good].astype(np.float64)
    mean, covariance = statistics(np.delete(x, 7, 1))
    check_scores(bench, scores[good], whiten(np.delete(x, 7, 1), mean, covariance, 0, 0), "holes and a constant band")


def test_constant(bench, device):
    image = np.full((30, 20, 5), 7, np.float32)
    image[3, 3, 2] = np.nan
    np.save(bench.path("k.npy"), image)
    bench.record("detect", bench.path("k.npy"), bench.path("s.npy"), *device)
    scores = np.load(bench.path("s.npy"))
    bench.check(np.isnan(scores[3, 3]) and np.nansum(np.abs(scores)) == 0, "equal pixels have the score 0")


def test_refusals(bench):
    np.save(bench.path("few.npy"), cube(7)[0][:4, :5])
    np.save(bench.path("c.npy"), cube(7)[0])
    np.save(bench.path("wrong.npy"), np.zeros((3, 3), np.uint8))
    (bench.path("empty")).mkdir()
    loop = bench.path("loop.json")
    loop.write_text(json.dumps({"nodes": [{"kind": "snv"}, {"kind": "pca"}, {"kind": "rx"}],
                                "connections": [["snv", "pca"], ["pca", "snv"], ["pca", "rx"]]}))
    plain = graph(bench, [{"kind": "rx"}])
    c, s = bench.path("c.npy"), bench.path("s.npy")
    for args, *status, words in [
            ((bench.path("few.npy"), s), ["20 pixels", "24 channels"]),
            ((bench.path("empty"), bench.path("e")), ["empty"]),
            ((bench.path("none.npy"), s), ["none.npy"]),
            ((c, s, "--pipeline", "rxx"), 2, ["did you mean rx?"]),
            ((c, s, "--pipeline", loop), ["snv", "circle"]),
            ((c, s, "--pipeline", bench.path("none.json")), ["none.json"]),
            ((c, s, "--pipeline", c.with_suffix(".safetensors")), ["c.safetensors"]),
            ((c, s, "--pipeline", plain, "--mask-out", bench.path("m.png")), 2, ["--mask-out", "decides nothing"]),
            ((c, s, "--truth", bench.path("wrong.npy")), ["wrong.npy"]),
            ((c, bench.path("s.jpg")), 2, [".npy or .tif"]),
            ((c, c), 2, ["read and written"]),
            ((c, s, "--detections", bench.path("d.txt")), 2, ["--detections", ".csv"]),
            ((c, s, "--memory", "1M"), ["--memory"])]:
        bench.check_refused(bench.run("detect", *args, "--quiet"), status[0] if status else 1, *words)
    graph(bench, [{"kind": "bandpass", "from": 700}, {"kind": "rx"}])
    bench.check_refused(bench.run("detect", c, s, "--pipeline", bench.path("graph.json"), "--quiet"), 1, "needs wavelengths")


def test_scenes(bench, device):
    data = pathlib.Path(os.environ.get("TESSERA_DATA", "/nowhere")) / "hsi"
    gains = []
    for name, want in SCENES.items():
        if not (data / f"{name}.npy").exists():
            continue
        record = bench.record("detect", data / f"{name}.npy", bench.path("s.npy"), "--truth", data / f"{name}_mask.npy", *device)
        got = record["quality"]["auroc"] if record else 0
        bench.check(abs(got - want) <= 1e-4, f"{name}: AUROC {got:.5f}, known {want}")
        if (data / f"{name}.img").exists():
            scores = np.load(bench.path("s.npy"))
            bench.record("detect", data / f"{name}.img", bench.path("s.npy"), *device)
            bench.check(np.array_equal(scores, np.load(bench.path("s.npy"))), f"{name}: ENVI gives the scores of NPY")
        record = bench.record("detect", data / f"{name}.npy", bench.path("s.npy"), "--pipeline", "rx-trimmed", "--truth", data / f"{name}_mask.npy", *device)
        gains.append(record["quality"]["auroc"] - got if record else -1)
    if gains:
        bench.check(min(gains) >= -0.01 and np.mean(gains) > 0, f"rx-trimmed against rx: {np.mean(gains):+.4f} in the mean, at worst {min(gains):+.4f}")


def main():
    bench = Bench(sys.argv[1])
    device = ["--device", sys.argv[2]] if len(sys.argv) > 2 else []
    if device:
        bench.need_device(sys.argv[2])
    test_nodes(bench, device)
    test_folder_truth(bench, device)
    test_forms(bench, device)
    test_results(bench, device)
    test_places(bench, device)
    test_holes(bench, device)
    test_constant(bench, device)
    if not device:
        test_refusals(bench)
    test_scenes(bench, device)
    bench.finish()


main()
