"""Compares one step of the diffusion network of published width with PyTorch, and both speeds in one run; a JSON line a case. The status is 1
if a bound is exceeded: 1e-4 of the largest value in fp32, 5e-2 in bf16.

    python bench/peers/check_diffusion.py [--rates build/diffusion_rates] [--sides 128,256] [--batches 1,4] [--precisions fp32,bf16]
        [--device cpu] [--threads 2] [--repeats 3]

The weights are random; PyTorch writes them as a .pth file with the buffers of a training checkpoint, as published ones have them.
The reference is PyTorch in fp32; on the CPU its speed is that of channels_last without gradients.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from diffusion import DiffusionUNet, randomise

LIMITS = {"fp32": 1e-4, "tf32": 2e-3, "bf16": 5e-2, "fp16": 1e-2}
KINDS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
GAMMA = 0.37


def timed(net, x, gamma, repeats):
    times = []
    with torch.no_grad():
        for i in range(repeats + 1):
            start = time.perf_counter()
            y = net(x, gamma)
            if x.is_cuda:
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    return y, float(np.median(times[1:] or times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rates", default=str(HERE.parent.parent / "build" / "diffusion_rates"))
    parser.add_argument("--sides", default="128,256")
    parser.add_argument("--batches", default="1")
    parser.add_argument("--precisions", default="fp32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    net = randomise(DiffusionUNet(), 5).eval().to(args.device)
    bad = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        state = {f"denoise_fn.{key}": value.cpu() for key, value in net.state_dict().items()}
        state.update({key: torch.linspace(1, 0, 2000) for key in ("gammas", "sqrt_recip_gammas", "posterior_mean_coef1")})
        torch.save(state, folder / "net.pth")
        for side in map(int, args.sides.split(",")):
            for batch in map(int, args.batches.split(",")):
                image = torch.randn(batch, 2, side, side, generator=torch.Generator().manual_seed(3))
                image.permute(0, 2, 3, 1).contiguous().numpy().tofile(folder / "in.raw")
                gamma = torch.full((batch,), GAMMA)
                want, _ = timed(net.float().to(memory_format=torch.channels_last), image.to(args.device), gamma.to(args.device), 0)
                for precision in args.precisions.split(","):
                    kind = KINDS[precision]
                    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
                    x = image.to(args.device, kind).to(memory_format=torch.channels_last)
                    _, seconds = timed(net.to(kind).to(memory_format=torch.channels_last), x, gamma.to(args.device, kind), args.repeats)
                    net.float()
                    out = subprocess.run(
                        [args.rates, f"device={args.device}", f"model={folder / 'net.pth'}", f"precision={precision}", f"side={side}",
                         f"batch={batch}", f"gamma={GAMMA}", f"in={folder / 'in.raw'}", f"out={folder / 'out.raw'}",
                         f"threads={args.threads}", f"repeats={args.repeats}"], capture_output=True, text=True, check=True).stdout
                    ours = json.loads(out.splitlines()[0])
                    got = np.fromfile(folder / "out.raw", np.float32).reshape(batch, side, side)
                    truth = want[:, 0].cpu().numpy()
                    error = float(np.abs(got - truth).max() / np.abs(truth).max())
                    bad |= not error <= LIMITS[precision]
                    best = ours["graph_seconds"] or ours["seconds"]
                    print(json.dumps({"side": side, "batch": batch, "precision": precision, "error": float(f"{error:.3g}"),
                                      "seconds": best, "torch_seconds": round(seconds, 6), "ratio": round(seconds / best, 3),
                                      "gflops": ours["gflops"], "activations": ours["activations"],
                                      "workspace": ours["workspace"], "weights": ours["weights"]}), flush=True)
    sys.exit(bad)


if __name__ == "__main__":
    main()
