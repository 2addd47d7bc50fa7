"""cuvis.py PROGRAM: pipelines of cuvis.ai: `convert` of YAML and weights, against cuvis.ai's mathematics in NumPy.

Scores of a converted pipeline are compared with what cuvis.ai computes from the same tensors, in float64. Then files that
are wrong, and files that are hostile: each must end with one line.
"""
import json
import sys

import numpy as np

from support import Bench, leftovers, skip, write_pth

BANDS = 24
WAVES = np.linspace(430, 890, BANDS).round()
RX, DATA = "cuvis_ai.node.anomaly.rx_detector.RXGlobal", "cuvis_ai.node.data.LentilsAnomalyDataNode"
NORM = "cuvis_ai.node.normalization."


def cube(seed, height=48, width=40):
    rng = np.random.default_rng(seed)
    u = np.linspace(0, 1, BANDS)
    share = rng.uniform(0, 1, (height, width, 1))
    image = share * 1500 * np.exp(-(u - .5) ** 2 / .1) + (1 - share) * (900 + 600 * u) + 300
    image = image + np.cumsum(rng.normal(0, 20, image.shape), -1) + rng.normal(0, 60, image.shape)
    image[5:8, 6:9] += 900 * np.exp(-(u - .3) ** 2 / .02)
    return np.clip(image, 0, 65535).astype(np.uint16)


def write_envi(path, image):
    path.write_bytes(image.tobytes())
    path.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {image.shape[1]}\nlines = {image.shape[0]}\nbands = {image.shape[2]}\nheader offset = 0\ndata type = 12\n"
        f"interleave = bip\nbyte order = 0\nwavelength units = Nanometers\nwavelength = {{{', '.join(f'{w:g}' for w in WAVES)}}}\n")


def yaml_value(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value and abs(value) < 1e-3:
        return f"{value:.1e}".replace("e", "e")  # as PyYAML: 1.0e-06
    return json.dumps(value)


def yaml_text(nodes, links):
    """As cuvis.ai saves it. Nodes are (name, class, hparams), connections "A.port > B.port"."""
    text = "metadata:\n  name: A_Test\n  description: Trained model from a test\n  created: ''\n  tags:\n  - statistical\n  author: cuvis.ai\n"
    text += "  cuvis_ai_version: 0.19.0\nplugins:\n- cuvis_ai_builtin\nnodes:\n"
    for name, of, hparams in nodes:
        text += f"- name: {name}\n  class_name: {of}\n"
        if hparams is not None:
            text += "  hparams:" + ("\n" if hparams else " {}\n")
            text += "".join(f"    {key}: {yaml_value(value)}\n" for key, value in hparams.items())
    text += "connections:\n"
    for link in links:
        source, target = (end.rsplit(".", 1) for end in link.split(" > "))
        text += f"- source: {source[0]}.outputs.{source[1]}\n  target: {target[0]}.inputs.{target[1]}\n"
    return text


def chain(*nodes):
    """Data and a chain of (name, class, hparams, input, output)."""
    links, before = [], "data.cube"
    for name, _, _, port, out in nodes:
        links.append(f"{before} > {name}.{port}")
        before = f"{name}.{out}"
    return yaml_text([("data", DATA, {"normal_class_ids": [0, 1]})] + [n[:3] for n in nodes], links)


MINMAX = ("MinMaxNormalizer", NORM + "MinMaxNormalizer", {"eps": 1e-6, "use_running_stats": True}, "data", "normalized")
GLOBAL = ("RXGlobal", RX, {"eps": 1e-6, "num_channels": BANDS, "cache_inverse": True}, "data", "scores")
LOGIT = ("ScoreToLogit", "cuvis_ai.node.conversion.ScoreToLogit", {"init_scale": 1.0, "init_bias": 0.0}, "scores", "logits")
BINARY = ("BinaryDecider", "cuvis_ai.node.deciders.binary_decider.BinaryDecider", {"threshold": 0.5}, "logits", "decisions")
QUANTILE = ("quantile", "cuvis_ai.deciders.binary_decider.QuantileBinaryDecider", {"quantile": 0.99, "reduce_dims": None}, "logits",
            "decisions")
LAD = ("lad", "cuvis_ai.anomaly.lad_detector.LADGlobal",
       {"num_channels": BANDS, "eps": 1e-8, "normalize_laplacian": True, "use_numpy_laplacian": True}, "data", "scores")


# --- cuvis.ai in NumPy: fits as it does, in float64, and keeps what it keeps, in float32 ---------------------------

def single(x):
    return np.asarray(x, np.float32)


def moments(x):
    flat = x.reshape(-1, x.shape[-1]).astype(np.float64)
    return single(flat.mean(0)), single(np.cov(flat.T))


def minmax(x, state, eps=1e-6):
    return (x - float(state["running_min"])) / max(float(state["running_max"]) - float(state["running_min"]), eps)


def fit_minmax(x):
    return {"running_min": single(x.min()), "running_max": single(x.max())}


def fit_rx(x, eps=1e-6):
    mean, covariance = moments(x)
    covariance = single(covariance + eps * np.eye(len(mean), dtype=np.float32))
    u, s, v = np.linalg.svd(covariance)  # pinv of float32: its own cutoff
    keep = s > s.max() * len(s) * np.finfo(np.float32).eps
    return {"mu": mean, "cov": covariance, "cov_inv": single((v.T[:, keep] / s[keep]) @ u.T[keep])}


def form(x, mean, matrix):
    centred = x - mean.astype(np.float64)
    return np.einsum("hwi,ij,hwj->hw", centred, matrix.astype(np.float64), centred, optimize=True)


def rx(x, state):
    if state["cov_inv"].size:
        return form(x, state["mu"], state["cov_inv"])
    return form(x, state["mu"], np.linalg.inv(state["cov"].astype(np.float64)))


def fit_lad(x):
    mean = moments(x)[0].astype(np.float64)
    a = 1 / (1 + (np.abs(mean[:, None] - mean) / (mean.mean() + 1e-12)) ** 2)
    np.fill_diagonal(a, 0)
    root = 1 / (np.sqrt(a.sum(1)) + 1e-12)
    return {"M": mean, "L": root[:, None] * (np.diag(a.sum(1)) - a) * root}


def fit_pca(x, k):
    mean, covariance = moments(x)
    values, vectors = np.linalg.eigh(covariance.astype(np.float64))
    return {"_mean": mean, "_explained_variance": single(values[::-1][:k]), "_components": single(vectors[:, ::-1][:, :k].T)}


def pca(x, state, whiten, eps=1e-6):
    out = (x - state["_mean"].astype(np.float64)) @ state["_components"].T.astype(np.float64)
    return out / np.sqrt(state["_explained_variance"].astype(np.float64) + eps) if whiten else out


def unit_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.maximum(np.linalg.norm(centred, axis=-1, keepdims=True), 1e-8)


def snv(x):
    return (x - x.mean(-1, keepdims=True)) / np.maximum(x.std(-1, ddof=1, keepdims=True), 1e-8)


def savgol(x, window, order, derivative, spacing, pad, **how):
    powers = np.arange(order + 1)
    basis = (np.arange(window) - window // 2)[:, None].astype(float) ** powers
    kernel = np.linalg.pinv(basis)[derivative] * np.prod(np.arange(1, derivative + 1)) / spacing ** derivative
    padded = np.pad(x, ((0, 0), (0, 0), (window // 2, window // 2)), pad, **how)
    return sum(kernel[i] * padded[..., i:i + x.shape[-1]] for i in range(window))


def continuum(x):
    out = np.empty_like(x)
    for place in np.ndindex(x.shape[:2]):
        s, hull = x[place], x[place].copy()
        for a in range(BANDS):
            for b in range(a + 1, BANDS):
                t = (WAVES[a:b + 1] - WAVES[a]) / (WAVES[b] - WAVES[a])
                hull[a:b + 1] = np.maximum(hull[a:b + 1], s[a] + t * (s[b] - s[a]))
        out[place] = s / hull
    return out


# --- the tests ----------------------------------------------------------------------------------------------------

def check_scores(bench, want, what, tolerance=1e-5, floor=None):
    got = np.load(bench.path("s.npy")).astype(np.float64)
    size = np.maximum(np.abs(want), np.abs(want).mean() if floor is None else floor)
    worst = np.max(np.abs(got - want) / size) if got.shape == want.shape else np.inf
    bench.check(worst <= tolerance, f"{what}: scores within {worst:.2g} of cuvis.ai's")


def convert(bench, text, tree, *more, name="p", out="out.safetensors"):
    bench.path(f"{name}.yaml").write_text(text)
    if tree is not None:
        write_pth(bench.path(f"{name}.pt"), {"state_dict": tree, "metadata": {"name": "A_Test", "created": ""}})
    return bench.record("convert", bench.path(f"{name}.yaml"), bench.path(out), *more)


def detect(bench, pipeline, source="cube.img", *more):
    return bench.record("detect", bench.path(source), bench.path("s.npy"), "--pipeline", bench.path(pipeline), "--device", "cpu", *more)


def test_fitted(bench):
    """Scores of the converted pipeline on a cube that it was not fitted to."""
    train, image = cube(1).astype(np.float64), cube(2)
    x = image.astype(np.float64)
    write_envi(bench.path("cube.img"), image)
    scale = fit_minmax(train)
    small, there = minmax(train, scale), minmax(x, scale)
    score = fit_rx(small)
    want = rx(there, score)

    # minmax, RX, logits, decisions: the pipeline rx_statistical
    spread = rx(small, score)
    head = {"scale": single(0.75), "bias": single(spread.mean() + 2 * spread.std(ddof=1))}
    tree = {"data": {}, "MinMaxNormalizer": scale, "RXGlobal": score, "ScoreToLogit": head, "BinaryDecider": {}}
    text = chain(MINMAX, GLOBAL, LOGIT, BINARY)
    text += "- source: data.outputs.mask\n  target: watch.inputs.mask\n- source: BinaryDecider.outputs.decisions\n  target: watch.inputs.decisions\n"
    text = text.replace("connections:\n", "- name: watch\n  class_name: cuvis_ai.node.anomaly_visualization.AnomalyMask\n  hparams:\n    channel: 30\nconnections:\n")
    record = convert(bench, text, tree)
    bench.check(record and record["convert"]["fitted"] and [n["kind"] for n in record["convert"]["nodes"]] ==
                ["minmax", "rx", "score_to_logit", "binary"] and record["convert"]["left_out"] ==
                [{"name": "watch", "class": "cuvis_ai.node.anomaly_visualization.AnomalyMask"}] and
                [d["name"] for d in record["convert"]["data"]] == ["data"], "the record names what was converted and left out")
    detect(bench, "out.safetensors", "cube.img", "--mask-out", bench.path("mask.npy"))
    logits = float(head["scale"]) * (want - float(head["bias"]))
    check_scores(bench, logits, "minmax, RX, logits", floor=want.mean())
    got = np.load(bench.path("mask.npy")).reshape(logits.shape) > 0
    sure = np.abs(logits) > 1e-3
    bench.check(np.array_equal(got[sure], (logits >= 0)[sure]) and got.any(), "the decisions of cuvis.ai")

    # an inverse that was trained: neither symmetric nor that of the covariance any more
    rng = np.random.default_rng(4)
    trained = {**score, "mu": single(score["mu"] + rng.normal(0, .01, BANDS)),
               "cov_inv": single(score["cov_inv"] * (1 + rng.normal(0, 1e-3, (BANDS, BANDS))) + 3 * np.eye(BANDS))}
    convert(bench, chain(MINMAX, GLOBAL), {"MinMaxNormalizer": scale, "RXGlobal": trained})
    detect(bench, "out.safetensors")
    check_scores(bench, rx(there, trained), "a trained inverse")

    # no cached inverse: a system is solved
    solved = {**score, "cov_inv": np.zeros((0, 0), np.float32)}
    convert(bench, chain(MINMAX, (*GLOBAL[:2], {**GLOBAL[2], "cache_inverse": False}, *GLOBAL[3:])),
            {"MinMaxNormalizer": scale, "RXGlobal": solved})
    detect(bench, "out.safetensors")
    check_scores(bench, rx(there, solved), "without a cached inverse")

    # a band that comes twice: pinv drops a direction, and leaves rounding there
    doubled = [np.concatenate([y[..., :7], y[..., 6:7], y[..., 8:]], -1) for y in (small, there)]
    dropped = fit_rx(doubled[0], 1e-9)
    np.save(bench.path("doubled.npy"), np.concatenate([image[..., :7], image[..., 6:7], image[..., 8:]], -1))
    convert(bench, chain(MINMAX, GLOBAL), {"MinMaxNormalizer": scale, "RXGlobal": dropped})
    detect(bench, "out.safetensors", "doubled.npy")
    check_scores(bench, rx(doubled[1], dropped), "a dropped direction")

    # two PCA nodes; the second one whitens; components that training moved
    first = fit_pca(small, 10)
    first["_components"] = single(first["_components"] + rng.normal(0, .02, first["_components"].shape))
    second = fit_pca(pca(small, first, False), 5)
    last = fit_rx(pca(pca(small, first, False), second, True))
    nodes = [(f"pca{i}", "cuvis_ai.node.dimensionality_reduction.TrainablePCA",
              {"num_channels": c, "n_components": k, "whiten": w, "init_method": "svd", "eps": 1e-6}, "data", "projected")
             for i, c, k, w in ((1, BANDS, 10, False), (2, 10, 5, True))]
    convert(bench, chain(MINMAX, *nodes, GLOBAL, QUANTILE),
            {"MinMaxNormalizer": scale, "pca1": first, "pca2": second, "RXGlobal": last})
    detect(bench, "out.safetensors")
    check_scores(bench, rx(pca(pca(there, first, False), second, True), last), "minmax, PCA, PCA, RX")

    lad = fit_lad(small)
    convert(bench, chain(MINMAX, LAD, QUANTILE), {"MinMaxNormalizer": scale, "lad": lad})
    detect(bench, "out.safetensors", "cube.img", "--mask-out", bench.path("mask.npy"))
    want = form(there, single(lad["M"]), single(lad["L"]))
    check_scores(bench, want, "minmax, LAD")
    got = np.load(bench.path("mask.npy")).reshape(want.shape) > 0
    bench.check(abs(int(got.sum()) - int((want >= np.quantile(want, .99)).sum())) <= 1, "the quantile of an image")

    # nodes that need no buffers before a fitted one
    filters = [
        ("savgol", lambda y: savgol(y, 7, 2, 0, 1, "edge"), ("sg", "cuvis_ai.node.pretreatments.savitzky_golay.SavitzkyGolay",
         {"window_length": 7, "polyorder": 2, "deriv": 0, "delta": 1.0, "mode": "nearest"}, "cube", "cube")),
        ("savgol, derivative, mirror", lambda y: savgol(y, 9, 3, 1, 2.0, "reflect"), ("sg", "SavitzkyGolay",
         {"window_length": 9, "polyorder": 3, "deriv": 1, "delta": 2.0, "mode": "mirror"}, "cube", "cube")),
        ("savgol, zeros", lambda y: savgol(y, 5, 2, 2, 1, "constant"), ("sg", "cuvis_ai.node.pretreatments.SavitzkyGolay",
         {"window_length": 5, "polyorder": 2, "deriv": 2, "mode": "constant"}, "cube", "cube")),
        ("SNV", snv, ("snv", "cuvis_ai.node.pretreatments.snv.SNVCorrection", {"eps": 1e-8}, "cube", "cube")),
        ("unit norm", unit_norm, ("norm", NORM + "PerPixelUnitNorm", {"eps": 1e-8}, "data", "normalized")),
        ("nothing", lambda y: y, ("same", NORM + "IdentityNormalizer", {}, "data", "normalized")),
    ]
    for what, function, node in filters:
        fitted = fit_rx(function(train), 1e-3)
        convert(bench, chain(node, GLOBAL), {"RXGlobal": fitted})
        detect(bench, "out.safetensors")
        check_scores(bench, rx(function(x), fitted), f"{what}, RX")


def test_wavelengths(bench):
    """Bandpass, unit norm and z-score need the wavelengths of a cube; so do the hull and derivatives by wavelength."""
    train, x = cube(1).astype(np.float64), cube(2).astype(np.float64)
    keep = WAVES >= 700
    before, there = unit_norm(train[..., keep]), unit_norm(x[..., keep])
    mean, deviation = before.reshape(-1, keep.sum()).mean(0), before.reshape(-1, keep.sum()).std(0, ddof=1)
    z = {"zscore_mean": single(mean), "zscore_std": single(deviation + 1e-8)}
    apply = lambda y: (y - z["zscore_mean"].astype(np.float64)) / z["zscore_std"].astype(np.float64)
    score = fit_rx(apply(before))
    nodes = [("band", "cuvis_ai.node.preprocessors.BandpassByWavelength", {"min_wavelength_nm": 700.0, "max_wavelength_nm": None}, "data",
              "filtered"), ("norm", NORM + "PerPixelUnitNorm", {"eps": 1e-8}, "data", "normalized"),
             ("z", "cuvis_ai.anomaly.deep_svdd.ZScoreNormalizerGlobal", {"num_channels": int(keep.sum()), "eps": 1e-8, "hidden": 128}, "data",
              "normalized"), GLOBAL]
    text = chain(*nodes) + "- source: data.outputs.wavelengths\n  target: band.inputs.wavelengths\n"
    tree = {"z": z, "RXGlobal": score}
    if convert(bench, text, tree, "--cube", bench.path("cube.img")):
        detect(bench, "out.safetensors")
        check_scores(bench, rx(apply(there), score), "bandpass, unit norm, z-score, RX")
    result = bench.run("convert", bench.path("p.yaml"), bench.path("no.safetensors"))
    bench.check_refused(result, 2, "--cube", "wavelengths")
    np.save(bench.path("plain.npy"), cube(2))
    result = bench.run("convert", bench.path("p.yaml"), bench.path("no.safetensors"), "--cube", bench.path("plain.npy"))
    bench.check_refused(result, 1, "band", "wavelengths")

    node = ("hull", "cuvis_ai.node.pretreatments.continuum_removal.ContinuumRemoval", {"eps": 1e-8}, "cube", "cube")
    text = chain(node, GLOBAL) + "- source: data.outputs.wavelengths\n  target: hull.inputs.wavelengths\n"
    fitted = fit_rx(continuum(train), 1e-5)
    if convert(bench, text, {"RXGlobal": fitted}, "--cube", bench.path("cube.img")):
        detect(bench, "out.safetensors")
        check_scores(bench, rx(continuum(x), fitted), "continuum, RX")

    node = ("sg", "SavitzkyGolay", {"window_length": 7, "polyorder": 2, "deriv": 1, "delta": 1.0, "mode": "nearest"}, "cube", "cube")
    text = chain(node, GLOBAL) + "- source: data.outputs.wavelengths\n  target: sg.inputs.wavelengths\n"
    function = lambda y: savgol(y, 7, 2, 1, np.sort(np.diff(WAVES))[(BANDS - 2) // 2], "edge")
    fitted = fit_rx(function(train), 1e-3)
    if convert(bench, text, {"RXGlobal": fitted}, "--cube", bench.path("cube.img")):
        detect(bench, "out.safetensors")
        check_scores(bench, rx(function(x), fitted), "derivative by wavelength, RX")
    result = bench.run("convert", bench.path("p.yaml"), bench.path("no.safetensors"))
    bench.check_refused(result, 2, "--cube", "wavelengths")


def test_trained(bench):
    """The selector and Deep SVDD: scores where we have such nodes, else the message names their classes."""
    train, x = cube(1).astype(np.float64), cube(2).astype(np.float64)
    rng, scale = np.random.default_rng(5), fit_minmax(train)
    logits = single(rng.normal(0, 2, BANDS))

    def have(text, *classes):
        bench.path("t.yaml").write_text(text)
        result = bench.run("convert", bench.path("t.yaml"), bench.path("t.json"))
        if "don't have" in result.err:
            bench.check_refused(result, 1, *classes)
        return result.status == 0

    for hard in (False, True):
        selector = ("select", "cuvis_ai.node.channel_selector.SoftChannelSelector",
                    {"n_select": 4, "input_channels": BANDS, "init_method": "variance", "temperature_init": 5.0, "temperature_min": 0.1,
                     "temperature_decay": 0.9, "hard": hard, "eps": 1e-6}, "data", "selected")
        weights = np.exp(logits.astype(np.float64) / 5)
        weights *= 4 / weights.sum()
        if hard:
            weights = (logits >= np.sort(logits)[-4]).astype(np.float64)
        score = fit_rx(minmax(train, scale) * weights)
        text = chain(MINMAX, selector, GLOBAL)
        if have(text, "select (cuvis_ai.node.channel_selector.SoftChannelSelector)"):
            convert(bench, text, {"MinMaxNormalizer": scale, "select": {"channel_logits": logits}, "RXGlobal": score})
            detect(bench, "out.safetensors")
            check_scores(bench, rx(minmax(x, scale) * weights, score), f"minmax, selector (hard {hard}), RX")

    svdd = "cuvis_ai.node.anomaly.deep_svdd."
    nodes = [("norm", NORM + "PerPixelUnitNorm", {"eps": 1e-8}, "data", "normalized"),
             ("z", svdd + "ZScoreNormalizerGlobal", {"num_channels": BANDS, "eps": 1e-8}, "data", "normalized"),
             ("net", svdd + "DeepSVDDProjection", {"in_channels": BANDS, "rep_dim": 8, "hidden": 16, "kernel": "linear", "n_rff": 2048, "gamma": None,
                                                   "mlp_forward_batch_size": 65536}, "data", "embeddings"),
             ("score", svdd + "DeepSVDDScores", {"name": None, "execution_stages": None}, "embeddings", "scores"), QUANTILE]
    text = chain(*nodes).replace("connections:\n", f"- name: centre\n  class_name: {svdd}DeepSVDDCenterTracker\n  hparams:\n    rep_dim: 8\n"
                                 "    alpha: 0.1\n    update_in_eval: false\nconnections:\n- source: net.outputs.embeddings\n"
                                 "  target: centre.inputs.embeddings\n- source: centre.outputs.center\n  target: score.inputs.center\n")
    if not have(text, f"net ({svdd}DeepSVDDProjection)", f"centre ({svdd}DeepSVDDCenterTracker)", f"score ({svdd}DeepSVDDScores)"):
        return
    before = unit_norm(train).reshape(-1, BANDS)
    z = {"zscore_mean": single(before.mean(0)), "zscore_std": single(before.std(0, ddof=1) + 1e-8)}
    net = {"net.fc1.weight": single(rng.normal(0, .2, (16, BANDS))), "net.fc1.bias": single(rng.normal(0, .2, 16)),
           "net.fc2.weight": single(rng.normal(0, .3, (8, 16)))}
    centre = single(rng.normal(0, .1, 8))
    embed = lambda y: np.maximum((unit_norm(y) - z["zscore_mean"].astype(float)) / z["zscore_std"].astype(float)
                                 @ net["net.fc1.weight"].T.astype(float) + net["net.fc1.bias"], 0) @ net["net.fc2.weight"].T.astype(float)
    if convert(bench, text, {"z": z, "net": net, "centre": {"_tracked_center": centre}}):
        detect(bench, "out.safetensors")
        check_scores(bench, ((embed(x) - centre.astype(float)) ** 2).sum(-1), "Deep SVDD")
    bench.path("t.yaml").write_text(text.replace("centre.outputs.center", "net.outputs.embeddings"))
    bench.check_refused(bench.run("convert", bench.path("t.yaml"), bench.path("t.json")), 1, "score.inputs.center")


def test_graph(bench):
    """Without weights: a graph that detect fits, to what cuvis.ai would have fitted."""
    image = cube(3)
    image[..., 7] = image[..., 6]  # a direction that pinv drops
    np.save(bench.path("g.npy"), image)
    x = image.astype(np.float64)

    def both(text, want, what, tolerance=1e-4):
        if convert(bench, text, None, name="graph", out="g.json"):
            detect(bench, "g.json", "g.npy")
            check_scores(bench, want, what, tolerance)
            return json.loads(bench.path("g.json").read_text())

    scaled = (x - x.min()) / np.ptp(x)
    flat = scaled.reshape(-1, BANDS)
    values, vectors = np.linalg.eigh(np.cov(flat.T) + 1e-9 * np.eye(BANDS))
    kept = values > 2.0 ** -23 * BANDS * values[-1]
    bench.check(not kept.all(), "the test has a direction that is dropped")
    score = (((scaled - flat.mean(0)) @ vectors[:, kept]) ** 2 / values[kept]).sum(-1)
    text = chain(MINMAX, (*GLOBAL[:2], {**GLOBAL[2], "eps": 1e-9}, *GLOBAL[3:]), LOGIT, BINARY)
    text = text.replace("connections:\n", "- name: m\n  class_name: cuvis_ai.node.metrics.AnomalyDetectionMetrics\n  hparams:\n    execution_stages: null\n"
                        "connections:\n- source: BinaryDecider.outputs.decisions\n  target: m.inputs.decisions\n"
                        "- source: ScoreToLogit.outputs.logits\n  target: m.inputs.logits\n")
    graph = both(text, score - (score.mean() + 2 * score.std(ddof=1)), "a graph: minmax, RX, logits")
    bench.check(graph and [n["kind"] for n in graph["nodes"]] == ["minmax", "rx", "score_to_logit", "binary", "metrics"] and
                graph["nodes"][1]["cutoff"] == 2.0 ** -23 and graph["nodes"][1]["eps"] == 1e-9 and
                ["BinaryDecider", "m"] in graph["connections"], "the graph as JSON")

    per_image = ("MinMaxNormalizer", NORM + "MinMaxNormalizer", {"eps": 1e-6, "use_running_stats": False}, "data", "normalized")
    batch = ("rx", "cuvis_ai.anomaly.rx_detector.RXPerBatch", {"eps": 1e-4}, "data", "scores")
    own = (x - x.min((0, 1))) / np.ptp(x, (0, 1))
    flat = own.reshape(-1, BANDS)
    covariance = np.cov(flat.T) + 1e-4 * np.eye(BANDS)
    both(chain(per_image, batch), form(own, flat.mean(0), np.linalg.inv(covariance)), "minmax and RX of each image")
    zscore = ("z", NORM + "ZScoreNormalizer", {"dims": [1, 2], "eps": 1e-6, "keepdim": True}, "data", "normalized")
    own = (x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-6)
    flat = own.reshape(-1, BANDS)
    covariance = np.cov(flat.T) + 1e-4 * np.eye(BANDS)
    both(chain(zscore, batch), form(own, flat.mean(0), np.linalg.inv(covariance)), "z-score and RX of each image")

    # the names that the first versions had, a branch that scores do not need, a data node that nobody knows
    text = """nodes:
- {name: reader, class: my_plugin.readers.TiffReader}
- {name: scale, class: cuvis_ai.node.normalization.MinMaxNormalizer, params: {eps: 1.0e-06, use_running_stats: yes}}
- &shared {name: view, class: cuvis_ai.node.dimensionality_reduction.TrainablePCA, params: {n_components: 3, num_channels: 24}}
- {name: rx, class: cuvis_ai.anomaly.rx_detector.RXGlobal, params: &eps {eps: 1e-6, num_channels: 24}}
- {name: two stages, class: TwoStageBinaryDecider, params: {image_threshold: 0.24, top_k_fraction: 0.001, quantile: 0.995, reduce_dims: null}}
connections:
- {from: reader.outputs.cube, to: scale.inputs.data}
- {from: scale.outputs.normalized, to: view.inputs.data}
- {from: scale.outputs.normalized, to: rx.inputs.data}
- {from: rx.outputs.scores, to: two stages.inputs.logits}
"""
    record = convert(bench, text, None, name="old", out="old.json")
    graph = json.loads(bench.path("old.json").read_text()) if record else {"nodes": []}
    bench.check(record and [n["name"] for n in graph["nodes"]] == ["scale", "rx", "two_stages"] and
                graph["nodes"][2]["kind"] == "two_stage" and graph["nodes"][2]["threshold"] == 0.24 and
                [d["class"] for d in record["convert"]["data"]] == ["my_plugin.readers.TiffReader"] and
                [d["name"] for d in record["convert"]["left_out"]] == ["view"], "the file of a first version")
    text = chain(MINMAX, GLOBAL, ("t", "TwoStageBinaryDecider", {"image_threshold": None, "quantile": .9, "pixel_threshold": None}, "logits",
                                  "decisions"))
    convert(bench, text, None, name="gate", out="gate.json")
    kinds = [n["kind"] for n in json.loads(bench.path("gate.json").read_text())["nodes"]]
    bench.check(kinds == ["minmax", "rx", "quantile"], "two stages without an image threshold are a quantile")


def test_missing(bench):
    """Nodes that we don't have are named with their class; wrong ports, names and settings too."""
    def refused(text, *words):
        bench.path("w.yaml").write_text(text)
        result = bench.run("convert", bench.path("w.yaml"), bench.path("no.json"))
        bench.check_refused(result, 1, *words)
        bench.check(not bench.path("no.json").exists(), f"nothing is written: {words[0]}")

    mixer = ("mix", "cuvis_ai.node.channel_mixer.ConcreteChannelMixer", {"input_channels": 24}, "data", "rgb")
    clip = ("clip", "cuvis_ai_adaclip.node.adaclip_node.AdaCLIPDetector", {"weight_name": "all"}, "rgb_image", "scores")
    refused(chain(MINMAX, mixer, clip, QUANTILE), "mix (cuvis_ai.node.channel_mixer.ConcreteChannelMixer)",
            "clip (cuvis_ai_adaclip.node.adaclip_node.AdaCLIPDetector)")
    refused(chain(MINMAX, mixer, GLOBAL), "mix (cuvis_ai.node.channel_mixer.ConcreteChannelMixer)")
    refused(chain(MINMAX), "scores")
    refused(chain(("x", "other_package.MinMaxNormalizer", {}, "data", "normalized"), GLOBAL), "x (other_package.MinMaxNormalizer)")
    plain = chain(MINMAX, GLOBAL)
    refused(plain.replace("MinMaxNormalizer.outputs.normalized", "MinMaxNormalizer.outputs.data"), "has no output 'data'", "normalized")
    refused(plain.replace("RXGlobal.inputs.data", "RXGlobal.inputs.cube"), "has no input 'cube'", "data")
    refused(plain.replace("RXGlobal.inputs.data", "RXGlobel.inputs.data"), "RXGlobel", "did you mean RXGlobal?")
    refused(plain.replace("RXGlobal.inputs.data", "RXGlobal.data"), "NODE.inputs.PORT")
    refused(plain.replace("  target: RXGlobal.inputs.data\n", ""), "connections: number 2")
    refused(plain + "- source: data.outputs.cube\n  target: RXGlobal.inputs.data\n", "more than one node", "RXGlobal")
    refused("\n".join(plain.splitlines()[:-2]) + "\n", "nothing is connected", "RXGlobal.inputs.data")
    refused(plain.replace("data.outputs.cube", "RXGlobal.outputs.scores"), "RXGlobal", "does not read")
    circle = chain(MINMAX, ("b", NORM + "PerPixelUnitNorm", {}, "data", "normalized"), GLOBAL)
    refused(circle.replace("data.outputs.cube", "b.outputs.normalized"), "circle")
    circle = chain(("a", NORM + "IdentityNormalizer", {}, "data", "normalized"), ("b", NORM + "IdentityNormalizer", {}, "data", "normalized"), GLOBAL)
    refused(circle.replace("data.outputs.cube", "b.outputs.normalized"), "circle")
    refused(plain.replace("eps: 1.0e-06", "eps: small"), "eps", "expected a number", "small")
    refused(plain.replace("eps: 1.0e-06", "eps: -1"), "eps", "from 0")
    refused(plain.replace("eps: 1.0e-06", "eps: [1, 2]"), "eps", "number")
    refused(plain.replace("use_running_stats: true", "use_running_stats: 3"), "use_running_stats", "true or false")
    refused(plain.replace("use_running_stats: true", "momentum: 0.1"), "momentum", "known are: eps")
    refused(plain.replace("  hparams:\n    normal_class_ids: [0, 1]\n", "  hparams: 5\n"), "hparams")
    refused(plain.replace("- name: RXGlobal\n", "- nome: RXGlobal\n"), "no name or no class_name")
    refused(plain.replace("- name: RXGlobal\n", "- name: MinMaxNormalizer\n"), "two are called 'MinMaxNormalizer'")
    refused(plain.replace("- name: RXGlobal\n", "- name: [RXGlobal]\n"), "no name or no class_name")
    refused(chain(MINMAX, GLOBAL, ("other", RX, {"num_channels": 24}, "scores", "scores")), "has no input 'scores'")
    refused(chain(MINMAX, GLOBAL, ("t", "TwoStageBinaryDecider", {"image_threshold": 0.2, "pixel_threshold": 3.5}, "logits", "decisions")),
            "pixel_threshold", "3.5")
    refused(chain(("z", NORM + "ZScoreNormalizer", {"dims": [1, 2, 3]}, "data", "normalized"), GLOBAL), "dims", "[1,2,3]")
    refused(chain(("p", "cuvis_ai.node.dimensionality_reduction.TrainablePCA", {"num_channels": 24}, "data", "projected"), GLOBAL), "n_components")
    refused(chain(("p", "cuvis_ai.node.dimensionality_reduction.TrainablePCA", {"num_channels": 24, "n_components": 3}, "data", "components"), GLOBAL),
            "'components' of 'p'", "projected")
    bench.path("w.yaml").write_text(plain)
    result = bench.run("convert", bench.path("w.yaml"), bench.path("no.safetensors"))
    bench.check_refused(result, 2, "no weights", "w.pt")
    result = bench.run("convert", bench.path("w.yaml"), bench.path("no.txt"))
    bench.check_refused(result, 2, ".json", ".safetensors")
    result = bench.run("convert", bench.path("w.yaml"), bench.path("no.json"), "--weights", bench.path("w.pt"))
    bench.check_refused(result, 2, "--weights")
    result = bench.run("convert", bench.path("out.safetensors"), bench.path("no.safetensors"), "--cube", bench.path("cube.img"))
    bench.check_refused(result, 2, "--cube")
    result = bench.run("convert", bench.path("none.yaml"), bench.path("no.json"))
    bench.check_refused(result, 1, "none.yaml")


def test_hostile_yaml(bench):
    good = chain(MINMAX, GLOBAL)

    def refused(text, *words):
        bench.path("h.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        result = bench.run("convert", bench.path("h.yaml"), bench.path("no.json"), timeout=120, watch=True)
        bench.check_refused(result, 1, "h.yaml", *words)
        bench.check(result.peak < 600 << 20, f"memory stays small: {result.peak >> 20} MiB")

    refused("", "empty")
    refused("# nothing\n", "empty")
    refused("[" * 100000, "line 1")
    refused("{a: " * 100000, "line 1")
    refused("- " * 100000, "line 1")
    refused("".join(" " * i + "a:\n" for i in range(1000)), "nested")
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30))
    refused(laughs + good, "more values")
    refused("a: &a " + "x" * 500000 + "\nb: [" + ", ".join(["*a"] * 10000) + "]\n", "more values")
    refused("nodes: &a [*a]\n", "contains itself")
    refused("nodes: &a {b: *a}\n", "contains itself")
    refused("nodes: [*nobody]\n", "anchor that is not there")
    refused("".join(f"- &n{i} x\n" for i in range(1000)), "anchors")
    refused("- &" + "n" * 1000 + " x\n", "anchor")
    refused("nodes: !!python/object/apply:os.system ['touch /tmp/owned']\n", "tag", "python/object")
    refused("nodes: !!python/tuple [1, 2]\n", "tag")
    refused("nodes: !local x\n", "tag")
    refused(good.replace("nodes:\n", "<<: {a: 1}\nnodes:\n"), "<<")
    refused("? [a, b]\n: c\n", "key")
    refused(good + "nodes: []\n", "comes twice")
    refused(good + "---\n" + good, "second document")
    refused(good[:len(good) // 2] + "\n  \"", "line")
    refused("nodes: \"\\0\"\n", "zero byte")
    refused(b"\xff\xfe\x00\x01" * 1000, "h.yaml")
    refused(bytes(np.random.default_rng(1).integers(0, 256, 50000, np.uint8)), "h.yaml")
    refused(b"nodes: \xc3\x28\n", "h.yaml")
    refused(good.encode() + b"x: " + b"y" * (2 << 20), "more than 1048576 bytes")
    refused("nodes: " + "y" * (1 << 20 >> 1) + "\n", "list 'nodes'")
    refused("".join(f"- {i}\n" for i in range(100000)), "more values")
    refused("nodes: [" + ", ".join(f"{{name: n{i}, class_name: c}}" for i in range(300)) + "]\nconnections: [{source: a, target: b}]\n", "300 nodes")
    refused("nodes: {a: 1}\n", "list 'nodes'")
    refused("nodes: [1, 2]\nconnections: [1]\n", "node 1")
    refused("nodes: []\n", "list 'nodes'")
    refused(good.split("connections:")[0], "connections")
    refused("42\n", "no pipeline")
    with open(bench.path("h.yaml"), "wb") as file:
        file.truncate(1 << 33)  # sparse
    result = bench.run("convert", bench.path("h.yaml"), bench.path("no.json"), watch=True)
    bench.check_refused(result, 1, "bytes")
    rng, text, bad = np.random.default_rng(7), np.frombuffer(good.encode(), np.uint8), 0
    for cut in range(0, len(good), 61):  # whatever is left is converted or refused
        bench.path("h.yaml").write_text(good[:cut])
        bad += bench.run("convert", bench.path("h.yaml"), bench.path("cut.json")).status not in (0, 1)
    bench.check(bad == 0, "files that are cut short never crash")
    for _ in range(60):
        changed = text.copy()
        changed[rng.integers(0, len(text), 4)] = rng.integers(1, 128, 4)
        bench.path("h.yaml").write_bytes(changed.tobytes())
        bad += bench.run("convert", bench.path("h.yaml"), bench.path("cut.json")).status not in (0, 1)
    bench.check(bad == 0, "changed bytes never crash")


def test_hostile_weights(bench):
    small = minmax(cube(1).astype(np.float64), fit_minmax(cube(1)))
    scale, score = fit_minmax(cube(1).astype(np.float64)), fit_rx(small)
    bench.path("p.yaml").write_text(chain(MINMAX, GLOBAL))

    def refused(tree, *words):
        if isinstance(tree, bytes):
            bench.path("p.pt").write_bytes(tree)
        else:
            write_pth(bench.path("p.pt"), tree)
        result = bench.run("convert", bench.path("p.yaml"), bench.path("no.safetensors"))
        bench.check_refused(result, 1, "p.pt", *words)
        bench.check(not bench.path("no.safetensors").exists() and not leftovers(bench.folder), "nothing is left")

    def state(**changes):
        return {"state_dict": {"MinMaxNormalizer": scale, "RXGlobal": {**score, **changes}}}

    refused({"state_dict": {"MinMaxNormalizer": scale}, "x": {"y": np.zeros(3, np.float32)}}, "RXGlobal")
    refused(state(mu=np.zeros(BANDS + 1, np.float32)), "cov_inv", f"{BANDS} x {BANDS}", f"{BANDS + 1} x {BANDS + 1}")
    refused(state(cov_inv=np.zeros((BANDS, 2), np.float32)), "cov_inv", f"{BANDS} x 2")
    refused(state(cov_inv=np.zeros(BANDS * BANDS, np.float32)), "cov_inv")
    refused(state(cov_inv=np.zeros((BANDS, BANDS), np.float32)), "cov_inv", "before it was fitted")
    refused(state(cov_inv=-score["cov_inv"]), "cov_inv")
    indefinite = score["cov_inv"] - 1e-2 * np.abs(score["cov_inv"]).max() * np.eye(BANDS)
    refused(state(cov_inv=single(indefinite)), "cov_inv", "eigenvalue")
    refused(state(mu=np.full(BANDS, np.nan, np.float32)), "mu", "not finite")
    refused(state(mu=np.full((), 1.0, np.float32)), "mu", "one a band")
    fresh = {"running_min": single(np.nan), "running_max": single(np.nan)}
    refused({"state_dict": {"MinMaxNormalizer": fresh, "RXGlobal": score}}, "running_min", "before it was fitted")
    refused(b"", "p.pt")
    refused(b"PK\x03\x04" + b"\0" * 100, "p.pt")
    refused(b"\x80\x02cposix\nsystem\nX\x04\0\0\0trueq\0\x85R.", "p.pt")
    write_pth(bench.path("ok.pt"), state())
    whole = bench.path("ok.pt").read_bytes()
    for cut in (1, 30, len(whole) // 3, len(whole) - 40):
        refused(whole[:cut])
    rng, bad = np.random.default_rng(3), 0
    for _ in range(40):
        changed = np.frombuffer(whole, np.uint8).copy()
        changed[rng.integers(0, len(whole), 6)] ^= rng.integers(1, 255, 6).astype(np.uint8)
        bench.path("p.pt").write_bytes(changed.tobytes())
        bad += bench.run("convert", bench.path("p.yaml"), bench.path("maybe.safetensors")).status not in (0, 1)
    bench.check(bad == 0, "changed bytes never crash")
    # a node called as a usual key of checkpoints is still a node, and flat names do too
    text = chain(("net", *MINMAX[1:]), ("model", *GLOBAL[1:]))
    if convert(bench, text, {"net": scale, "model": score}, name="names"):
        detect(bench, "out.safetensors")
        check_scores(bench, rx(minmax(cube(2).astype(np.float64), scale), score), "nodes called net and model")
    write_pth(bench.path("names.pt"), {f"{n}.{k}": v for n, s in (("net", scale), ("model", score)) for k, v in s.items()})
    bench.check(bench.record("convert", bench.path("names.yaml"), bench.path("flat.safetensors")), "names without nesting")


def main():
    bench = Bench(sys.argv[1])
    bench.path("p.yaml").write_text(chain(MINMAX, GLOBAL))
    result = bench.run("convert", bench.path("p.yaml"), bench.path("first.json"))
    if "libyaml" in result.err:
        skip("built without libyaml")
    if not bench.has_gdal():
        skip("the header of a cube with wavelengths is read by GDAL, which is not there")
    for test in (test_fitted, test_wavelengths, test_trained, test_graph, test_missing, test_hostile_yaml, test_hostile_weights):
        test(bench)
    bench.finish()


if __name__ == "__main__":
    main()
