"""Runs the studies of `tessera bench` with PyTorch on a GPU: the same networks, sizes and JSON lines.

    python torch_cuda.py [--parts ceiling,whole,batch-compile,size,batch] [--models drunet,unet,dncnn] [--quick]

Parts, each printed line by line as it is measured:
  ceiling        the limits of the card: 8192^3 matrix products and a copy
  whole          three networks at 2048^2: torch.compile max-autotune, fp16, channels-last (the best a user gets)
  batch-compile  the same for patches of 128 at batches 8 and 64
  size           widths 1024..2048 x 2048: as deepinv runs it (TF32, NCHW, quadrants for odd widths), and fp16 channels-last
  batch          patches 128, 256, 512 at batches 1..64: fp16 channels-last, with and without transfer from the host and back

Compiling takes half a minute per network; its results are kept in TORCHINDUCTOR_CACHE_DIR, by default build/inductor.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(HERE.parent.parent / "build" / "inductor"))

import torch  # noqa: E402  (the cache's place must be known first)
from torch import nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from networks import NETWORKS  # noqa: E402

PARTS = ("ceiling", "whole", "batch-compile", "size", "batch")


class Device:
    """A GPU timed by events, or (to try this file without one) the CPU timed by the clock."""

    def __init__(self, name):
        self.name, self.cuda = name, name.startswith("cuda")
        self.title = torch.cuda.get_device_name() if self.cuda else "CPU"

    def sync(self):
        if self.cuda:
            torch.cuda.synchronize()

    def times(self, run, repeats, warm=2):
        """Seconds of each of `repeats` runs that follow each other without a gap."""
        for _ in range(warm):
            run()
        self.sync()
        if not self.cuda:
            marks = [time.perf_counter()]
            for _ in range(repeats):
                run()
                marks.append(time.perf_counter())
            return [b - a for a, b in zip(marks, marks[1:])]
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
        run()
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        self.sync()
        return [a.elapsed_time(b) * 1e-3 for a, b in zip(marks, marks[1:])]

    def reset_peak(self):
        if self.cuda:
            self.sync()
            torch.cuda.reset_peak_memory_stats()

    def empty(self):
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peak(self):
        return torch.cuda.max_memory_allocated() if self.cuda else 0


def initialise(model):
    """Values of the size that Tessera's random networks have: what a card draws, and so its clock, depends on them."""
    for name, module in model.named_modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            transposed = isinstance(module, nn.ConvTranspose2d)
            fan = module.in_channels * (1 if transposed else module.kernel_size[0] ** 2)
            added = name.endswith("res.2") or name in ("m_tail", "out_conv", "Conv_1x1")
            gain = 0.2 if added else 0.5 if transposed else 1.0 if name.startswith("m_") and "res" not in name else 2.0
            nn.init.normal_(module.weight, 0, (gain / fan) ** 0.5)
            if module.bias is not None:
                nn.init.normal_(module.bias, 0, 0.02)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1, 0.1)
            nn.init.normal_(module.bias, 0, 0.1)
            module.running_mean.normal_(0, 0.1)
            module.running_var.normal_(0, 0.3).abs_().add_(0.7)


def flop_per_pixel(model):
    """Of the convolutions, a multiply-add counted as two, from the shapes of a small pass."""
    total, hooks = [0], []

    def count(module, inputs, output):
        taps = module.kernel_size[0] * module.kernel_size[1]
        pixels = inputs[0] if isinstance(module, nn.ConvTranspose2d) else output
        total[0] += 2 * taps * module.in_channels * module.out_channels * pixels.shape[-1] * pixels.shape[-2]

    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            hooks.append(module.register_forward_hook(count))
    model(torch.rand(1, 3, 64, 64))
    for hook in hooks:
        hook.remove()
    return total[0] / 64**2


class Quadrants(nn.Module):
    """How deepinv's DRUNet treats sides that 8 does not divide: four overlapping corners of the image, one after another,
    each side (n // 2 // 64 + 1) * 64 long, and of each result the part up to the middle."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x, sigma=0.1):
        sides = x.shape[-2:]
        if all(n % 8 == 0 and n > 31 for n in sides):
            return self.network(x, sigma)
        if any(n < 64 for n in sides):
            padded = F.pad(x, (0, -sides[1] % 16, 0, -sides[0] % 16), mode="replicate")
            return self.network(padded, sigma)[..., :sides[0], :sides[1]]
        out = torch.empty_like(x)
        spans = []
        for n in sides:
            window = (n // 2 // 64 + 1) * 64
            # (window of the input, part of the output, the same part inside the window)
            spans.append(((slice(0, window), slice(0, n // 2), slice(0, n // 2)),
                          (slice(n - window, n), slice(n // 2, n), slice(window - (n - n // 2), window))))
        for rows in spans[0]:
            for cols in spans[1]:
                part = self.network(x[..., rows[0], cols[0]], sigma)
                out[..., rows[1], cols[1]] = part[..., rows[2], cols[2]]
        return out


class Study:
    def __init__(self, args):
        self.args, self.device, self.flop = args, Device(args.device), {}

    def network(self, name, engine):
        torch.manual_seed(0)
        model = NETWORKS[name]().eval().requires_grad_(False)
        initialise(model)
        if name not in self.flop:
            self.flop[name] = flop_per_pixel(model)
        if engine == "torch-default":
            model = Quadrants(model) if name == "drunet" else model
            return model.to(self.device.name)
        return model.to(self.device.name, self.half, memory_format=torch.channels_last)

    @property
    def half(self):
        return torch.float16 if self.device.cuda else torch.bfloat16

    def image(self, engine, count, height, width):
        x = torch.rand(count, 3, height, width, device=self.device.name)
        return x if engine == "torch-default" else x.to(self.half).contiguous(memory_format=torch.channels_last)

    def tell(self, study, engine, name, height, width, times, peak, **more):
        seconds, flop = statistics.median(times), self.flop[name] * height * width
        precision = "tf32" if engine == "torch-default" else "fp16" if self.device.cuda else "bf16"
        print(json.dumps({
            "command": "bench", "version": torch.__version__, "study": study, "engine": engine, "device": self.device.name,
            "device_name": self.device.title, "precision": precision, "model": f"random:{name}", "flop": flop,
            "input": {"height": height, "width": width, "channels": 3},
            "measured": {"seconds": seconds, "spread": (max(times) - min(times)) / seconds, "repeats": len(times),
                         "megapixels_per_second": 1e-6 * height * width / seconds, "tflops": 1e-12 * flop / seconds,
                         "peak_bytes": {"total": peak}}, **more}), flush=True)

    def ceiling(self):
        side = 8192 if self.device.cuda else 512
        for dtype in (torch.float16, torch.bfloat16):
            a, b = (torch.randn(side, side, device=self.device.name).to(dtype) for _ in range(2))
            times = self.device.times(lambda: torch.matmul(a, b), 20, warm=10)
            seconds = statistics.median(times)
            self.tell_ceiling(str(dtype).split(".")[-1], {"seconds": seconds, "tflops": 2e-12 * side**3 / seconds})
        source = torch.randn(side, side, device=self.device.name)
        target = torch.empty_like(source)
        seconds = statistics.median(self.device.times(lambda: target.copy_(source), 20))
        self.tell_ceiling("copy", {"seconds": seconds, "bytes_per_second": 2 * source.nbytes / seconds})

    def tell_ceiling(self, what, measured):
        print(json.dumps({"command": "bench", "version": torch.__version__, "study": "ceiling", "engine": "torch", "what": what,
                          "device": self.device.name, "device_name": self.device.title, "measured": measured}), flush=True)

    def compiled(self, name, x, repeats):
        """Times and peak of the compiled network. The first call compiles and tries kernels, the second records the graph:
        its memory is the run's."""
        torch._dynamo.reset()
        model = torch.compile(self.network(name, "torch-compile"), mode="max-autotune", dynamic=False)
        started = time.perf_counter()
        model(x, 0.1)
        self.device.sync()
        compile_seconds = time.perf_counter() - started
        self.device.empty()
        for _ in range(3):
            model(x, 0.1)
        self.device.sync()
        peak = self.device.peak()
        return self.device.times(lambda: model(x, 0.1), repeats, warm=3), peak, compile_seconds

    def whole(self):
        side = self.args.height
        for name in self.args.models:
            x = self.image("torch-compile", 1, side, side)
            times, peak, compiling = self.compiled(name, x, 20)
            self.tell("whole", "torch-compile", name, side, side, times, peak, compile_seconds=compiling)

    def batch_compile(self):
        side, patch = self.args.height, self.args.patches[0]
        for batch in (8, 64):
            runs = (side // patch) ** 2 // batch
            if runs == 0:
                continue
            x = self.image("torch-compile", batch, patch, patch)
            times, peak, compiling = self.compiled("drunet", x, 20)
            self.tell_batch("torch-compile", patch, batch, False, [t * runs for t in times], peak, compile_seconds=compiling)

    def tell_batch(self, engine, patch, batch, transfer, times, peak, **more):
        side = self.args.height
        seconds = statistics.median(times)
        self.tell("batch", engine, "drunet", side, side, times, peak, patch=patch, batch=batch, transfer=transfer,
                  images_per_second=1 / seconds, batch_seconds=seconds / ((side // patch) ** 2 // batch), **more)

    def size(self):
        for name in self.args.models:
            for engine in ("torch-default", "torch-fp16-channels-last"):
                model = self.network(name, engine)
                for width in self.args.widths:
                    self.device.empty()
                    x = self.image(engine, 1, self.args.height, width)
                    self.device.empty()
                    times = self.device.times(lambda: model(x, 0.1), self.args.repeats, warm=1)
                    self.tell("size", engine, name, self.args.height, width, times, self.device.peak())
                    del x
                del model

    def batch(self):
        engine, side = "torch-fp16-channels-last", self.args.height
        model = self.network("drunet", engine)
        for patch in self.args.patches:
            for batch in (1, 2, 4, 8, 16, 32, 64):
                runs = (side // patch) ** 2 // batch
                for transfer in (False, True) if runs else ():
                    self.device.empty()
                    x = self.image(engine, batch, patch, patch)
                    pinned = torch.rand(batch, 3, patch, patch, pin_memory=self.device.cuda)
                    back = torch.empty(batch, 3, patch, patch, pin_memory=self.device.cuda)

                    def resident():
                        for _ in range(runs):
                            model(x, 0.1)

                    def through():
                        for _ in range(runs):
                            y = pinned.to(self.device.name, non_blocking=True).to(self.half)
                            y = model(y.contiguous(memory_format=torch.channels_last), 0.1)
                            back.copy_(y.float(), non_blocking=True)

                    self.device.empty()
                    times = self.device.times(through if transfer else resident, self.args.repeats, warm=1)
                    self.tell_batch(engine, patch, batch, transfer, times, self.device.peak())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--models", default="drunet,unet,dncnn")
    parser.add_argument("--widths", help="default: 1024 to 2048 in steps of 64 and of 68")
    parser.add_argument("--height", type=int, default=2048)
    parser.add_argument("--patches", default="128,256,512")
    parser.add_argument("--repeats", type=int, default=3, help="of the sweeps; compiled networks are run 20 times")
    parser.add_argument("--quick", action="store_true", help="five widths, patches of 128 alone")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    args.models = args.models.split(",")
    args.patches = [128] if args.quick else [int(n) for n in args.patches.split(",")]
    args.widths = ([int(n) for n in args.widths.split(",")] if args.widths else
                   [1024, 1092, 1228, 1296, 2048] if args.quick else
                   sorted({*range(1024, 2049, 64), *range(1024, 2049, 68)}))
    parts = args.parts.split(",")
    if any(part not in PARTS for part in parts):
        sys.exit(f"--parts: use {', '.join(PARTS)}")
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU; --device cpu tries this file without one")
    study = Study(args)
    with torch.no_grad():
        for part in parts:
            started = time.perf_counter()
            getattr(study, part.replace("-", "_"))()
            print(f"{part}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
