"""Compares one iteration of deblurring 2048 x 1366 pixels from 8 blurred copies with PyTorch: seconds, shares, peak bytes.

    python bench/studies/compare_deblur.py build/tessera [--memory 700M] [--peer LINES.jsonl] [--ways default,half,best]

Runs one command line and prints its record, then the lines of bench/peers/torch_deblur.py (measured now,
or read from a file), then the ratios. The network is a DRUNet of full width (bench/studies/widen.py), fp16.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def ours(options, folder):
    model = options.model
    if not model:
        model = folder / "wide.safetensors"
        small = HERE.parent.parent / "models" / "drunet-color-tiny.safetensors"
        subprocess.run([sys.executable, HERE / "widen.py", small, model], check=True, stdout=subprocess.DEVNULL)
    command = [options.tessera, "reconstruct", folder / "out.png", "--problem", "deblur", "--preset", "deepinv", "--size",
               options.size, "--operators", "8", "--model", model, "--device", options.device, "--quiet",
               "--json", folder / "record.json"]
    command += ["--memory", options.memory] if options.memory else []
    print(" ".join(str(c) for c in command), flush=True)
    subprocess.run([str(c) for c in command], check=True)
    record = json.loads((folder / "record.json").read_text())
    iterations = record["reconstruct"]["iterations"][1:]  # the first brings kernels and clocks up
    gradient, denoise = (statistics.median(i[k] for i in iterations) for k in ("gradient_seconds", "denoise_seconds"))
    whole = statistics.median(i["gradient_seconds"] + i["denoise_seconds"] for i in iterations)
    plan = record["plan"]
    line = {"study": "deblur", "engine": "tessera", "device": record.get("device_name"), "memory": options.memory,
            "gradient_ms": 1e3 * gradient, "denoise_ms": 1e3 * denoise, "iteration_ms": 1e3 * whole,
            "peak_bytes": record["measured"]["peak_bytes"]["total"], "planned_bytes": plan["peak_bytes"],
            "tile": plan["tile"], "tiles": plan["tiles"], "halo": plan["halo"],
            "psnr_db": [round(i["psnr_db"], 3) for i in record["reconstruct"]["iterations"]]}
    print(json.dumps(line), flush=True)
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tessera")
    parser.add_argument("--memory", default="700M", help="empty: no limit")
    parser.add_argument("--size", default="2048x1366")
    parser.add_argument("--model", help="default: a full-width network made from the bundled one")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--peer", help="lines of torch_deblur.py, measured before")
    parser.add_argument("--ways", default="default,half,best")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own = ours(options, pathlib.Path(folder))
    share = own["gradient_ms"] / own["iteration_ms"]
    print(f"tessera: {own['iteration_ms']:.2f} ms an iteration, {own['gradient_ms']:.3f} ms of it the gradient: {100 * share:.1f} %, "
          f"{own['peak_bytes'] / 2**20:.0f} MiB", flush=True)
    height, width = options.size.split("x")
    if options.peer:
        lines = pathlib.Path(options.peer).read_text().splitlines()
    else:
        command = [sys.executable, HERE.parent / "peers" / "torch_deblur.py", "--height", height, "--width", width,
                   "--ways", options.ways, "--device", options.device]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    for text in lines:
        if not text.startswith("{"):
            continue
        peer = json.loads(text)
        print(text)
        print(f"{peer['way']}: {peer['iteration_ms'] / own['iteration_ms']:.2f} times as long an iteration, "
              f"{(peer['peak_bytes'] or 0) / own['peak_bytes']:.2f} times the bytes", flush=True)


if __name__ == "__main__":
    main()
