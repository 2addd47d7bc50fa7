"""Times the 2-D Radon transform in PyTorch by its grid-sampling definition: forward, and the adjoint by automatic
differentiation, at the size and angles of a comparison; prints JSON lines like those of bench/rates/rays_rates.c.

    python torch_radon.py [--size 2048] [--views 100] [--repeats 10] [--device cuda] [--check FILE.npy]

There are two modes: `resident` keeps the sampling grids of all angles, as fast libraries do (size^2 views 8 bytes);
`angle by angle` computes each when it is needed. Each is warmed up, timed by events, and reports its peak memory besides
image and sinogram.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn.functional as F


def grid(size, angle, device):
    """Where the samples of one view lie, in [-1, 1]: rows h, columns s."""
    g = torch.linspace(-1, 1, size, device=device)
    c, n = math.cos(angle), math.sin(angle)
    s, h = g[None, :], g[:, None]
    return torch.stack((s * c + h * n, -s * n + h * c), -1)[None]


class Radon:
    def __init__(self, size, views, device, resident):
        self.size, self.device = size, device
        self.angles = [math.pi * k / views for k in range(views)]
        g = torch.linspace(-1, 1, size, device=device)
        self.mask = (g[None, :] ** 2 + g[:, None] ** 2 <= 1).float()[None, None]
        self.grids = [grid(size, a, device) for a in self.angles] if resident else None

    def forward(self, image):
        image = image * self.mask
        rows = []
        for k, angle in enumerate(self.angles):
            at = self.grids[k] if self.grids else grid(self.size, angle, self.device)
            rows.append(F.grid_sample(image, at, align_corners=True).sum(2))
        return torch.stack(rows, 2)

    def adjoint(self, sinogram):
        """The exact transpose; as in a gradient step the forward runs again to be differentiated."""
        x = torch.zeros(1, 1, self.size, self.size, device=self.device, requires_grad=True)
        return torch.autograd.grad(self.forward(x), x, sinogram)[0]


def timed(run, repeats, cuda):
    seconds = []
    for i in range(repeats + 2):
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if cuda:
            torch.cuda.synchronize()
        if i > 1:
            seconds.append(time.perf_counter() - start)
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--views", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--check", help="write the sinogram of a fixed image here, to be compared")
    options = parser.parse_args()
    cuda = options.device.startswith("cuda")
    title = torch.cuda.get_device_name() if cuda else "CPU"
    torch.manual_seed(1)
    image = torch.rand(1, 1, options.size, options.size, device=options.device)
    sinogram = torch.rand(1, 1, options.views, options.size, device=options.device)
    base = torch.cuda.memory_allocated() if cuda else 0
    for name, resident in (("resident", True), ("angle by angle", False)):
        radon = Radon(options.size, options.views, options.device, resident)
        if options.check and not resident:
            import numpy
            with torch.no_grad():
                numpy.save(options.check, radon.forward(image).cpu().numpy())
        for direction in ("forward", "adjoint"):
            if cuda:
                torch.cuda.reset_peak_memory_stats()
            if direction == "forward":
                with torch.no_grad():
                    seconds = timed(lambda: radon.forward(image), options.repeats, cuda)
            else:
                seconds = timed(lambda: radon.adjoint(sinogram), options.repeats, cuda)
            middle = statistics.median(seconds)
            print(json.dumps({"study": "rays", "engine": "torch", "way": name, "torch": torch.__version__,
                              "device": title, "operator": "radon", "size": options.size, "views": options.views,
                              "direction": direction, "median_ms": 1e3 * middle, "least_ms": 1e3 * min(seconds),
                              "most_ms": 1e3 * max(seconds),
                              "gups": 1e-9 * options.views * options.size ** 2 / middle,
                              "bytes_beyond": torch.cuda.max_memory_allocated() - base if cuda else None}), flush=True)
        del radon
        if cuda:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
