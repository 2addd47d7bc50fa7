"""check_pipelines.py PROGRAM [DEVICE]: hyperspectral pipelines trained by the program and by PyTorch, step by step.

Both start from the parameters that the program fitted (phase 1) and take the same cubes in the same order. The losses of every step
must agree to 1e-4. The modules are plain PyTorch, written from the formulas of docs/detection.md. Prints one line a pipeline and
FAILED where they differ; status 77 without PyTorch.

Pipelines: an autoencoder of four linear layers (mean squared error against its input), two PCA nodes that are kept orthogonal,
a channel selector with RX, logit and all losses of scores and selectors, Deep SVDD with a soft boundary.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: needs numpy and PyTorch")
    sys.exit(77)

SIDE, BANDS, CUBES, BATCH, EPOCHS, TOLERANCE = 32, 50, 8, 4, 5, 1e-4


def cube(seed):
    """The synthetic cubes of cuvis.ai's stress tests."""
    rng, u = np.random.default_rng(seed), np.linspace(0, 1, BANDS)
    i, j = np.mgrid[0:SIDE, 0:SIDE]
    light = (1 + 0.2 * np.sin(2 * np.pi * i / SIDE)) * (1 + 0.2 * np.cos(2 * np.pi * j / SIDE))
    x = 100 * np.exp(-(u - 0.5) ** 2 / 0.1) * light[..., None] + rng.normal(0, 10, (SIDE, SIDE, BANDS))
    odd = 300 * (0.5 * np.exp(-(u - 0.3) ** 2 / 0.05) + 0.5 * np.exp(-(u - 0.7) ** 2 / 0.05))
    mask = np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(max(1, SIDE * SIDE // 400)):
        y, x0, r = rng.integers(0, SIDE), rng.integers(0, SIDE), rng.integers(2, 6)
        mask[(i - y) ** 2 + (j - x0) ** 2 <= r * r] = 1
    x[mask > 0] = odd
    return x.astype(np.float32), mask


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header, out = json.loads(data[8:8 + size]), {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            out[name] = np.frombuffer(data[8 + size + begin:8 + size + end], np.float64).reshape(entry["shape"])
    return out


class Start:
    """Parameters by name: trained ones are leaves of the graph."""

    def __init__(self, values, trained):
        self.all = {k: torch.tensor(v, dtype=torch.float32) for k, v in values.items()}
        for name in trained:
            self.all[name].requires_grad_(True)
        self.trained = [self.all[name] for name in trained]

    def __getitem__(self, name):
        return self.all[name]


def minmax(p, x):
    low, high = p["minmax.least"], p["minmax.largest"]
    return (x - low) / torch.clamp(high - low, min=1e-6)


def linear(p, name, x):
    z = (x - p[f"{name}.mean"]) / (p[f"{name}.deviation"] + 1e-6)
    return z @ p[f"{name}.projection"].T @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def autoencoder(p, x, mask, epoch):
    y = x = minmax(p, x)
    for name in ("a", "b", "c", "d"):
        y = linear(p, name, y)
    return F.mse_loss(y, x)


def orthogonal(w):
    return ((w @ w.T - torch.eye(len(w))) ** 2).sum()


def pca(p, x, mask, epoch):
    """Reconstruction from components: the loss depends on the data, so that gradients are more than rounding."""
    x = minmax(p, x)
    a = (x - p["pca1.mean"]) @ p["pca1.components"].T
    b = (a - p["pca2.mean"]) @ p["pca2.components"].T
    w = p["pca1.components"]
    cosines = F.normalize(w, dim=-1, eps=1e-6) @ F.normalize(w, dim=-1, eps=1e-6).T
    i, j = torch.triu_indices(len(w), len(w), 1)
    score = quadratic(p, "rx", b)
    return 0.1 * orthogonal(w) + 0.1 * orthogonal(p["pca2.components"]) + 0.3 * cosines[i, j].mean() + \
        F.binary_cross_entropy_with_logits(p["logit.scale"] * (score - p["logit.bias"]), mask)


def quadratic(p, name, x):
    d = x - p[f"{name}.mean"]
    inverse = p.all.get(f"{name}.inverse")
    if inverse is None:
        c = p[f"{name}.covariance"].double()
        inverse = torch.linalg.inv(c + 1e-6 * torch.eye(len(c))).float()
    return ((d @ inverse.T) * d).sum(-1)


def selector(p, x, mask, epoch):
    x = minmax(p, x)
    temperature = max(0.1, 5 * 0.9 ** epoch)
    w = 3 * torch.softmax(p["selector.logits"] / temperature, -1)
    logit = p["logit.scale"] * (quadratic(p, "rx", x * w) - p["logit.bias"])
    q = w / (w.sum() + 1e-6)
    entropy, variance = -(q * torch.log(q + 1e-6)).sum(), ((w - w.mean()) ** 2).mean()
    s = torch.sigmoid(logit)
    both = (s * mask).sum()
    iou = (both + 1e-6) / (s.sum() + mask.sum() - both + 1e-6)
    bce = F.binary_cross_entropy_with_logits(logit, mask, pos_weight=torch.tensor(2.0))
    return 10 * bce + 0.5 * (1 - iou) - 0.1 * entropy - 0.01 * variance


def svdd(p, x, mask, epoch):
    x = x - x.mean(-1, keepdim=True)
    x = x / torch.clamp(torch.linalg.norm(x, dim=-1, keepdim=True), min=1e-8)
    x = (x - p["zscore.mean"]) / (p["zscore.deviation"] + 1e-8)
    z = F.relu(x @ p["mlp.first"].T + p["mlp.bias"]) @ p["mlp.second"].T
    with torch.no_grad():
        p.all["svdd.centre"] = 0.9 * p["svdd.centre"] + 0.1 * z.reshape(-1, z.shape[-1]).mean(0)
    far = ((z - p["svdd.centre"]) ** 2).sum(-1)
    r = F.softplus(p["soft_boundary.radius"], beta=10.0)[0]
    return r ** 2 + F.relu(far - r ** 2).mean() / 0.05


def chain(*nodes):
    return {"nodes": [dict(kind=kind, **settings) for kind, settings in nodes]}


PIPELINES = {
    "autoencoder": (autoencoder, chain(
        ("minmax", {}), ("linear", {"name": "a", "channels": 20}), ("linear", {"name": "b", "channels": 10, "seed": 1}),
        ("linear", {"name": "c", "channels": 20, "seed": 2}), ("linear", {"name": "d", "channels": BANDS, "seed": 3}),
        ("mse", {"target": "minmax"}), ("residual", {"target": "minmax"})),
        [f"{n}.{part}" for n in "abcd" for part in ("weight", "bias")], {}),
    "pca": (pca, chain(
        ("minmax", {}), ("pca", {"name": "pca1", "components": 20, "trainable": True}), ("orthogonality", {"name": "o1", "weight": 0.1}),
        ("distinctness", {"weight": 0.3}), ("pca", {"name": "pca2", "components": 10}),
        ("orthogonality", {"name": "o2", "weight": 0.1}), ("rx", {}), ("score_to_logit", {"name": "logit"}), ("bce", {})),
        ["pca1.components", "pca2.components"], {"train": ["pca1", "pca2"]}),
    "selector": (selector, chain(
        ("minmax", {}), ("selector", {}), ("entropy", {"weight": 0.1}), ("diversity", {"weight": 0.01}), ("rx", {"trainable": True}),
        ("score_to_logit", {"name": "logit", "trainable": True}), ("bce", {"weight": 10, "positive": 2}), ("iou", {"weight": 0.5})),
        ["selector.logits", "rx.mean", "rx.inverse", "logit.scale", "logit.bias"], {}),
    "svdd": (svdd, "svdd", ["zscore.mean", "zscore.deviation", "mlp.first", "mlp.bias", "mlp.second", "soft_boundary.radius"], {}),
}


def torch_losses(loss, start, trained, cubes, masks):
    p = Start(start, trained)
    optimizer = torch.optim.AdamW(p.trained, lr=1e-3, betas=(0.9, 0.999), weight_decay=0.01)
    losses = []
    for step in range(EPOCHS * CUBES // BATCH):
        at = [(step * BATCH + k) % CUBES for k in range(BATCH)]
        value = loss(p, cubes[at], masks[at], step * BATCH // CUBES)
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(p.trained, 1.0)
        optimizer.step()
        losses.append(value.item())
    return losses


def main():
    program, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cpu"
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "cubes").mkdir()
        both = [cube(42 + k) for k in range(CUBES)]
        for k, (x, mask) in enumerate(both):
            np.save(root / "cubes" / f"c{k}.npy", x)
            np.save(root / "cubes" / f"c{k}_mask.npy", mask)
        cubes = torch.tensor(np.stack([x for x, _ in both]))
        masks = torch.tensor(np.stack([mask for _, mask in both]), dtype=torch.float32)
        for name, (loss, graph, trained, more) in PIPELINES.items():
            config = {"pipeline": graph, "data": {"folders": ["cubes"], "shuffle": False}, "batch": BATCH, "epochs": EPOCHS,
                      "output": f"{name}.safetensors", "log": f"{name}.log", "precision": "fp32", "device": device, **more}
            (root / f"{name}.json").write_text(json.dumps(config))
            subprocess.run([program, "train", root / f"{name}.json", "--quiet"], check=True)
            ours = [json.loads(line)["loss"] for line in (root / f"{name}.log").read_text().splitlines()]
            start = read_safetensors(root / f"{name}-checkpoints" / "fitted.safetensors")
            theirs = torch_losses(loss, start, trained, cubes, masks)
            worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
            good = len(ours) == len(theirs) and worst < TOLERANCE
            failed |= not good
            print(f"{name}: {len(ours)} steps, loss {ours[0]:.6g} to {ours[-1]:.6g}, PyTorch {theirs[-1]:.6g}, largest relative "
                  f"difference {worst:.1e}{'' if good else ' FAILED'}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
