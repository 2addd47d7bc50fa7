"""make_samples.py PROGRAM FOLDER [PYTHON]: makes the records that the tests of `tessera report` read (tests/report/records).

Real runs of all verbs and studies on a CPU, small enough for a minute or two each. PYTHON, if given, has torch: it adds the lines of a peer.
Figures of these records mean nothing: they are there to be drawn.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from support import DATA, picture, read_safetensors, to_integers, write_png, write_safetensors  # noqa: E402

PROGRAM, OUT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
PYTHON = sys.argv[3] if len(sys.argv) > 3 else None
OUT.mkdir(parents=True, exist_ok=True)
os.chdir(OUT)  # so that records name files without their folder


def tessera(*words):
    print("tessera", *words, flush=True)
    subprocess.run([PROGRAM, *map(str, words)], check=True)


def terrain(size):
    y, x = np.mgrid[0:size, 0:size]
    return (900 + 200 * np.sin(x / 37) * np.cos(y / 53) + 40 * np.sin(x / 9 + y / 13)).astype(np.float32)


def studies():
    tessera("bench", "size", "--device", "cpu", "--models", "random:dncnn", "--height", 128, "--widths", "128:384:64,128:400:68", "--repeats", 3, "--json", "size.jsonl")
    tessera("bench", "batch", "--device", "cpu", "--models", "random:dncnn", "--height", 128, "--patches", "32,64", "--batches", "1,2,4", "--repeats", 3, "--json", "batch.jsonl")
    machines = ",".join(str(ROOT / "bench/machines" / f"{name}.json") for name in ("a100", "entry"))
    tessera("bench", "device", "--device", "cpu", "--machine", machines, "--only", "small", "--json", "device.jsonl")
    tessera("bench", "stats", "--device", "cpu", "--only", "samples", "--repeats", 1, "--seconds", 0, "--json", "stats.jsonl")
    tessera("bench", "dem", "--device", "cpu", "--tile", 32, "--steps", 2, "--batches", "1,2", "--samplers", "ddim,dpmpp", "--precisions", "fp32", "--repeats", 2, "--seconds", 0,
            "--json", "dem.jsonl")
    if PYTHON:
        with open("size_torch.jsonl", "w") as lines:
            subprocess.run([PYTHON, ROOT / "bench/peers/torch_cuda.py", "--device", "cpu", "--parts", "size", "--models", "dncnn", "--height", "128",
                            "--widths", "128,192,196,256,264,320,332,384,400", "--repeats", "2"], check=True, stdout=lines)
        subprocess.run([PYTHON, ROOT / "bench/studies/compare_device.py", PROGRAM, "--out", ".", "--only", "dncnn", "--devices", "cpu", "--repeats", "1"], check=True)


def restore():
    smooth = picture(64, 96, 3, 5)
    write_png("photo.png", to_integers(smooth, np.uint8))
    tessera("denoise", "photo.png", "denoised.png", "--add-noise", "25/255", "--truth", "photo.png", "--json", "denoise.json", "--quiet")
    folder = pathlib.Path("photos")
    folder.mkdir(exist_ok=True)
    for seed in range(6):
        write_png(folder / f"{seed}.png", to_integers(picture(64, 48 + 16 * (seed % 3), 3, seed), np.uint8))
    tessera("denoise", "photos", "restored", "--add-noise", "15/255", "--truth", "photos", "--json", "folder.json", "--quiet")
    tessera("reconstruct", "sharp.png", "--problem", "deblur", "--image", "photo.png", "--iterations", 12, "--json", "reconstruct.json", "--quiet")
    tessera("reconstruct", "disks.npy", "--problem", "tomo2d", "--size", 64, "--iterations", 10, "--json", "tomography.json", "--quiet")
    tessera("plan", "denoise", "photo.png", "denoised.png", "--json", "plan.json", "--quiet")


def train():
    keys = {"network": {"architecture": "drunet", "widths": [8, 8, 16, 16], "blocks": 1}, "data": {"folders": ["photos"], "crop": 24, "sigma": 0.1, "workers": 1}, "batch": 4,
            "steps": 300, "optimizer": {"rate": 3e-3}, "output": "small.safetensors", "log": "train.jsonl", "validation": {"folder": "photos", "sigma": [0.1], "every": 50}}
    pathlib.Path("train.config").write_text(json.dumps(keys))
    tessera("train", "train.config", "--device", "cpu", "--json", "train.json", "--quiet")


def fill():
    dump = read_safetensors(DATA / "networks" / "diffusion.safetensors")
    weights = {k: v for k, v in dump.items() if k.startswith("denoise_fn.")}
    first = "denoise_fn.input_blocks.0.0.weight"
    weights[first] = np.repeat(weights[first], 2, 1)[:, :2]
    write_safetensors("model.safetensors", weights)
    from osgeo import gdal
    gdal.UseExceptions()
    heights = terrain(96)
    heights[20:45, 30:50] = heights[70:80, 10:40] = heights[50:70, 65:80] = -9999
    d = gdal.GetDriverByName("GTiff").Create("voids.tif", 96, 96, 1, gdal.GDT_Float32, ["COMPRESS=DEFLATE", "PREDICTOR=3"])
    d.SetGeoTransform((500000.0, 30.0, 0.0, 5100000.0, 0.0, -30.0))
    d.GetRasterBand(1).SetNoDataValue(-9999)
    d.GetRasterBand(1).WriteArray(heights)
    del d
    tessera("fill", "voids.tif", "filled.tif", "--model", "model.safetensors", "--steps", 4, "--tile", 64, "--overlap", 8, "--samples", 3, "--deviation", "deviation.tif",
            "--json", "fill.json", "--quiet")
    gdal.Translate("smaller.tif", "deviation.tif", creationOptions=["COMPRESS=DEFLATE"])
    os.replace("smaller.tif", "deviation.tif")


def detect():
    rng = np.random.default_rng(3)
    height, width, bands = 40, 48, 8
    u = np.linspace(0, 1, bands)
    spectra = np.stack([1500 * np.exp(-(u - .5) ** 2 / .1), 900 + 600 * u])
    y, x = np.mgrid[0:height, 0:width]
    share = (.5 + .5 * np.sin(x / 9) * np.cos(y / 7))[..., None]
    image = share * spectra[0] + (1 - share) * spectra[1] + rng.normal(0, 40, (height, width, bands))
    truth = np.zeros((height, width), np.uint8)
    for _ in range(6):
        top, left = rng.integers(1, height - 3), rng.integers(1, width - 3)
        truth[top:top + 2, left:left + 2] = 1
        image[top:top + 2, left:left + 2] += 90 * np.exp(-(u - .3) ** 2 / .02)
    np.save("scene.npy", np.maximum(image, 0).astype(np.uint16))
    np.save("scene_mask.npy", truth)
    tessera("detect", "scene.npy", "scores.npy", "--truth", "scene_mask.npy", "--overlay", "found.png", "--mask-out", "decisions.png", "--json", "detect.json", "--quiet")


def traces():
    """Into ../traces: a job through the queue of a device with separate memory, and one of two ranks."""
    folder = OUT.parent / "traces"
    folder.mkdir(exist_ok=True)
    words = [PROGRAM, "denoise", "photo.png", "traced.png", "--sigma", "0.1", "--model", "random:dncnn", "--quiet", "--trace"]
    subprocess.run([*words, folder / "queue.json", "--tile", "48", "--halo", "8", "--batch", "2"], check=True, env={**os.environ, "TESSERA_QUEUE": "1"})
    if shutil.which("mpirun"):
        subprocess.run(["mpirun", "--oversubscribe", "-n", "2", *words, folder / "ranks.json"], check=True)
    pathlib.Path("traced.png").unlink()


def tidy():
    """Records name no folder of the machine that made them, and only the files that tests need stay."""
    for path in OUT.glob("*.json*"):
        words = path.read_text().replace(f"{PROGRAM.parent}/", "").replace(f"{ROOT}/", "")
        path.write_text(re.sub(r"/tmp/[\w-]+/", "", words))
    for name in ("photos", "restored", "small-checkpoints"):
        shutil.rmtree(name, ignore_errors=True)
    for name in ("train.config", "model.safetensors", "small.safetensors", "disks.npy", "decisions.png"):
        pathlib.Path(name).unlink(missing_ok=True)


OUT = OUT.resolve()
for part in (restore, train, detect, fill, studies, traces, tidy):
    if len(sys.argv) < 5 or part.__name__ in sys.argv[4:]:
        part()
