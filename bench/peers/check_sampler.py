"""Compares whole trajectories of the diffusion samplers with PyTorch: the same network, windows and noise; a JSON line a case. The
status is 1 if a bound is exceeded: 1e-3 on results in [-1, 1] in fp32.

    python bench/peers/check_sampler.py [--rates build/sampler_rates] [--side 128] [--windows 1] [--small] [--device cpu]
        [--precision fp32] [--threads 2] [--cases ddpm50,dpmpp10]

Schedules, steps and formulas are written here once more, in NumPy, from the papers; so is the noise: Philox4x32-10 with the key (seed), the
counter (block, sample, step) and Box-Muller, four values a block. PyTorch runs the network in fp32, the steps are in fp64.
--small takes a network of 3 scales that a CPU runs in seconds.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from diffusion import DiffusionUNet, randomise

SEED, STRIDE, TRAINED = 7, 100000, 4.386e-5
SMALL = dict(channels=3, widths=(16, 32, 32), blocks=1, attention=(1,), head=8, groups=16)
CASES = {
    "ddpm50": dict(kind="ddpm", T=50, end=0.3),
    "ddpm50-everywhere": dict(kind="ddpm", T=50, end=0.3, everywhere=True),
    "ddpm200": dict(kind="ddpm", T=200, end=0.09),
    "ddpm-guess": dict(kind="ddpm", T=50, end=0.3, start=0.3),
    "ddim10": dict(kind="ddim", T=512, end=0.09, steps=10),
    "ddim10-eta": dict(kind="ddim", T=512, end=0.09, steps=10, eta=0.8),
    "dpmpp10": dict(kind="dpmpp", T=512, end=0.09, steps=10),
    "dpmpp20-time": dict(kind="dpmpp", T=512, end=0.09, steps=20, time=True),
    "dpmpp8-guess": dict(kind="dpmpp", T=512, end=0.09, steps=8, start=0.2),
}
USUAL = "ddpm50,ddpm50-everywhere,ddpm-guess,ddim10,ddim10-eta,dpmpp10,dpmpp20-time,dpmpp8-guess"


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011): counter [4][n] and key [2] of 32-bit words -> [4][n]."""
    low = np.uint64(0xFFFFFFFF)
    c = [np.asarray(x, np.uint64) for x in counter]
    k = [np.uint64(x) for x in key]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ k[0], b & low, (a >> np.uint64(32)) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c


def normal(seed, sample, step, elements):
    block = elements // 4
    zeros = np.zeros_like(block)
    words = philox([block & 0xFFFFFFFF, block >> 32, zeros + sample, zeros + step], [seed & 0xFFFFFFFF, seed >> 32])
    f = np.float32
    four = []
    for pair in range(2):
        u = ((words[2 * pair] >> np.uint64(8)).astype(f) + f(1)) * f(2.0**-24)
        angle = (words[2 * pair + 1] >> np.uint64(8)).astype(f) * f(2.0**-24 * 2 * math.pi)
        radius = np.sqrt(f(-2) * np.log(u))
        four += [radius * np.cos(angle), radius * np.sin(angle)]
    return np.choose(elements % 4, four).astype(np.float64)


def window_noise(i, step, side):
    row, column = 5 + 7 * i + np.arange(side), 3 + 9 * i + np.arange(side)
    return normal(SEED, i % 2, step, row[:, None] * STRIDE + column[None])


def lam(g):
    return 0.5 * np.log(g / (1 - g))


def gammas_of(case, schedule):
    """The noise levels of all evaluations."""
    if case["kind"] == "ddpm":
        return schedule[::-1][schedule[::-1] >= case.get("start", 0)]
    way = np.linspace(0, 1, case["steps"])
    if case.get("time"):
        place = (len(schedule) - 1) * (1 - way)
        return 1 / (1 + np.exp(-2 * np.interp(place, np.arange(len(schedule)), lam(schedule))))
    begin = case.get("start") or max(schedule[-1], TRAINED)
    return 1 / (1 + np.exp(-2 * ((1 - way) * lam(begin) + way * lam(schedule[0]))))


def sample(net, device, case, cond, known, guess):
    """[n, side, side] by the published formulas."""
    n, side = cond.shape[:2]
    schedule = np.cumprod(1 - np.linspace(1e-4, case["end"], case["T"]))
    gammas = gammas_of(case, schedule)
    value, mask = known[..., 0].astype(np.float64), known[..., 1].astype(np.float64)

    def noise(step):
        return np.stack([window_noise(i, step, side) for i in range(n)])

    def composed(y):
        return np.where(mask >= 1, y, value * (1 - mask) + mask * y)

    z = noise(0)
    y = math.sqrt(gammas[0]) * guess + math.sqrt(1 - gammas[0]) * z if case.get("start") else z
    if not case.get("everywhere"):
        y = composed(y)
    before = previous = None
    for k, g in enumerate(gammas):
        x = torch.from_numpy(np.concatenate([cond, y[..., None].astype(np.float32)], -1)).permute(0, 3, 1, 2)
        with torch.no_grad():
            e = net(x.to(device), torch.full((n,), g, dtype=torch.float32, device=device))[:, 0].cpu().double().numpy()
        x0 = np.clip(y / math.sqrt(g) - math.sqrt(1 / g - 1) * e, -1, 1)
        if k + 1 == len(gammas):
            y = x0
        elif case["kind"] == "ddpm":
            g1 = gammas[k + 1]
            beta = 1 - g / g1
            variance = beta * (1 - g1) / (1 - g)
            y = beta * math.sqrt(g1) / (1 - g) * x0 + (1 - g1) * math.sqrt(1 - beta) / (1 - g) * y + math.sqrt(variance) * noise(k + 1)
        elif case["kind"] == "ddim":
            g1 = gammas[k + 1]
            sigma = case.get("eta", 0) * math.sqrt((1 - g1) / (1 - g) * (1 - g / g1))
            y = math.sqrt(g1) * x0 + math.sqrt(1 - g1 - sigma**2) * (y - math.sqrt(g) * x0) / math.sqrt(1 - g) + sigma * noise(k + 1)
        else:
            g1 = gammas[k + 1]
            h = lam(g1) - lam(g)
            d = x0
            if before is not None:
                r = (lam(g) - lam(before)) / h
                d = (1 + 1 / (2 * r)) * x0 - previous / (2 * r)
            y = math.sqrt((1 - g1) / (1 - g)) * y - math.sqrt(g1) * math.expm1(-h) * d
        y = composed(y)
        before, previous = g, x0
    return y, gammas


def windows_of(n, side, channels):
    rng = np.random.default_rng(3)
    rows, columns = np.mgrid[:side, :side] / 9.0
    value = np.stack([0.6 * np.sin(rows + i) * np.cos(columns) for i in range(n)]) + 0.05 * rng.standard_normal((n, side, side))
    mask = np.zeros((n, side, side))
    mask[:, side // 4:side // 2, side // 5:4 * side // 5] = 1
    mask[:, side // 4, side // 5:4 * side // 5] = 0.5
    more = rng.standard_normal((n, side, side, channels - 2)) * 0.3
    cond = np.concatenate([np.where(mask > 0, -1, value)[..., None], more], -1)
    known = np.stack([np.where(mask >= 1, 0, value), mask], -1)
    guess = value + 0.2 * rng.standard_normal(value.shape)
    return cond.astype(np.float32), known.astype(np.float32), guess.astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rates", default=str(HERE.parent.parent / "build" / "sampler_rates"))
    parser.add_argument("--side", type=int, default=128)
    parser.add_argument("--windows", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--cases", default=USUAL)
    parser.add_argument("--bound", type=float, default=1e-3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    shape = SMALL if args.small else {}
    channels = shape.get("channels", 2)
    net = randomise(DiffusionUNet(**shape), 5).eval().to(args.device)
    cond, known, guess = windows_of(args.windows, args.side, channels)
    bad = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        torch.save({f"denoise_fn.{key}": value.cpu() for key, value in net.state_dict().items()}, folder / "net.pth")
        for label in args.cases.split(","):
            case = CASES[label]
            with open(folder / "in.raw", "wb") as f:
                for part in (cond, known, *([guess] if case.get("start") else [])):
                    f.write(part.tobytes())
            words = dict(model=folder / "net.pth", device=args.device, precision=args.precision, side=args.side, batch=args.windows,
                         kind=case["kind"], steps=case.get("steps", case["T"]), schedule_steps=case["T"], schedule=f"linear:0.0001:{case['end']}",
                         eta=case.get("eta", 0), start=case.get("start", 0), everywhere=int(case.get("everywhere", False)),
                         spacing="time" if case.get("time") else "lambda", seed=SEED, threads=args.threads,
                         **{"in": folder / "in.raw", "out": folder / "out.raw"})
            out = subprocess.run([args.rates, *(f"{k}={v}" for k, v in words.items())], capture_output=True, text=True)
            if out.returncode:
                sys.exit(out.stderr)
            ours = json.loads(out.stdout.splitlines()[0])
            got = np.fromfile(folder / "out.raw", np.float32).reshape(args.windows, args.side, args.side)
            want, gammas = sample(net, args.device, case, cond, known, guess.astype(np.float64))
            error = float(np.abs(got - want).max())
            bad |= not error <= args.bound
            print(json.dumps({"case": label, "side": args.side, "windows": args.windows, "steps": len(gammas), "error": float(f"{error:.3g}"),
                              "filled": float(f"{np.abs(want[known[..., 1] > 0]).mean():.3g}"), "first_gamma": float(f"{gammas[0]:.6g}"),
                              "seconds": ours["seconds"], "tile_steps_per_second": ours["tile_steps_per_second"]}), flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    main()
