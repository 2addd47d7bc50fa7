"""Runs plug-and-play deblurring in PyTorch as the published benchmark does and prints a JSON line per iteration.

    python torch_deblur.py [--height 2048] [--width 1366] [--operators 8] [--iterations 10] [--ways default,best] [--device cuda]

  default  as deepinv does it: fp32 (convolutions in TF32, PyTorch's own default), the spectrum of every kernel computed again
           at every A and every transpose (14 FFTs per operator and iteration), all measurements kept, DRUNet eager, in
           quadrants if 8 does not divide a side
  half     fp16 channels-last DRUNet, eager, and the gradient from sums of spectra computed once
  best     the same with torch.compile(mode="max-autotune"): the best that a user can reach by hand

Loop: zeros; g = sum A'(A x - y); z = x - 0.1 g; d = DRUNet(z, 0.005); x = clamp(d). Weights are random, of the magnitude of
trained ones; time and memory do not depend on them. Peak bytes are PyTorch's own count of its allocations.
"""
import argparse
import json
import math
import statistics
import time

import torch

from networks import DRUNet
from torch_cuda import Quadrants, initialise

STEP, SIGMA, NOISE = 0.1, 0.005, 0.1


def kernels(count, size, device):
    """Gaussians turned from 0 to 180 degrees, the last one included, of sum 1."""
    a, b = 0.01 * size, 0.005 * size
    reach = int(max(a, b) / 0.3 + 1)
    axis = torch.arange(-reach, reach + 1, dtype=torch.float64)
    y, x = axis[:, None], axis[None, :]
    out = []
    for i in range(count):
        t = math.pi * i / max(count - 1, 1)
        u, v = x * math.cos(t) - y * math.sin(t), x * math.sin(t) + y * math.cos(t)
        k = torch.exp(-u**2 / (2 * b * b) - v**2 / (2 * a * a))
        out.append((k / k.sum()).float()[None, None].to(device))
    return out


def response(kernel, shape):
    """The half spectrum of a kernel around pixel (0, 0)."""
    side = kernel.shape[-1]
    image = torch.nn.functional.pad(kernel, (0, shape[1] - side, 0, shape[0] - side))
    return torch.fft.rfft2(torch.roll(image, (-(side // 2), -(side // 2)), (-2, -1)))


def blur(x, kernel, transposed=False):
    h = response(kernel, x.shape[-2:])
    return torch.fft.irfft2(torch.fft.rfft2(x) * (h.conj() if transposed else h), s=x.shape[-2:])


def truth_of(height, width, device):
    """A disk, a spot and waves, as `tessera reconstruct --problem deblur` draws them."""
    y = torch.linspace(-1, 1, height, device=device)[:, None]
    x = torch.linspace(-1, 1, width, device=device)[None, :]
    r = 0.8 * ((x * x + y * y).sqrt() < 0.5) + 0.3 * (x + 1) / 4
    g = 0.7 * (((x - 0.3)**2 + (y - 0.3)**2).sqrt() < 0.3) + 0.4 * (y + 1) / 4
    b = 0.3 * torch.sin(10 * x) * torch.sin(10 * y) + 0.5 + 0.2 * (x - y) / 4
    return torch.stack((r.expand(height, width), g.expand(height, width), b))[None].clamp(0, 1)


class Default:
    def __init__(self, options, blurs, measurements):
        self.blurs, self.measurements = blurs, measurements
        self.network = Quadrants(network()).to(options.device)

    def gradient(self, x):
        g = torch.zeros_like(x)
        for kernel, y in zip(self.blurs, self.measurements):
            g += blur(blur(x, kernel) - y, kernel, True)
        return x - STEP * g

    def denoise(self, z):
        return self.network(z, SIGMA).clamp(0, 1)


class Half:
    def __init__(self, options, blurs, measurements):
        self.half = torch.float16 if options.device.startswith("cuda") else torch.bfloat16
        shape = measurements[0].shape[-2:]
        self.power, self.data = 0, 0
        for kernel in blurs:
            h = response(kernel, shape)
            self.power = self.power + h.real**2 + h.imag**2
            self.data = self.data + h.conj() * torch.fft.rfft2(measurements.pop(0))
        self.power, self.data = 1 - STEP * self.power, STEP * self.data  # the step down the gradient, all in one
        self.network = network().to(options.device, self.half, memory_format=torch.channels_last)

    def gradient(self, x):
        return torch.fft.irfft2(torch.fft.rfft2(x).mul_(self.power).add_(self.data), s=x.shape[-2:])

    def denoise(self, z):
        z = z.to(self.half).contiguous(memory_format=torch.channels_last)
        return self.network(z, SIGMA).float(memory_format=torch.contiguous_format).clamp_(0, 1)


class Best(Half):
    def __init__(self, options, blurs, measurements):
        super().__init__(options, blurs, measurements)
        self.network = torch.compile(self.network, mode="max-autotune", dynamic=False)


def network():
    torch.manual_seed(0)
    model = DRUNet().eval().requires_grad_(False)
    initialise(model)
    return model


def run(name, way, options):
    cuda = options.device.startswith("cuda")
    torch.manual_seed(42)
    size = max(options.height, options.width)
    blurs = kernels(options.operators, size, options.device)
    truth = truth_of(options.height, options.width, options.device)
    measurements = []
    for kernel in blurs:
        y = blur(truth, kernel)
        measurements.append((y + NOISE * torch.randn_like(y)).clamp_(0, 1))
    del truth, y
    started = time.perf_counter()
    loop = way(options, blurs, measurements)
    x = torch.zeros(1, 3, options.height, options.width, device=options.device)
    for _ in range(3):  # compiles, tries kernels, records the graph
        x = loop.denoise(loop.gradient(x))
    sync = torch.cuda.synchronize if cuda else lambda: None
    sync()
    warm = time.perf_counter() - started
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    x = torch.zeros_like(x)
    gradient, denoise, whole = [], [], []
    for _ in range(options.iterations):
        sync()
        a = time.perf_counter()
        z = loop.gradient(x)
        sync()
        b = time.perf_counter()
        x = loop.denoise(z)
        sync()
        c = time.perf_counter()
        gradient.append(b - a), denoise.append(c - b), whole.append(c - a)
    peak = torch.cuda.max_memory_allocated() if cuda else None
    print(json.dumps({"study": "deblur", "engine": "torch", "way": name, "torch": torch.__version__,
                      "device": torch.cuda.get_device_name() if cuda else "CPU", "height": options.height,
                      "width": options.width, "operators": options.operators,
                      "gradient_ms": 1e3 * statistics.median(gradient), "denoise_ms": 1e3 * statistics.median(denoise),
                      "iteration_ms": 1e3 * statistics.median(whole), "peak_bytes": peak, "warm_seconds": warm}),
          flush=True)
    if cuda:
        del loop, x, z, measurements, blurs
        torch._dynamo.reset()
        torch.cuda.empty_cache()


WAYS = {"default": Default, "half": Half, "best": Best}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--height", type=int, default=2048)
    parser.add_argument("--width", type=int, default=1366)
    parser.add_argument("--operators", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--ways", default="default,half,best")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    with torch.no_grad():
        for name in options.ways.split(","):
            run(name, WAYS[name], options)


if __name__ == "__main__":
    main()
