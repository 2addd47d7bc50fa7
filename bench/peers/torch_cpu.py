"""Runs one network on one image with PyTorch on the CPU and prints seconds and resident growth as one JSON line.

    python torch_cpu.py drunet 512 [--layout nchw|nhwc] [--mode fp32|autocast|fastmath] [--threads 2]

The growth of VmHWM is measured from after loading to the end, in a separate process. `fastmath` sets the environment
variable that lets oneDNN use bf16 inside fp32 convolutions. compare_cpu.py runs this script and takes the best mode.
"""
import argparse
import json
import os
import time


def status(key):
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("size", type=int)
    parser.add_argument("--layout", default="nhwc", choices=["nchw", "nhwc"])
    parser.add_argument("--mode", default="fp32", choices=["fp32", "autocast", "fastmath"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6, help="time floor for the repetitions")
    parser.add_argument("--weights", help="a state dict to load; random weights without it")
    args = parser.parse_args()
    if args.mode == "fastmath":
        os.environ["DNNL_DEFAULT_FPMATH_MODE"] = "BF16"
    import torch
    from networks import NETWORKS

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = NETWORKS[args.network]().eval()
    if args.weights:
        model.load_state_dict(torch.load(args.weights, map_location="cpu"))
    x = torch.rand(1, 3, args.size, args.size)
    if args.layout == "nhwc":
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = status("VmRSS")
    times = []
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=args.mode == "autocast"):
        while len(times) < 3 or sum(times) < args.seconds:
            start = time.perf_counter()
            model(x, 0.1)
            times.append(time.perf_counter() - start)
    times = sorted(times[1:])
    print(json.dumps({"study": "cpu", "engine": "pytorch", "version": torch.__version__, "network": args.network,
                      "size": args.size, "layout": args.layout, "mode": args.mode, "threads": args.threads,
                      "seconds": times[len(times) // 2], "best": times[0], "repeats": len(times),
                      "growth_bytes": status("VmHWM") - before}))


if __name__ == "__main__":
    main()
