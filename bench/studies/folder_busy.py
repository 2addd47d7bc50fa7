"""Measures whether a folder of images keeps the card busy and, if not, what the bottleneck is.

    python bench/studies/folder_busy.py build/tessera --out /tmp/busy

Makes a folder of noisy 8-bit colour images of mixed sizes, 0.5 to 8 megapixels, no two alike, and denoises it: as NPY and
as PNG (the same pixels), with the bundled small network and with the tiny one at full width (bench/studies/widen.py). A
warm-up for each network fills the cache; then every setting runs once, in its own process. The columns of a line:

  gpu busy   the share of the time between the first and the last window in which the card computed
  cores      the share of the time of all cores between start and end that the process used
  binds      the bottleneck: the card if it is busy at least 90 % of the time; otherwise the cores (decoding and encoding) if at
             least 80 % are used; otherwise neither: waiting for files, for copies, or for the last images

The records go to OUT/folder_busy.jsonl. Images stay in OUT for the next run; results are removed.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time
import zlib

import numpy as np

from widen import read_safetensors, widen, write_safetensors

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
SMALL, TINY = MODELS / "drunet-color-small.safetensors", MODELS / "drunet-color-tiny.safetensors"
SIGMA = 25
LEAST, MOST = 0.5e6, 8e6


def size_of(index):
    rng = np.random.default_rng([7, index])
    pixels, aspect = rng.uniform(LEAST, MOST), rng.uniform(0.6, 1.7)
    height = max(16, round((pixels / aspect) ** 0.5))
    return height, round(pixels / height)


def image_of(index):
    """Slow waves, edges along a grid of waves, and Gaussian noise. Separable, so that a megapixel takes milliseconds."""
    height, width = size_of(index)
    rng = np.random.default_rng([11, index])
    image = rng.standard_normal((height, width, 3), np.float32)
    image *= np.float32(SIGMA)
    y, x = np.arange(height, dtype=np.float32)[:, None], np.arange(width, dtype=np.float32)
    for c in range(3):
        fy, fx, edge_y, edge_x = rng.uniform(0.002, 0.03, 4).astype(np.float32)
        plane = 120 + 50 * np.sin(fy * y) * np.cos(fx * x)
        plane += np.float32(40) * ((np.sin(edge_y * y) + np.cos(edge_x * x)) > 0)
        image[..., c] += plane
    np.clip(image, 0, 255, out=image)
    return np.rint(image, out=image).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(path, image):
    height, width, channels = image.shape
    raw = np.empty((height, 1 + width * channels), np.uint8)
    raw[:, 0] = 1  # the filter Sub: what stands to the left is subtracted
    raw[:, 1:1 + channels] = image[:, 0]
    np.subtract(image[:, 1:], image[:, :-1], out=raw[:, 1 + channels:].reshape(height, width - 1, channels))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 1)) + chunk(b"IEND", b""))


def make(task):
    index, folders = task
    image = image_of(index)
    for kind, folder in folders.items():
        path = folder / f"{index:04}.{kind}"
        np.save(path, image) if kind == "npy" else write_png(path, image)
    return image.shape[0] * image.shape[1]


def make_folders(args, cores):
    """The folder of each format, and pixels in all. Made anew unless they are there, complete."""
    folders = {kind: args.out / f"in-{args.count}-{kind}" for kind in args.formats}
    missing = {kind: folder for kind, folder in folders.items() if not (folder / ".complete").exists()}
    for folder in missing.values():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    start = time.monotonic()
    if missing:
        with multiprocessing.Pool(cores) as pool:
            pool.map(make, [(i, missing) for i in range(args.count)], 1)
    for folder in missing.values():
        (folder / ".complete").touch()
    pixels = sum(h * w for h, w in map(size_of, range(args.count)))
    print(f"{args.count} images, {1e-6 * pixels:.0f} megapixels, {', '.join(args.formats)}; made in {time.monotonic() - start:.1f} s", flush=True)
    return folders, pixels


def run(args, source, target, model):
    """The record, with the seconds and the processor time of the whole process."""
    command = [args.program, "denoise", source, target, "--model", model, "--sigma", f"{SIGMA}/255", "--device", args.device,
               "--quiet", "--json", "-", *(["--threads", str(args.threads)] if args.threads else []), *args.extra]
    env = {**os.environ, "TESSERA_CACHE": str(args.out / "cache")}
    with open(args.out / "record.json", "wb") as out:
        start = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdout=out, env=env)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"status {process.returncode}: {' '.join(map(str, command))}")
    record = json.loads((args.out / "record.json").read_text())
    record["study"], record["engine"] = "folder", "tessera"
    record["process_seconds"] = time.monotonic() - start
    record["cpu_seconds"] = used.ru_utime + used.ru_stime
    return record


def warm_up(args, folder, model):
    """Engines are measured at the end of a job, for a few seconds, by classes of sizes: one image of the two that most are in."""
    classes = {}
    for path in sorted(folder.glob("[0-9]*")):
        height, width = size_of(int(path.stem))
        classes.setdefault((height * width).bit_length(), []).append(path)
    for paths in sorted(classes.values(), key=len)[-2:]:
        run(args, paths[0], args.out / f"warm{paths[0].suffix}", model)


def tell(record, name, kind, cores, pixels):
    m = record["measured"]
    wall, busy = m["wall_seconds"], m.get("gpu_busy", 0)
    share = record["cpu_seconds"] / (record["process_seconds"] * cores)
    binds = "the card" if busy >= 0.9 else "the cores" if share >= 0.8 else "neither"
    print(f"{name:5} | {kind} | {record['input']['files']} files, {1e-6 * pixels:.0f} Mpx | wall {wall:.2f} s, seconds {m['seconds']:.2f} | "
          f"gpu busy {100 * busy:.1f} % | {1e-6 * pixels / wall:.1f} Mpx/s wall, {1e-6 * pixels / m['seconds']:.1f} Mpx/s | "
          f"cpu {record['cpu_seconds']:.1f} s, cores {100 * share:.0f} % of {cores} | {m.get('shapes', 0)} shapes, "
          f"{1e3 * m.get('shape_mean_seconds', 0):.1f} ms for a new one, {1e3 * m.get('shape_seconds', 0):.1f} at most | {record['plan']['peak_bytes']['total'] >> 20} MiB, "
          f"pinned {m['host_bytes'] >> 20} MiB | binds: {binds}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage="folder_busy.py PROGRAM --out DIR [options] [-- options of tessera denoise]")
    parser.add_argument("program")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--model", choices=("small", "wide"), help="one network; both without it")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--formats", type=lambda text: text.split(","), default=["npy", "png"])
    parser.add_argument("--threads", type=int)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:cut])
    args.extra = sys.argv[cut + 1:]
    if set(args.formats) - {"npy", "png"}:
        parser.error("--formats: npy and png are made here")
    args.out.mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0))
    folders, pixels = make_folders(args, cores)
    models = {"small": SMALL, "wide": args.out / "wide.safetensors"}
    if args.model != "small" and not models["wide"].exists():
        tiny, facts = read_safetensors(TINY)
        write_safetensors(models["wide"], widen(tiny), facts)
    with open(args.out / "folder_busy.jsonl", "w") as lines:
        for name in [args.model] if args.model else ["wide", "small"]:
            warm_up(args, folders[args.formats[0]], models[name])
            for kind in args.formats:
                target = args.out / f"out-{kind}"
                shutil.rmtree(target, ignore_errors=True)
                record = run(args, folders[kind], target, models[name])
                shutil.rmtree(target)
                tell(record, name, kind, args.threads or cores, pixels)
                lines.write(json.dumps({"model": name, "format": kind, **record}) + "\n")
                lines.flush()


if __name__ == "__main__":
    sys.exit(main())
