"""Times one training step with PyTorch at its best and prints a JSON line for each case and mode.

    python bench/peers/torch_train.py --cases "drunet:64 dncnn8:64:40" [--modes eager-bf16,compile-bf16] [--device cuda]

A case is NETWORK:BATCH[:CROP], with =MODE,MODE behind it for modes of its own; dncnn8 is a DnCNN of 8 layers. A
mode is ENGINE-PRECISION, with -pad, -nchw or -native behind it:
  eager     as it is                      fp32, tf32   no autocast
  compile   torch.compile                 bf16, fp16   autocast; fp16 with a GradScaler
  reduce    its reduce-overhead mode      fastmath     (CPU) oneDNN may compute fp32 convolutions in bf16
  graph     eager, the whole step captured in one CUDA graph by hand
Layout is channels-last, unless -nchw; -pad gives DRUNet's first and last convolution eight channels for tensor cores; -native
turns oneDNN off on the CPU, which is faster where oneDNN has no kernels for gradients (ARM without SVE).
The step: MSE, backward, fused Adam, on one random batch that stays on the device. Steps follow each other without a wait.

Memory on a GPU: `peak_mib` is the most that tensors took after the first step, which tries algorithms, and while graphs are
recorded; `reserved_mib` is what PyTorch held for that; `driver_mib` is what the driver lost since before the model existed.
On the CPU every mode runs in its own process: `resident_mib` is the growth of the resident peak from before the model
existed, but after a tiny step has loaded the libraries; `process_mib` is the growth since `import torch`. `least_cpu_ms` is
the time of all threads: on a busy machine it says more than the clock.
"""
import argparse
import gc
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
STARTED = time.perf_counter()
MIB = 1 << 20
MODES = {"cuda": "eager-bf16,graph-bf16,eager-bf16-pad,graph-bf16-pad,eager-fp16,compile-bf16,reduce-bf16",
         "cpu": "eager-fp32,eager-fp32-nchw,eager-fp32-native,compile-fp32,compile-fp32-native,eager-bf16,eager-fastmath"}
ENGINES = ("eager", "graph", "compile", "reduce")
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fastmath")


class Mode:
    def __init__(self, name):
        self.name = name
        self.engine, self.precision, *rest = name.split("-") + [""] * ("-" not in name)
        if self.engine not in ENGINES or self.precision not in PRECISIONS or not {*rest} <= {"pad", "nchw", "native"}:
            sys.exit(f"mode {name}: use {'|'.join(ENGINES)}-{'|'.join(PRECISIONS)}, with -pad, -nchw or -native behind it")
        self.pad, self.nchw, self.native = ("pad" in rest, "nchw" in rest, "native" in rest)
        self.compiled = self.engine in ("compile", "reduce")


class Case:
    def __init__(self, text, modes):
        text, _, own = text.partition("=")
        match = re.fullmatch(r"(drunet|unet|dncnn)(\d*):(\d+)(?::(\d+))?", text)
        if not match or (match[2] and match[1] != "dncnn"):
            sys.exit(f"case {text}: use drunet:64, unet:16:96 or dncnn8:16 (NETWORK:BATCH[:CROP])")
        self.modes = [Mode(name) for name in (own or modes).split(",")]
        self.text, self.network, self.depth = text, match[1], int(match[2] or 0)
        self.batch, self.crop = int(match[3]), int(match[4] or 128)


def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def make_network(case, pad=False):
    import torch
    import networks
    from check_training import start
    torch.manual_seed(1)
    net = networks.DnCNN(3, case.depth) if case.depth else networks.NETWORKS[case.network]()
    start(net)
    if pad:
        import train_drunet_small
        plain = net
        net = type("PaddedDRUNet", (networks.DRUNet,), {"forward": train_drunet_small.DRUNet.forward})()
        net.load_state_dict(plain.state_dict())
    return net


class Step:
    """One optimizer step as a function without arguments: zero, forward, loss, backward, update."""

    def __init__(self, net, x, target, level, mode):
        import torch
        import torch.nn.functional as F
        self.torch, self.mode, kind = torch, mode, x.device.type
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(mode.precision)
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-4, fused=True, **({"capturable": True} if mode.engine == "graph" else {}))
        self.scaler = torch.amp.GradScaler(kind, init_scale=1024.0, enabled=mode.precision == "fp16")

        def objective(x, target):
            with torch.autocast(kind, half, enabled=half is not None):
                y = net(x) if level is None else net(x, level)
            return F.mse_loss(y.float(), target)

        if mode.compiled:
            objective = torch.compile(objective, dynamic=False, **({"mode": "reduce-overhead"} if mode.engine == "reduce" else {}))
        self.objective, self.data, self.loss = objective, (x, target), None

    def __call__(self):
        if self.mode.engine == "reduce":
            self.torch.compiler.cudagraph_mark_step_begin()
        self.loss = None
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.objective(*self.data)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.loss = loss.detach()

    def captured(self):
        """The whole step as one CUDA graph, after some steps on another stream, as PyTorch's manual asks."""
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self()
        return self.graph.replay


def tensors_of(case, mode, device):
    """Network, input, target and noise level on the device."""
    import torch
    layout = torch.contiguous_format if mode.nchw else torch.channels_last
    net = make_network(case, mode.pad).to(device, memory_format=layout).train()
    shape = (case.batch, 3, case.crop, case.crop)
    x, target = (torch.rand(shape).to(device, memory_format=layout) for _ in range(2))
    level = None if case.network != "drunet" else torch.full((case.batch, 1, 1, 1), 0.1, device=device) if mode.pad else 0.1
    return net, x, target, level


def tell(case, mode, args, times, step, **more):
    import torch
    ms = 1e3 * statistics.median(times)
    print(json.dumps({"study": "train", "engine": "torch", "version": torch.__version__, "device": args.device, "case": case.text,
                      "model": case.network + (str(case.depth) if case.depth else ""), "mode": mode.name, "precision": mode.precision,
                      "batch": case.batch, "crop": case.crop, "ms": ms, "least_ms": 1e3 * min(times), "steps": len(times),
                      "samples_per_second": 1e3 * case.batch / ms, "loss": float(step.loss), **more}), flush=True)


def run_cuda(case, mode, args):
    import torch
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = mode.precision == "tf32"
    torch.zeros(1, device=args.device)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    step = Step(*tensors_of(case, mode, args.device), mode)
    started = time.perf_counter()
    step()
    torch.cuda.synchronize()
    compiling = time.perf_counter() - started
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    run = step.captured() if mode.engine == "graph" else step
    for _ in range(args.warm):
        run()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(args.steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        run()
        mark.record()
    torch.cuda.synchronize()
    tell(case, mode, args, [1e-3 * a.elapsed_time(b) for a, b in zip(marks, marks[1:])], step, device_name=torch.cuda.get_device_name(),
         peak_mib=torch.cuda.max_memory_allocated() / MIB, reserved_mib=torch.cuda.max_memory_reserved() / MIB,
         driver_mib=(free - torch.cuda.mem_get_info()[0]) / MIB, first_step_seconds=compiling)


def tiny_step(mode):
    """Loads what the first step of any network loads, so that the growth after it is the network's."""
    import torch
    step = Step(torch.nn.Conv2d(3, 8, 3, padding=1), torch.rand(1, 3, 16, 16), torch.rand(1, 8, 16, 16), None, mode)
    step()


def run_cpu(case, mode, args):
    if mode.precision == "fastmath":
        os.environ["DNNL_DEFAULT_FPMATH_MODE"] = "BF16"
    if mode.native:  # the cache of compiled networks does not ask whether oneDNN was on
        os.environ["TORCHINDUCTOR_CACHE_DIR"] += "-native"
    import torch
    torch.set_num_threads(args.threads)
    torch.backends.mkldnn.enabled = not mode.native
    imported = status("VmRSS")
    tiny_step(mode)
    gc.collect()
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = status("VmRSS")
    step = Step(*tensors_of(case, mode, args.device), mode)
    started = time.perf_counter()
    step()
    compiling = time.perf_counter() - started
    times, busy = [], []
    for i in range(args.warm + args.steps):
        start, used = time.perf_counter(), time.process_time()
        step()
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    peak = status("VmHWM")
    tell(case, mode, args, times[args.warm:], step, threads=args.threads, least_cpu_ms=1e3 * min(busy),
         resident_mib=(peak - before) / MIB, process_mib=(peak - imported) / MIB, first_step_seconds=compiling)


def in_own_process(case, mode, args):
    words = [sys.executable, __file__, "--device", args.device, "--cases", case.text, "--modes", mode.name, "--steps", args.steps,
             "--warm", args.warm, "--threads", args.threads]
    subprocess.run([str(word) for word in words], check=False)


def report_fault(case, mode, fault):
    print(json.dumps({"study": "train", "engine": "torch", "case": case.text, "mode": mode.name, "error": fault}), flush=True)


def measure(case, mode, args):
    """Runs one mode; a mode that fails is reported as a line, and the others go on."""
    cuda = args.device.startswith("cuda")
    try:
        (run_cuda if cuda else run_cpu)(case, mode, args)
    except Exception as problem:  # noqa: BLE001  (whatever PyTorch raises for a mode that does not work here)
        report_fault(case, mode, f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}")
    if "torch" in sys.modules:
        import torch
        torch._dynamo.reset()
        gc.collect()
        if cuda:
            torch.cuda.empty_cache()


def pairs_of(cases):
    """The first mode of all cases, then the second: if the time ends, the slow modes at the end are left out, not cases."""
    for i in range(max(len(case.modes) for case in cases)):
        for case in cases:
            if i < len(case.modes) and (case.network == "drunet" or not case.modes[i].pad):
                yield case, case.modes[i]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", default="drunet:64 drunet:16 unet:16 dncnn:64")
    parser.add_argument("--modes", help="separated by commas; default: " + "; ".join(f"{k}: {v}" for k, v in MODES.items()))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0, help="begin no further mode after this time")
    parser.add_argument("--write", metavar="FILE", help="only write the weights at which the first case starts, as safetensors")
    args = parser.parse_args()
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(HERE.parent.parent / "build" / "inductor"))
    sys.path.insert(0, str(HERE))
    kind = args.device.split(":")[0]
    cases = [Case(text, args.modes or MODES[kind]) for text in args.cases.split()]
    if args.write:
        import torch
        from check_training import write_safetensors
        write_safetensors(args.write, {k: v for k, v in make_network(cases[0]).state_dict().items() if v.dtype == torch.float32})
        return
    pairs = list(pairs_of(cases))
    for case, mode in pairs:
        if args.seconds and time.perf_counter() - STARTED > args.seconds:
            report_fault(case, mode, "left out: the time is over")
        elif kind == "cpu" and len(pairs) > 1:
            in_own_process(case, mode, args)
        else:
            measure(case, mode, args)


if __name__ == "__main__":
    main()
