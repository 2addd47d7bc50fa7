"""One denoising job in PyTorch as a script does it: import, weights, device, images, results. Prints a JSON line: seconds
from the start of this file, and from after the import of torch.

    python torch_device.py WEIGHTS.pth NETWORK IMAGES.npy OUT.npy --device cpu|cuda [--mode fp32|bf16|fp16] [--layout nchw|nhwc] [--sigma 0.1]

WEIGHTS.pth is a state dict of networks.py; its shapes give the widths. IMAGES.npy is N x H x W x C in [0, 1]; images are denoised one by one.
compare_device.py starts it.
"""
import time

started = time.perf_counter()

import argparse
import json
import resource

import numpy as np
import torch

from networks import NETWORKS

imported = time.perf_counter()


def widths_of(weights):
    """Widths and number of blocks of a DRUNet from the shapes of its weights; other networks have their published ones."""
    if "m_head.weight" not in weights:
        return {}
    widths = [weights[f"m_down{level}.0.res.0.weight"].shape[0] for level in (1, 2, 3)] + [weights["m_body.0.res.0.weight"].shape[0]]
    return {"widths": widths, "blocks": sum(key.startswith("m_body.") and key.endswith(".res.0.weight") for key in weights)}


def main():
    parser = argparse.ArgumentParser()
    for name in ("weights", "network", "images", "out"):
        parser.add_argument(name)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="fp32", choices=("fp32", "bf16", "fp16"))
    parser.add_argument("--layout", default="nchw", choices=("nchw", "nhwc"))
    parser.add_argument("--sigma", type=float, default=0.1)
    args = parser.parse_args()
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[args.mode]
    layout = torch.channels_last if args.layout == "nhwc" else torch.contiguous_format
    weights = torch.load(args.weights, map_location="cpu", weights_only=True)
    model = NETWORKS[args.network](**widths_of(weights)).eval()
    model.load_state_dict(weights)
    model = model.to(args.device, kind, memory_format=layout)
    images = torch.from_numpy(np.load(args.images)).permute(0, 3, 1, 2)
    results = torch.empty(images.shape)
    with torch.inference_mode():
        for i in range(len(images)):
            x = images[i:i + 1].to(args.device, kind, memory_format=layout)
            results[i] = model(x, args.sigma)[0].float().cpu()
    np.save(args.out, results.permute(0, 2, 3, 1).numpy())
    ended = time.perf_counter()
    print(json.dumps({"seconds": ended - started, "after_import_seconds": ended - imported, "version": torch.__version__,
                      "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


main()
