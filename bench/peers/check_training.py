"""Compares steps of training with PyTorch: the same weights, batches and optimizer; losses and weights after each run.

    python bench/peers/check_training.py --train-rates build/train_rates [--device cuda] [--precision fp32] [--steps 10] [--full]

fp32: the losses of ten steps must agree within 1e-4 (relative), and all weights within 1e-4 (absolute). With Adam, the tensors
under "left_out" do not count: the bias of a convolution before a batch norm has a gradient of zero, so Adam, which divides by
the gradient's size, moves it by rounding noise, and the running mean of the norm moves with it.
bf16: PyTorch trains with autocast, and the mean loss over the last steps must agree within 1 %.
Prints a JSON line for each network; ends with 1 if one does not agree. --full uses the published widths.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

import networks

LEVEL = 0.1


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, t in tensors.items():
        size = t.numel() * 4
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.detach().cpu().float().contiguous().numpy().tobytes())


def cases(full):
    widths, blocks, depth = ((64, 128, 256, 512), 4, 20) if full else ((8, 16, 24, 32), 1, 6)
    yield "drunet", networks.DRUNet(3, widths, blocks), True
    yield "unet", networks.UNet(3, widths=widths) if full else networks.UNet(3, widths=(8, 16, 24, 32)), False
    yield "dncnn", networks.DnCNN(3, depth, 64 if full else 16), False


def batches(steps, n, side, level):
    rng = np.random.default_rng(3)
    for _ in range(steps):
        base = rng.random((n, side // 8, side // 8, 3), np.float32).repeat(8, 1).repeat(8, 2)
        noisy = base + LEVEL * rng.standard_normal(base.shape).astype(np.float32)
        x = np.concatenate([noisy, np.full_like(noisy[..., :1], LEVEL)], -1) if level else noisy
        yield np.ascontiguousarray(x), base


def torch_steps(net, data, args):
    device = args.device
    net = net.to(device).train()
    if args.precision != "fp32":
        net = net.to(memory_format=torch.channels_last)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sgd = args.optimizer == "sgd"
    optimizer = (torch.optim.SGD(net.parameters(), lr=args.rate, momentum=0.9) if sgd else torch.optim.Adam(net.parameters(), lr=args.rate))
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision)
    losses = []
    for x, target in data:
        x, target = (torch.from_numpy(a).permute(0, 3, 1, 2).contiguous().to(device) for a in (x, target))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.split(":")[0], dtype=kind, enabled=kind is not None):
            y = net(x[:, :3], LEVEL) if x.shape[1] == 4 else net(x)
        loss = F.mse_loss(y.float(), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def start(net):
    """Weights that train: small residual branches, as DRUNet needs without normalisation."""
    with torch.no_grad():
        for name, w in net.named_parameters():
            if w.ndim == 4:
                inputs = w.shape[0] if "up" in name and w.shape[-1] == 2 else w[0].numel()
                w.normal_(0, (0.3 if ".res.2" in name or "tail" in name or "out_conv" in name else 1) * (1.5 / inputs) ** 0.5)


def moved_by_noise(net):
    """Names of the biases that a batch norm right behind them cancels, and of the running means that contain them."""
    for prefix, module in net.named_modules():
        if isinstance(module, torch.nn.Sequential):
            for i, (layer, following) in enumerate(zip(module, list(module)[1:])):
                if isinstance(layer, torch.nn.Conv2d) and isinstance(following, torch.nn.BatchNorm2d):
                    if layer.bias is not None:
                        yield from (f"{prefix}.{i}.bias", f"{prefix}.{i + 1}.running_mean")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-rates", default="build/train_rates")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--optimizer", default="adam", choices=("adam", "sgd"))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--crop", type=int, default=64)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("words", nargs="*", help="further words for train_rates: micro=2 recompute=blocks")
    args = parser.parse_args()
    agree = True
    torch.manual_seed(1)  # for biases, which start() leaves as PyTorch makes them
    for name, net, level in cases(args.full):
        if args.only not in name:
            continue
        torch.manual_seed(1)
        start(net)
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            write_safetensors(work / "start.safetensors", {k: v for k, v in net.state_dict().items() if v.dtype == torch.float32})
            data = list(batches(args.steps, args.batch, args.crop, level))
            micro = next((int(w.split("=")[1]) for w in args.words if w.startswith("micro=")), 1)
            part = args.batch // micro
            with open(work / "data", "wb") as f:
                for x, target in data:
                    for m in range(micro):
                        f.write(x[m * part:(m + 1) * part].tobytes() + target[m * part:(m + 1) * part].tobytes())
            out = subprocess.run([args.train_rates, f"device={args.device}", f"model={work}/start.safetensors", f"precision={args.precision}",
                                  f"batch={args.batch}", f"crop={args.crop}", f"steps={args.steps}", f"rate={args.rate}", f"optimizer={args.optimizer}", f"data={work}/data",
                                  f"out={work}/out", "losses=1", *args.words], check=True, capture_output=True, text=True).stdout
            ours = json.loads(out)
            theirs = torch_steps(net, data, args)
            weights, at, worst = np.fromfile(work / "out", np.float32), 0, (0.0, "")
            state, left_out = net.state_dict(), set(moved_by_noise(net)) if args.optimizer == "adam" else set()
            if not left_out <= set(ours["names"]):
                sys.exit(f"{name}: {sorted(left_out - set(ours['names']))} are not in Tessera's network")
            for key in ours["names"]:
                w = state[key].detach().cpu().float().numpy().ravel()
                error = np.abs(weights[at:at + w.size] - w).max()
                if key not in left_out:
                    worst = max(worst, (float(error), key))
                at += w.size
        losses = np.array(ours["losses"])
        error = np.abs(losses / np.array(theirs) - 1)
        tail = max(1, args.steps // 10)
        curve = float(abs(losses[-tail:].mean() / np.mean(theirs[-tail:]) - 1))
        good = error.max() < 1e-4 and worst[0] < 1e-4 if args.precision == "fp32" else curve < 0.01
        agree = agree and good
        print(json.dumps({"study": "check_training", "model": name, "precision": args.precision, "steps": args.steps,
                          "loss_error": float(error.max()), "curve_error": curve, "weight_error": worst[0], "weight": worst[1],
                          "left_out": {"count": len(left_out), "names": sorted(left_out)},
                          "first_loss": theirs[0], "last_loss": theirs[-1], "agrees": bool(good)}), flush=True)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
