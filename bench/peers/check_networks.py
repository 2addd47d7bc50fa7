"""Compares the full-width networks with PyTorch at odd sizes: prints a table; the status is 1 if a bound is exceeded.

    python bench/peers/check_networks.py [--tessera build/tessera] [--sizes 123x157,250x181] [--precisions fp32,bf16]

The reference is PyTorch in double precision; PyTorch's results in the same precision are also shown, as a measure of the
unavoidable rounding. In fp32 the largest difference is bounded (1e-5 of the largest value), in bf16 the relative L2
error (3e-2).
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tests" / "e2e")]
import networks
import reference
from support import draw, write_safetensors

LIMITS = {"fp32": 1e-5, "bf16": 3e-2}
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16, "reference": torch.float64}


def largest(a, b):
    return float(np.abs(a.astype(np.float64) - b).max() / np.abs(b).max())


def relative(a, b):
    return float(np.sqrt(((a.astype(np.float64) - b)**2).sum() / (b.astype(np.float64)**2).sum()))


def through_torch(net, image, dtype):
    x = torch.from_numpy(image).permute(2, 0, 1)[None].to(dtype)
    with torch.no_grad():
        return net.to(dtype)(x, sigma=reference.SIGMA)[0].permute(1, 2, 0).double().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tessera", default=str(HERE.parent.parent / "build" / "tessera"))
    parser.add_argument("--sizes", default="123x157,250x181")
    parser.add_argument("--precisions", default="fp32,bf16")
    args = parser.parse_args()
    broken = False
    print(f"{'network':8} {'size':>9} {'channels':>8} {'precision':>9} {'largest':>9} {'L2':>9} {'PyTorch: largest':>16} {'L2':>9}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for i, (network, shape) in enumerate(reference.FULL.items()):
            for channels in (3, 1):
                case = reference.Case(network, "full", channels, (), 80 + 2 * i + channels, **shape)
                weights = case.weights()
                write_safetensors(folder / "model.safetensors", weights)
                nets = {}
                for dtype in TORCH.values():
                    net = nets[dtype] = networks.NETWORKS[network](channels, **shape).eval()
                    net.load_state_dict({n: torch.from_numpy(a) for n, a in weights.items()}, strict=False)
                for size in args.sizes.split(","):
                    height, width = map(int, size.split("x"))
                    image = (draw(height, (height, width, channels)) + np.float32(1)) / np.float32(2)
                    wanted = through_torch(nets[torch.float64], image, torch.float64)
                    np.save(folder / "in.npy", image)
                    for precision in args.precisions.split(","):
                        subprocess.run([args.tessera, "denoise", folder / "in.npy", folder / "out.npy", "--model",
                                        folder / "model.safetensors", "--sigma", str(reference.SIGMA), "--precision",
                                        precision, "--quiet"], check=True)
                        got = np.load(folder / "out.npy").reshape(wanted.shape)
                        worst, mean = largest(got, wanted), relative(got, wanted)
                        theirs = through_torch(nets[TORCH[precision]], image, TORCH[precision])
                        their_worst, their_mean = largest(theirs, wanted), relative(theirs, wanted)
                        good = worst <= LIMITS["fp32"] if precision == "fp32" else mean <= LIMITS["bf16"]
                        broken |= not good
                        print(f"{network:8} {size:>9} {channels:>8} {precision:>9} {worst:9.2e} {mean:9.2e} {their_worst:16.2e}"
                              f" {their_mean:9.2e}{'' if good else '  OVER THE BOUND'}", flush=True)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
