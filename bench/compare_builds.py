"""compare_builds.py OLD NEW [--device cpu|cuda] [--data DIR] [--engine NAME] [--keep DIR] [--only TEXT]

Runs the same jobs with two builds of the program and compares the results: every output file byte for byte, the exit
status, and the planned bytes of the record, which in the new build must be equal or smaller. Prints a table and
`N of N identical`; the status is 1 if one differs.

    /usr/bin/python3 bench/compare_builds.py /tmp/before/tessera build/tessera

`--tile auto` depends on measured rates, and on a card the choice of kernels depends on measured times, so two runs
with different measurements may differ in their last bits even with the same build. A job measures only
after its work is done. Each job therefore starts with its own empty TESSERA_CACHE: both builds use the built-in
rates, and results can be compared bit for bit. On a card this compares the kernels that are chosen when
nothing was measured; --engine NAME (generic, hopper or cudnn) runs everything with one family of kernels through
TESSERA_CUDA_ENGINE. TESSERA_QUEUE treats the CPU as a device with separate memory, so that slabs and queues are compared
without a card as well.

--data adds jobs on real photographs, published weights and a tomogram. --keep leaves inputs and outputs in a folder.
--only runs the jobs whose name contains TEXT.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from support import dncnn, draw, drunet, np, picture, read_png, to_integers, unet, write_png, write_pth, write_safetensors  # noqa: E402

AS_CARD = {"TESSERA_QUEUE": "1", "TESSERA_LANE": "1"}  # the second: its name in older builds


class Job:
    def __init__(self, name, verb, *args, out="out.npy", status=0, env=None):
        self.name, self.verb, self.args, self.out, self.status, self.env = name, verb, args, out, status, env or {}


class Build:
    """One of the two programs, and the folder that its outputs go to."""

    def __init__(self, program, folder, device, engine):
        self.program, self.folder, self.device, self.engine = str(pathlib.Path(program).resolve()), folder, device, engine
        if not os.access(self.program, os.X_OK):
            sys.exit(f"compare_builds.py: {program} is not a program")
        folder.mkdir()

    def call(self, *args, env=None):
        cache = tempfile.mkdtemp(dir=self.folder)
        engine = {"TESSERA_CUDA_ENGINE": self.engine} if self.engine else {}
        surroundings = {**os.environ, "LC_ALL": "C", "TESSERA_MODELS": str(ROOT / "models"), **engine, **(env or {}), "TESSERA_CACHE": cache}
        done = subprocess.run([self.program, *map(str, args)], env=surroundings, stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder.parent)
        shutil.rmtree(cache, ignore_errors=True)
        return done

    def run(self, number, job):
        """(exit status, record or None, folder of outputs, standard error, seconds)"""
        folder = self.folder.parent / "out"  # the same for both: some formats write the name of the file into it
        folder.mkdir()
        places = [part.replace("OUT/", f"{folder}/") if isinstance(part, str) else part for part in job.args]
        if job.verb == "reconstruct":
            places.insert(0, folder / job.out)
        else:
            last = next((i for i, part in enumerate(places) if str(part).startswith("--")), len(places))
            places.insert(last, folder / job.out)
        start = time.monotonic()
        device = ["--device", self.device] if job.verb != "convert" else []
        done = self.call(job.verb, *places, *device, "--json", "-", "--quiet", env=job.env)
        seconds = time.monotonic() - start
        try:
            record = json.loads(done.stdout)
        except ValueError:
            record = None
        folder = folder.rename(self.folder / f"{number:02}")
        return done.returncode, record, folder, done.stderr.decode("utf-8", "replace").strip(), seconds


# --- what the jobs read ---------------------------------------------------------------------------------------------

def write_envi(path, image, more=""):
    height, width = image.shape
    path.write_bytes(image.astype("<f4").tobytes())
    path.with_suffix(".hdr").write_text(f"ENVI\nsamples = {width}\nlines = {height}\nbands = 1\nheader offset = 0\nfile type = ENVI Standard\n"
                                        f"data type = 4\ninterleave = bsq\nbyte order = 0\n{more}")


def write_weights(path):
    write_safetensors(path / "drunet.safetensors", drunet(3))
    write_safetensors(path / "unet.safetensors", unet(3))
    write_safetensors(path / "dncnn.safetensors", dncnn(3))
    write_safetensors(path / "gray.safetensors", dncnn(1, 3, 32))
    write_pth(path / "dncnn.pth", dncnn(3, seed=2))
    write_pth(path / "legacy.pth", unet(1, seed=3), legacy=True)
    deep = {name: np.repeat(array[:, :, None], 3, axis=2) / 3 if array.ndim == 4 else array for name, array in dncnn(1, 3, 8).items()}
    write_safetensors(path / "deep.safetensors", deep)


def write_images(path, build, gdal):
    np.save(path / "colour.npy", picture(150, 133))
    np.save(path / "gray.npy", picture(120, 97, 1))
    write_png(path / "colour8.png", to_integers(picture(144, 170), np.uint8))
    write_png(path / "large8.png", to_integers(picture(400, 330), np.uint8))
    write_png(path / "gray16.png", to_integers(picture(131, 90, 1), np.uint16))
    write_png(path / "alpha16.png", to_integers(picture(70, 90, 4), np.uint16))
    np.save(path / "level.npy", np.float32(0.05 + 0.03 * (1 + draw(5, (150, 133)))))
    holes = picture(100, 90)
    holes[20:31, 40:55] = np.nan
    holes[90, 3] = np.inf
    np.save(path / "holes.npy", holes)
    np.save(path / "counts.npy", np.int16(picture(96, 80, 1) * 3000 - 200))
    np.save(path / "planes.npy", np.moveaxis(picture(80, 72), -1, 0).copy())
    np.save(path / "volume.npy", np.stack([picture(48, 40, 1, seed) for seed in range(12)]))
    (path / "folder/inner").mkdir(parents=True)
    (path / "broken").mkdir()
    for i, (height, width) in enumerate(((60, 80), (100, 64), (60, 80), (33, 47))):
        write_png(path / f"folder/{'inner/' if i == 3 else ''}{i}.png", to_integers(picture(height, width, seed=i + 9), np.uint8))
    shutil.copy(path / "folder/0.png", path / "broken/good.png")
    (path / "broken/short.png").write_bytes((path / "folder/1.png").read_bytes()[:999])
    if gdal:
        ground = 400 + 900 * picture(90, 110, 1)
        ground[10:18, 30:44] = -9999
        write_envi(path / "ground.img", ground, "data ignore value = -9999\nmap info = {UTM, 1, 1, 500000, 5000000, 30, 30, 32, North, WGS-84}\n")
        build.call("denoise", path / "ground.img", path / "ground.tif", "--strength", "0", "--sigma", "0.1", "--range", "400,1300", "--device", "cpu")
        build.call("denoise", path / "colour8.png", path / "colour.jpg", "--strength", "0", "--sigma", "0.1", "--device", "cpu")


def write_problems(path, build):
    """Measurements by the old build, and files that describe them."""
    few = ["--iterations", "1", "--device", "cpu", "--quiet"]
    size, views = 48, 30
    build.call("reconstruct", path / "unused.npy", "--problem", "tomo2d", "--size", size, "--angles", views, "--save-measurement", path / "sinogram.npy", *few)
    radon = {"operator": "radon", "angles": list(np.linspace(0, 180, views + 1)[:-1]), "centre": "auto", "measurement": "sinogram.npy"}
    v, u = np.mgrid[-4:5, -4:5]
    for i, (a, b) in enumerate(((1.0, 2.2), (2.0, 0.8))):
        kernel = np.exp(-u**2 / (2 * a * a) - v**2 / (2 * b * b))
        np.save(path / f"kernel{i}.npy", np.float32(kernel / kernel.sum()))
    scene = picture(72, 66)
    seen = [sum(np.load(path / f"kernel{i}.npy")[4 + y, 4 + x] * np.roll(scene, (y, x), (0, 1)) for y in range(-4, 5) for x in range(-4, 5)) for i in range(2)]
    blurred = np.concatenate([image[5:-5, 5:-5] + 0.02 * draw(40 + i, (62, 56, 3)) for i, image in enumerate(seen)])
    np.save(path / "blurred.npy", np.float32(blurred))
    blur = {"operator": "blur", "kernels": ["kernel0.npy", "kernel1.npy"], "measurement": "blurred.npy"}
    size, views = 24, 20
    build.call("reconstruct", path / "unused.npy", "--problem", "tomo3d", "--size", size, "--angles", views, "--save-measurement", path / "views.npy", *few)
    orbit = 2 * math.pi * np.arange(views) / views
    s, c, zero, one = np.sin(orbit), np.cos(orbit), np.zeros(views), np.ones(views)
    np.save(path / "vectors.npy", np.stack([2 * size * s, -2 * size * c, zero, -size * s, size * c, zero, 1.5 * c, 1.5 * s, zero, zero, zero, 1.5 * one], 1))
    cone = {"operator": "cone", "vectors": "vectors.npy", "volume": [size] * 3, "measurement": "views.npy", "noise": 0.01, "range": [0, 1]}
    for name, entries in (("radon", radon), ("blur", blur), ("cone", cone)):
        (path / f"{name}.json").write_text(json.dumps(entries))


# --- the jobs -------------------------------------------------------------------------------------------------------

def denoise_jobs(path, half, third, gdal):
    def job(name, file, *args, sigma="0.1", **more):
        return Job(f"denoise: {name}", "denoise", path / file, *(["--sigma", sigma] if sigma else []), *args, **more)

    for net in ("drunet", "unet", "dncnn"):
        for precision in ("fp32", half):
            yield job(f"{net} {precision}", "colour.npy", "--model", path / f"{net}.safetensors", "--precision", precision)
    drunet_file, unet_file, dncnn_file = (["--model", path / f"{net}.safetensors"] for net in ("drunet", "unet", "dncnn"))
    gray_file = ["--model", path / "gray.safetensors"]
    yield job(f"bundled model {third}", "colour8.png", "--precision", third, out="out.png")
    yield job("drunet in tiles", "colour.npy", *drunet_file, "--tile", "64")
    yield job("drunet, exact halo", "colour.npy", *drunet_file, "--tile", "64", "--halo", "exact", "--precision", "fp32")
    yield job(f"unet, exact halo, {half}", "colour.npy", *unet_file, "--tile", "48x64", "--halo", "exact", "--precision", half)
    yield job("dncnn, batch of tiles", "colour.npy", *dncnn_file, "--tile", "32x40", "--halo", "8", "--batch", "3")
    yield job("memory limit", "large8.png", *drunet_file, "--memory", "18M", out="out.png")
    yield job("memory limit, memory as a card's", "large8.png", *drunet_file, "--memory", "15M", out="out.png", env=AS_CARD)
    yield job("limit too small", "large8.png", "--memory", "9M", out="out.png", status=1)
    yield job("gray, 16 bits", "gray16.png", out="out.png")
    yield job("gray model on colour", "colour8.png", "--model", "drunet-gray-small", out="out.png")
    yield job("alpha, 16 bits", "alpha16.png", out="out.png")
    yield job("16 bits to 8, dither", "gray16.png", *gray_file, "--dither", "--strength", "0.6", out="out.png")
    yield job("sigma auto", "colour.npy", sigma="auto")
    yield job("sigma of each pixel", "colour.npy", *drunet_file, sigma=path / "level.npy")
    yield job("strength", "colour.npy", *drunet_file, "--strength", "0.4")
    yield job("holes", "holes.npy", *drunet_file)
    yield job("range from the data", "counts.npy", "--range", "auto", sigma="auto")
    yield job("planes first", "planes.npy", *drunet_file, "--axes", "CHW")
    yield job("volume by slices", "volume.npy", *gray_file, "--axes", "DHW")
    yield job("volume, 3-D network", "volume.npy", "--model", path / "deep.safetensors", "--axes", "DHW", "--tile", "24", "--halo", "exact", sigma=None)
    yield job("folder", "folder", "--recursive", *dncnn_file, out="out")
    yield job("folder with a broken file", "broken", *dncnn_file, out="out", status=1)
    yield job("noise added, quality", "colour.npy", "--add-noise", "0.1", "--truth", path / "colour.npy", "--seed", "3")
    if gdal:
        yield job("GeoTIFF with nodata", "ground.tif", *gray_file, "--range", "400,1300", out="out.tif")
        yield job("ENVI", "ground.img", *gray_file, "--range", "400,1300", out="out.img")
        yield job("JPEG to TIFF", "colour.jpg", *dncnn_file, out="out.tif")
        yield job("PNG to JPEG", "colour8.png", *dncnn_file, out="out.jpg")


def reconstruct_jobs(path, half):
    def job(name, problem, *args, env=None, **more):
        return Job(f"reconstruct: {name}", "reconstruct", "--problem", problem, *args, env=env, **more)

    gray_file = ["--model", path / "gray.safetensors"]
    yield job("deblur", "deblur", "--size", "96x65", "--iterations", "3")
    yield job(f"deblur {half}, side by side", "deblur", "--size", "64", "--iterations", "2", "--precision", half, "--side-by-side", "OUT/side.png", out="out.png")
    yield job("deblur deepinv", "deblur", "--image", path / "colour8.png", "--size", "80", "--operators", "3", "--preset", "deepinv", "--iterations", "4", "--save-measurement", "OUT/y.npy")
    yield job("deblur in exact tiles", "deblur", "--size", "160", "--iterations", "2", "--model", path / "drunet.safetensors", "--tile", "64", "--halo", "exact")
    yield job("deblur from a file", path / "blur.json", "--iterations", "3")
    yield job("tomo2d", "tomo2d", "--size", "64", "--iterations", "3")
    yield job("tomo2d deepinv", "tomo2d", "--size", "48", "--angles", "20", "--preset", "deepinv", "--iterations", "4")
    yield job("tomo2d from a file", path / "radon.json", "--iterations", "2")
    yield job("tomo3d by slices", "tomo3d", "--size", "32", "--angles", "20", "--iterations", "2")
    yield job("tomo3d, 3-D prior", "tomo3d", "--size", "32", "--angles", "12", "--iterations", "1", "--prior", "volume")
    yield job("tomo3d deepinv", "tomo3d", "--size", "24", "--angles", "12", "--preset", "deepinv", "--iterations", "2")
    yield job("tomo3d, weights in 3-D, tiles", "tomo3d", "--size", "28", "--angles", "8", "--iterations", "2", "--model", path / "deep.safetensors", "--tile", "8x12x16", "--halo", "exact")
    yield job("tomo3d from a file", path / "cone.json", "--iterations", "2")
    for prior in ("slices", "volume"):
        yield job(f"slabs, {prior}", "tomo3d", "--size", "64", "--angles", "12", *gray_file, "--prior", prior, "--iterations", "2", "--memory", "16M" if half == "fp16" else "5M", env=AS_CARD)


def convert_jobs(path):
    yield Job("convert: zip", "convert", path / "dncnn.pth", out="out.safetensors")
    yield Job("convert: legacy", "convert", path / "legacy.pth", out="out.safetensors")


def data_jobs(path, data):
    def job(name, file, *args, **more):
        return Job(f"data: {name}", "denoise", file, "--sigma", "25/255", *args, **more)

    for name, where, file, more in (("photograph", "kodak24", "kodim05.png", ["--tile", "256"]), ("Set12, bundled", "set12", "01.png", [])):
        if (data / where / file).exists():
            yield job(name, data / where / file, *more, out="out.png")
    weights = data / "weights/kair_dncnn_25.pth"
    if weights.exists():
        yield Job("data: convert", "convert", weights, out="out.safetensors")
        if (data / "set12/01.png").exists():
            yield job("published DnCNN", data / "set12/01.png", "--model", weights, out="out.png")
    if (data / "ct/iguana_slice_068.npy").exists():
        yield Job("data: tomogram, sigma auto", "denoise", data / "ct/iguana_slice_068.npy", "--sigma", "auto")


# --- comparing ------------------------------------------------------------------------------------------------------

def largest_difference(old, new):
    try:
        read = {".npy": np.load, ".png": read_png}[old.suffix]
        a, b = read(old), read(new)
        if a.shape != b.shape:
            return f"shape {a.shape} and {b.shape}"
        return f"differs by {np.nanmax(np.abs(np.float64(a) - np.float64(b))):.2g}, {np.mean(a != b) * 100:.2g} % of the values"
    except (ValueError, KeyError, TypeError):
        return f"{old.stat().st_size} and {new.stat().st_size} bytes that differ"


def content(path):
    """ENVI's header repeats the name of the temporary file that it was written as, which is random."""
    return re.sub(rb"\.tmp-tessera-\w+", b"", path.read_bytes()) if path.suffix == ".hdr" else path.read_bytes()


def compare_files(old, new):
    names = [sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()) for top in (old, new)]
    if names[0] != names[1]:
        return [f"files {' '.join(names[0]) or 'none'} and {' '.join(names[1]) or 'none'}"]
    return [f"{name}: {largest_difference(old / name, new / name)}" for name in names[0] if content(old / name) != content(new / name)]


def planned(record, key):
    plan = (record or {}).get("plan", {})
    return plan.get("peak_bytes", {}).get("total", 0) if key == "peak_bytes" else plan.get(key, 0)


def rounded(value):
    """Numbers with 12 digits, which is what older builds wrote; newer ones write all."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def qualities(record):
    own = (record or {}).get("reconstruct", {})
    return rounded([(record or {}).get("quality"), own.get("baseline_psnr_db"), own.get("step"), [i.get("psnr_db") for i in own.get("iterations", [])]])


def compare(job, old, new):
    """What is not identical, in words."""
    found = []
    if old[0] != new[0]:
        found.append(f"status {old[0]} and {new[0]}: {new[3][:200]}")
    elif old[0] != job.status:
        found.append(f"status {old[0]} in both, not {job.status}: {old[3][:200]}")
    found += compare_files(old[2], new[2])
    for key in ("peak_bytes", "host_bytes"):
        if planned(new[1], key) > planned(old[1], key):
            found.append(f"{key} planned {planned(old[1], key)}, now {planned(new[1], key)}")
    if (old[1] is None) != (new[1] is None) or qualities(old[1]) != qualities(new[1]):
        found.append(f"quality {qualities(old[1])} and {qualities(new[1])}")
    return found


def notes(old, new):
    """What may differ, but is worth a look."""
    texts = []
    for key in ("tile", "halo", "batch", "tiles", "slabs"):
        a, b = ((record or {}).get("plan", {}).get(key) for record in (old[1], new[1]))
        if a != b:
            texts.append(f"{key} {a} -> {b}")
    return texts


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--engine", choices=("generic", "hopper", "cudnn"))
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-compare-")) if not args.keep else args.keep.resolve()
    folder.mkdir(exist_ok=True)
    builds = [Build(program, folder / name, args.device, args.engine) for program, name in ((args.old, "old"), (args.new, "new"))]
    info = json.loads(builds[0].call("info", "--device", "cpu", "--json", "-").stdout)["info"]
    gdal = info["libraries"]["gdal"]
    half, third = ("fp16", "tf32") if args.device == "cuda" else ("bf16" if info["devices"][0]["bf16"] else "fp32", "fp32")
    inputs = folder / "in"
    inputs.mkdir()
    write_weights(inputs)
    write_images(inputs, builds[0], gdal)
    write_problems(inputs, builds[0])
    jobs = [*denoise_jobs(inputs, half, third, gdal), *reconstruct_jobs(inputs, half), *convert_jobs(inputs)]
    if args.device == "cuda":
        jobs = [job for job in jobs if "as a card's" not in job.name]
        jobs.append(Job("denoise: unet bf16", "denoise", inputs / "colour.npy", "--model", inputs / "unet.safetensors", "--precision", "bf16"))
    jobs += data_jobs(inputs, args.data) if args.data else []
    jobs = [job for job in jobs if args.only in job.name]
    same = 0
    print(f"{'job':42} {'status':>6} {'planned bytes':>13} {'new':>13} {'old s':>6} {'new s':>6}")
    for number, job in enumerate(jobs):
        old, new = (build.run(number, job) for build in builds)
        found = compare(job, old, new)
        same += not found
        print(f"{job.name:42} {new[0]:6} {planned(old[1], 'peak_bytes'):13} {planned(new[1], 'peak_bytes'):13} {old[4]:6.2f} {new[4]:6.2f}"
              f"  {'identical' if not found else 'DIFFERENT: ' + '; '.join(found)}{''.join(f' ({text})' for text in notes(old, new))}", flush=True)
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{same} of {len(jobs)} identical")
    return 0 if same == len(jobs) else 1


sys.exit(main())
