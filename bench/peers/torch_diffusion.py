"""Runs the study `tessera bench dem` with PyTorch: the same network, tiles, batches and JSON lines.

    python torch_diffusion.py [--modes eager-tf32,half-fp16,reduce-fp16] [--batches 1,4,16,64] [--steps 20] [--tile 128] [--seconds 2]

A step is one evaluation of the network and one DDIM update of the void, without noise; tiles stay on the card, which Tessera's do not.
Scales and shifts of each step are computed by the network, as published code does it. Modes are WAY-PRECISION:
  eager    as PyTorch runs it by default (fp32: no TF32; tf32: its default for convolutions); fp16 and bf16: autocast, channels-last
  half     weights and activations in fp16 or bf16, channels-last
  graph    as half (fp32, tf32: channels-last), the step captured as a CUDA graph
  reduce   as graph, torch.compile with mode="reduce-overhead", which captures graphs
  max      the same with mode="max-autotune"; compiling takes minutes for each batch
A mode that fails becomes a line with its error. Tensors of a captured graph are not in `peak_bytes`, but in `driver_bytes`. `gpu_busy` and `joules` as Tessera measures them (src/cuda/core/meters.c).
"""
import argparse
import ctypes
import gc
import json
import math
import statistics
import sys
import threading
import time

from torch_cuda import Device  # first: it sets the place of compiled kernels
import torch
from torch.utils.flop_counter import FlopCounterMode

from diffusion import DiffusionUNet, randomise

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
WAYS = ("eager", "half", "graph", "reduce", "max")


class Meter:
    """Busy share and energy of the card between `with` and its end; nothing where there is no NVML."""

    def __init__(self, device):
        self.readings, self.figures, self.nvml, self.card = [], {}, None, ctypes.c_void_p()
        if not device.cuda:
            return
        try:
            uuid = "GPU-" + str(torch.cuda.get_device_properties(device.name).uuid).removeprefix("GPU-")
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.card)) == 0:
                self.nvml = nvml
        except (OSError, AttributeError) as error:
            print(f"no meter: {error}", file=sys.stderr)

    def energy(self):
        value = ctypes.c_ulonglong()
        good = self.nvml and self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.card, ctypes.byref(value)) == 0
        return value.value if good else None

    def watch(self):
        rates = (ctypes.c_uint * 2)()
        while not self.stop.wait(0.05):
            late = time.perf_counter() - self.begin >= 1  # earlier readings may describe the time before
            if late and self.nvml.nvmlDeviceGetUtilizationRates(self.card, rates) == 0:
                self.readings.append(rates[0] / 100)

    def __enter__(self):
        self.before, self.begin, self.stop = self.energy(), time.perf_counter(), threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        if self.nvml:
            self.thread.start()
        return self

    def __exit__(self, *ignored):
        after = self.energy()
        self.stop.set()
        if self.nvml:
            self.thread.join()
        if self.readings:
            self.figures["gpu_busy"] = statistics.mean(self.readings)
        if after is not None and self.before is not None:
            self.figures["joules"] = 1e-3 * (after - self.before)


def rows_of(steps, device):
    """Of each step: gamma, and the factors of y' = A x0 + B y with x0 = clamp(P y - Q e); even in ln(signal / noise)."""
    def level(g):
        return 0.5 * math.log(g / (1 - g))

    first, last = level(4.386e-5), level(0.9999)
    gammas = [1 / (1 + math.exp(-2 * (first + (last - first) * i / max(1, steps - 1)))) for i in range(steps)] + [1.0]
    rows = []
    for g, after in zip(gammas, gammas[1:]):
        b = math.sqrt((1 - after) / (1 - g))
        rows.append([g, 1 / math.sqrt(g), math.sqrt(1 / g - 1), math.sqrt(after) - b * math.sqrt(g), b])
    return list(torch.tensor(rows, device=device))


class Sampler:
    """One mode for one batch: `run` does all steps."""

    def __init__(self, study, way, precision, batch):
        args, self.device = study.args, study.device
        self.dtype, self.name = DTYPES[precision], study.device.name
        self.layout = torch.contiguous_format if way == "eager" and self.dtype == torch.float32 else torch.channels_last
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32" and way != "eager"
        self.cast = way == "eager" and self.dtype != torch.float32
        self.net = study.network().to(self.name, memory_format=self.layout)
        if way != "eager":
            self.net = self.net.to(self.dtype)
        kind = self.dtype if way != "eager" else torch.float32
        shape = (batch, 1, args.tile, args.tile)
        self.cond = (2 * torch.rand(shape, device=self.name) - 1).to(kind)
        self.mask = torch.zeros(shape, device=self.name)
        self.mask[..., : args.tile // 3] = 1
        self.noise, self.y = torch.randn(shape, device=self.name), torch.empty(shape, device=self.name)
        self.rows, self.kind, self.step = rows_of(args.steps, self.name), kind, self.plain
        self.way, self.compile_seconds = way, None

    def plain(self, y, row):
        gamma = row[0].expand(y.shape[0]).to(self.kind)
        x = torch.cat([self.cond, y.to(self.kind)], 1).contiguous(memory_format=self.layout)
        if self.cast:
            with torch.autocast(self.name.split(":")[0], self.dtype):
                e = self.net(x, gamma)
        else:
            e = self.net(x, gamma)
        x0 = (row[1] * y - row[2] * e.float()).clamp(-1, 1)
        return self.cond.float() * (1 - self.mask) + self.mask * (row[3] * x0 + row[4] * y)

    def capture(self):
        row = self.rows[0].clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.plain(self.y, row)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.y.copy_(self.plain(self.y, row))
        return graph, row

    def prepare(self):
        """Captures or compiles; what that takes is not part of the run."""
        started = time.perf_counter()
        self.y.copy_(self.noise)
        if self.way == "graph":
            self.graph, self.row = self.capture()
        elif self.way in ("reduce", "max"):
            torch._dynamo.reset()
            mode = "reduce-overhead" if self.way == "reduce" else "max-autotune"
            self.step = torch.compile(self.plain, mode=mode, dynamic=False)
        self.run()
        self.device.sync()
        self.compile_seconds = time.perf_counter() - started

    def run(self):
        self.y.copy_(self.noise)
        if self.way == "graph":
            for row in self.rows:
                self.row.copy_(row)
                self.graph.replay()
            return
        for row in self.rows:
            if self.way in ("reduce", "max"):
                torch.compiler.cudagraph_mark_step_begin()
            self.y.copy_(self.step(self.y, row))


class Study:
    def __init__(self, args):
        self.args, self.device = args, Device(args.device)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            self.network()(torch.zeros(1, 2, args.tile, args.tile), torch.full((1,), 0.5))
        self.flop = counter.get_total_flops()
        self.parameters = sum(p.numel() for p in self.network().parameters())

    def network(self):
        a = self.args
        return randomise(DiffusionUNet(2, a.widths, groups=min(32, a.widths[0])), 0).eval().requires_grad_(False)

    def line(self, mode, batch, **more):
        a = self.args
        print(json.dumps({
            "command": "bench", "version": torch.__version__, "study": "dem", "engine": f"torch-{mode}", "device": self.device.name,
            "device_name": self.device.title, "precision": mode.split("-")[1], "model": "random:diffusion", "parameters": self.parameters,
            "sampler": "ddim", "steps": a.steps, "batch": batch, "flop": self.flop * batch * a.steps,
            "input": {"height": a.tile, "width": a.tile, "channels": 2}, **more}), flush=True)

    def used(self):
        if not self.device.cuda:
            return 0
        free, total = torch.cuda.mem_get_info()
        return total - free

    def point(self, mode, batch):
        a, device = self.args, self.device
        torch._dynamo.reset()  # releases the graphs of the point before
        gc.collect()
        device.empty()
        base = self.used()
        sampler = Sampler(self, *mode.split("-"), batch)
        sampler.prepare()
        device.empty()
        sampler.run()
        device.sync()
        once = statistics.median(device.times(sampler.run, 1, warm=0 if not device.cuda else 2))
        repeats = min(1 << 16, max(a.repeats, math.ceil(a.seconds / once)))
        with Meter(device) as meter:
            times = device.times(sampler.run, repeats, warm=0)
        # device.times runs once more on a card, before its first mark
        runs = repeats + (1 if device.cuda else 0)
        seconds, count = statistics.median(times), batch * a.steps
        figures = dict(meter.figures)
        if "joules" in figures:
            figures["joules_per_tile_step"] = figures["joules"] / (count * runs)
        measured = {"seconds": seconds, "spread": (max(times) - min(times)) / seconds, "repeats": repeats,
                    "tile_steps_per_second": count / seconds, "ms_per_step": 1e3 * seconds / a.steps,
                    "tflops": 1e-12 * self.flop * count / seconds, **figures,
                    "finite": bool(torch.isfinite(sampler.y).all()), "peak_bytes": {"total": device.peak()},
                    "reserved_bytes": torch.cuda.max_memory_reserved() if device.cuda else 0, "driver_bytes": max(0, self.used() - base)}
        self.line(mode, batch, measured=measured, compile_seconds=sampler.compile_seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modes", default="eager-tf32,eager-fp16,eager-bf16,half-fp16,half-bf16,graph-fp16,reduce-fp16")
    parser.add_argument("--batches", default="1,4,16,64")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tile", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--widths", default="32,64,128,256,256", help="of the network; others than these only to try this file")
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    args.widths = tuple(int(n) for n in args.widths.split(","))
    modes = args.modes.split(",")
    for mode in modes:
        way, _, precision = mode.partition("-")
        if way not in WAYS or precision not in DTYPES:
            sys.exit(f"--modes {mode}: use {', '.join(WAYS)}, then - and {', '.join(DTYPES)}")
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU; --device cpu tries this file without one")
    study = Study(args)
    for mode in modes:
        for batch in (int(n) for n in args.batches.split(",")):
            started = time.perf_counter()
            try:
                with torch.no_grad():
                    study.point(mode, batch)
            except Exception as error:  # out of memory, or a mode that this version lacks: the others go on
                study.line(mode, batch, error=(str(error).strip().splitlines() or [repr(error)])[0][:300])
            print(f"{mode} {batch}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
