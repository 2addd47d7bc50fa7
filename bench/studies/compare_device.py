"""compare_device.py PROGRAM --out DIR [--only denoise] [--repeats 2] [--devices cpu,cuda]: whole denoising jobs on each device, Tessera and PyTorch in one run.

`tessera bench device` runs its jobs on the CPU and on the card. Then PyTorch does the same ones as a script would (bench/peers/torch_device.py):
the same network, number of images and their size, in the same precision, both layouts; the best counts. PyTorch has two records of each job: one of
the whole script, and one without the seconds that Python and `import torch` take, as in a program that has already imported it. Writes
device_tessera.jsonl and device_pytorch.jsonl into DIR, for `tessera report`, and prints a table.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER = ROOT / "bench/peers/torch_device.py"
MAKE = """import sys, torch; sys.path[:0] = sys.argv[1:3]; from networks import NETWORKS; from support import read_safetensors
torch.manual_seed(0); name = sys.argv[3]
torch.save(NETWORKS[name]().state_dict() if name in NETWORKS else {k: torch.tensor(v) for k, v in read_safetensors(name).items()}, sys.argv[4])"""
ENGINES = {"pytorch": "wall", "pytorch, imported": "after_import_seconds"}


def ours(args, out):
    target = out / "device_tessera.jsonl"
    subprocess.run([args.program, "bench", "device", "--only", args.only, "--repeats", str(args.repeats), "--quiet", "--json", target], check=True)
    return [json.loads(line) for line in target.read_text().splitlines()]


def network_of(arguments):
    """The network of a job, and its name or the file of its weights."""
    model = arguments[arguments.index("--model") + 1] if "--model" in arguments else ""
    name = model.removeprefix("random:")
    return (name, name) if name else ("drunet", ROOT / "models/drunet-color-small.safetensors")


def job_of(record):
    """(images, side) by the words of the workload's name, such as "denoise small 16 files 128"."""
    numbers = [int(word) for word in record["workload"].split() if word.isdigit()]
    return (numbers[0], numbers[1]) if "files" in record["workload"] else (1, numbers[0])


def theirs(args, record, folder):
    """The best of layouts and repeats on each device: {device: {"wall":, "after_import_seconds":}}, and the version."""
    network, source = network_of(record["arguments"])
    count, side = job_of(record)
    weights, images = folder / "weights.pth", folder / "images.npy"
    subprocess.run([sys.executable, "-c", MAKE, PEER.parent, ROOT / "tests/e2e", source, weights], check=True)
    np.save(images, np.random.default_rng(1).random((count, side, side, 3), dtype=np.float32))
    asked = next((p for p in ("fp32", "bf16") if p in record["workload"]), None)
    found, version = {}, ""
    for device in args.devices.split(","):
        best = found.setdefault(device, {})
        for layout in ("nchw", "nhwc"):
            for _ in range(args.repeats):
                begun = time.perf_counter()
                run = subprocess.run([sys.executable, PEER, weights, network, images, folder / "out.npy", "--device", device, "--layout", layout,
                                      "--mode", asked or ("fp32" if device == "cpu" else "fp16")], capture_output=True, text=True)
                if run.returncode:
                    sys.exit(f"failed: {record['workload']} on {device}\n{run.stderr}")
                times = {"wall": time.perf_counter() - begun, **json.loads(run.stdout)}
                version = times["version"]
                for key in ENGINES.values():
                    best[key] = min(best.get(key, times[key]), times[key])
    return found, version


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", default="denoise")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--devices", default="cpu,cuda")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    jobs = [record for record in ours(args, out) if record.get("verb") == "denoise" and "--memory" not in record["arguments"]]
    lines = []
    print(f"{'job':28} {'device':6} {'tessera':>9} {'pytorch':>9} {'imported':>9}  times as fast")
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            found, version = theirs(args, job, pathlib.Path(folder))
            for engine, key in ENGINES.items():
                lines.append({"command": "bench", "study": "device", "engine": engine, "version": version, "workload": job["workload"], "verb": "denoise",
                              "measured": {f"{device}_seconds": best[key] for device, best in found.items()} | {"repeats": args.repeats}})
            for device, best in found.items():
                seconds = job["measured"].get(f"{device}_seconds")
                if seconds:
                    print(f"{job['workload']:28} {device:6} {seconds:9.3f} {best['wall']:9.3f} {best['after_import_seconds']:9.3f}  "
                          f"{best['wall'] / seconds:.1f}, {best['after_import_seconds'] / seconds:.1f}", flush=True)
            (out / "device_pytorch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))  # after each job: a run that is cut short keeps them


main()
