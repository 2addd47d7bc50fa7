"""Compares steps of training with PyTorch: the same weights, batches and optimizer; losses and weights after each run.

    python bench/peers/check_training.py --train-rates build/train_rates [--device cuda] [--precision fp32] [--steps 10] [--full]

fp32: the losses of ten steps must agree within 1e-4 (relative), and all weights within 1e-4 (absolute).
With SGD every weight counts. Adam divides by the size of a gradient, so that a weight whose gradient is rounding noise moves by
a whole step in a random direction: the tensors under "left_out" do not count there (the bias of a convolution before a batch
norm, whose gradient is zero, and the norm's running mean). "of_fp64" are the largest distances of the weights from PyTorch's own
run in fp64: where that of PyTorch's fp32 is near 1e-4, fp32 does not determine the weights. "of_itself" is the largest difference
between PyTorch's run and its own run in fp32 with another number of threads (on the CPU). "relative" is the norm of all differences
over that of all weights, "beyond" counts the weights that differ by more than 1e-4, and "moved" is how far the steps moved a weight at most.
bf16: PyTorch trains with autocast, and the mean loss over the last steps must agree within 1 %.
Prints a JSON line for each network; ends with 1 if one does not agree. --full uses the published widths. --seeds N repeats this with
N draws of the weights, and prints in how many of them the weights agree within 1e-4: Tessera's with PyTorch's, and PyTorch's with its own.
"""
import argparse
import copy
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


def torch_steps(net, data, args, name, double=False):
    device = args.device
    net = net.to(device).train()
    if double:
        net = net.double()
    if args.precision != "fp32":
        net = net.to(memory_format=torch.channels_last)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    optimizer = (torch.optim.SGD(net.parameters(), lr=args.rate, momentum=0.9) if name == "sgd" else torch.optim.Adam(net.parameters(), lr=args.rate))
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision)
    losses = []
    for x, target in data:
        x, target = (torch.from_numpy(a).permute(0, 3, 1, 2).contiguous().to(device) for a in (x, target))
        if double:
            x, target = x.double(), target.double()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.split(":")[0], dtype=kind, enabled=kind is not None):
            y = net(x[:, :3], LEVEL) if x.shape[1] == 4 else net(x)
        loss = F.mse_loss(y if double else y.float(), target)
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


def compare_weights(weights, names, state, exact, left_out):
    """The largest difference and its tensor, and the distances of both from PyTorch's fp64 (if there is such a run)."""
    at, found, of_fp64 = 0, (0.0, ""), {"tessera": 0.0, "torch": 0.0}
    apart, size, beyond = 0.0, 0.0, 0
    for key in names:
        theirs = state[key].detach().cpu().double().numpy().ravel()
        mine = weights[at:at + theirs.size].astype(np.float64)
        at += theirs.size
        if key in left_out:
            continue
        found = max(found, (float(np.abs(mine - theirs).max()), key))
        apart, size = apart + float(((mine - theirs) ** 2).sum()), size + float((theirs**2).sum())
        beyond += int((np.abs(mine - theirs) > 1e-4).sum())
        if exact:
            best = exact[key].detach().cpu().numpy().ravel()
            for name, values in (("tessera", mine), ("torch", theirs)):
                of_fp64[name] = max(of_fp64[name], float(np.abs(values - best).max()))
    return {"weight_error": found[0], "weight": found[1], "relative": (apart / size) ** 0.5, "beyond": beyond, "of_fp64": of_fp64}


def run_tessera(net, data, args, optimizer, work):
    """Losses and names of the tensors, and all weights after the steps."""
    write_safetensors(work / "start.safetensors", {k: v for k, v in net.state_dict().items() if v.dtype == torch.float32})
    micro = next((int(w.split("=")[1]) for w in args.words if w.startswith("micro=")), 1)
    part = args.batch // micro
    with open(work / "data", "wb") as f:
        for x, target in data:
            for m in range(micro):
                f.write(x[m * part:(m + 1) * part].tobytes() + target[m * part:(m + 1) * part].tobytes())
    words = {"device": args.device, "model": work / "start.safetensors", "precision": args.precision, "batch": args.batch, "crop": args.crop, "steps": args.steps,
             "rate": args.rate, "optimizer": optimizer, "data": work / "data", "out": work / "out", "losses": 1}
    out = subprocess.run([args.train_rates, *(f"{k}={v}" for k, v in words.items()), *args.words], check=True, capture_output=True, text=True).stdout
    return json.loads(out), np.fromfile(work / "out", np.float32)


def of_itself(net, data, args, optimizer, theirs, left_out):
    """The largest difference between two runs of PyTorch that divide their sums among other numbers of threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2 if threads == 1 else 1)
    torch_steps(net, data, args, optimizer)
    torch.set_num_threads(threads)
    return max(float((w.cpu().double() - theirs[k].cpu().double()).abs().max()) for k, w in net.state_dict().items() if k not in left_out)


def check(name, net, level, args, optimizer, seed):
    """The JSON line of one network; "agrees" says whether it holds."""
    torch.manual_seed(seed)
    start(net)
    data = list(batches(args.steps, args.batch, args.crop, level))
    with tempfile.TemporaryDirectory() as folder:
        ours, weights = run_tessera(net, data, args, optimizer, pathlib.Path(folder))
    exact = copy.deepcopy(net) if args.precision == "fp32" else None
    again = copy.deepcopy(net) if exact and args.device == "cpu" else None
    begun = copy.deepcopy(net.state_dict())
    theirs = torch_steps(net, data, args, optimizer)
    if exact:
        torch_steps(exact, data, args, optimizer, double=True)
    left_out = set(moved_by_noise(net)) if optimizer == "adam" else set()
    if not left_out <= set(ours["names"]):
        sys.exit(f"{name}: {sorted(left_out - set(ours['names']))} are not in Tessera's network")
    moved = max(float((net.state_dict()[k].cpu() - begun[k]).abs().max()) for k in ours["names"])
    found = compare_weights(weights, ours["names"], net.state_dict(), exact and exact.state_dict(), left_out)
    if again:
        found["of_itself"] = of_itself(again, data, args, optimizer, net.state_dict(), left_out)
    losses = np.array(ours["losses"])
    loss_error = float(np.abs(losses / np.array(theirs) - 1).max())
    tail = max(1, args.steps // 10)
    curve = float(abs(losses[-tail:].mean() / np.mean(theirs[-tail:]) - 1))
    good = loss_error < 1e-4 and found["weight_error"] < 1e-4 if exact else curve < 0.01
    line = {"study": "check_training", "model": name, "precision": args.precision, "steps": args.steps, "optimizer": optimizer, "seed": seed,
            "loss_error": loss_error, "curve_error": curve, "moved": moved, **found,
            "left_out": {"count": len(left_out), "names": sorted(left_out)},
            "first_loss": theirs[0], "last_loss": theirs[-1], "agrees": bool(good)}
    print(json.dumps(line), flush=True)
    return line


def summarise(lines):
    """In how many draws each network's weights agree within 1e-4, and the medians of the distances."""
    for name, optimizer in sorted({(line["model"], line["optimizer"]) for line in lines}):
        each = [line for line in lines if (line["model"], line["optimizer"]) == (name, optimizer)]
        distances = {"of_torch": [line["weight_error"] for line in each], "torch_of_itself": [line["of_itself"] for line in each if "of_itself" in line],
                     "of_fp64": [line["of_fp64"]["tessera"] for line in each], "torch_of_fp64": [line["of_fp64"]["torch"] for line in each]}
        print(json.dumps({"study": "check_training_draws", "model": name, "optimizer": optimizer, "draws": len(each),
                          **{key: {"agree": int(sum(v < 1e-4 for v in values)), "median": float(np.median(values))}
                             for key, values in distances.items() if values}}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-rates", default="build/train_rates")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rate", type=float, help="of learning; without it 1e-3 with SGD and 1e-4 with Adam")
    parser.add_argument("--optimizer", choices=("adam", "sgd"), help="one of the two; both without it, Adam alone in other precisions")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--crop", type=int, default=64)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", help="names of networks, with commas")
    parser.add_argument("--seeds", type=int, default=1, help="draws of the weights")
    parser.add_argument("words", nargs="*", help="further words for train_rates: micro=2 recompute=blocks")
    args = parser.parse_args()
    optimizers = [args.optimizer] if args.optimizer else ["sgd", "adam"] if args.precision == "fp32" else ["adam"]
    given, lines = args.rate, []
    for optimizer in optimizers:
        args.rate = given or {"sgd": 1e-3, "adam": 1e-4}[optimizer]
        for seed in range(1, args.seeds + 1):
            torch.manual_seed(seed)  # for biases, which start() leaves as PyTorch makes them
            for name, net, level in list(cases(args.full)):  # all are drawn first, so that --only changes none of them
                if not args.only or name in args.only.split(","):
                    lines.append(check(name, net, level, args, optimizer, seed))
    if args.seeds > 1 and args.precision == "fp32":
        summarise(lines)
    sys.exit(0 if all(line["agrees"] for line in lines) else 1)


if __name__ == "__main__":
    main()
