"""gpu.py PROGRAM [DEVICE]: whole jobs on an NVIDIA card.

Compares precisions with each other and with the CPU, tiles and limits with the whole image, and planned, counted and
driver's bytes; sample types; folders; a card that is nearly full; errors. Skips without a card, unless
TESSERA_REQUIRE_GPU is set. DEVICE cpu treats the CPU as a card (TESSERA_QUEUE=1) where possible, to try
this script without one.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np

from support import MIB, Bench, leftovers, picture, psnr, read_png, skip, to_integers, write_png
from support import write_safetensors as write_floats

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "studies"))
from widen import read_safetensors, widen, write_safetensors  # noqa: E402

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
SMALL, TINY, GRAY = (MODELS / f"drunet-{name}.safetensors" for name in ("color-small", "color-tiny", "gray-small"))
SIGMA = ("--sigma", "25/255")
CARD = sys.argv[2] if len(sys.argv) > 2 else "cuda"
REAL = CARD != "cpu"


def noisy(height, width, channels=3, seed=1):
    clean = picture(height, width, channels, seed)
    noise = np.random.default_rng(seed).standard_normal(clean.shape, np.float32)
    return np.clip(clean + np.float32(25 / 255) * noise, 0, 1)


def on_card(bench, source, target, *args, **more):
    env = {**({} if REAL else {"TESSERA_QUEUE": "1"}), **more.pop("env", {})}
    return bench.record("denoise", source, target, *SIGMA, "--device", CARD, *args, env=env, **more)


def on_cpu(bench, source, target, *args):
    return bench.record("denoise", source, target, *SIGMA, "--device", "cpu", *args)


def precision(name):
    """The CPU has neither fp16 nor tf32."""
    return ("--precision", name if REAL or name == "bf16" else "fp32")


def read(path):
    return np.load(path) if path.suffix == ".npy" else read_png(path)


def difference(a, b):
    return float(np.abs(np.asarray(a, np.float64) - b).max())


def frozen(bench):
    """A copy of the cache for one run: engines that another run measures meanwhile would change the last bits."""
    frozen.count = getattr(frozen, "count", 0) + 1
    bench.cache.mkdir(exist_ok=True)
    copy = bench.path(f"cache-{frozen.count}")
    shutil.copytree(bench.cache, copy)
    return {"TESSERA_CACHE": str(copy)}


def at_once(work, items):
    """For runs of which only the result counts: most of a short job is the start of its process."""
    with concurrent.futures.ThreadPoolExecutor(4 if REAL else 1) as pool:
        return list(pool.map(work, items))


def check_bytes(bench, record, what):
    plan, measured = record["plan"]["peak_bytes"], record["measured"]
    bench.check(plan == measured["peak_bytes"], f"{what}: planned {plan}, counted {measured['peak_bytes']}")
    bench.check(0 < measured["host_bytes"] <= 256 * MIB, f"{what}: {measured['host_bytes'] / MIB:.0f} MiB pinned")
    bench.check(0 < measured["gpu_busy"] <= 1.001, f"{what}: busy {measured['gpu_busy']:.2f}")
    off = abs(plan["total"] - measured["driver_bytes"])
    text = f"{what}: planned {plan['total'] / MIB:.1f} MiB, by the driver {measured['driver_bytes'] / MIB:.1f} MiB"
    bench.check(off <= 0.01 * plan["total"] + 8 * MIB and measured["context_bytes"] > 0 if REAL else True, text)


# --- (a), (d): precisions, and the same bits twice ------------------------------------------------------------------

def check_precisions(bench):
    source = bench.path("colour.npy")
    np.save(source, noisy(700, 1000))
    results = {}
    for name in ("fp32", "tf32", "fp16", "bf16"):
        target = bench.path(f"{name}.npy")
        record = on_card(bench, source, target, "--model", SMALL, *precision(name))
        if record:
            check_bytes(bench, record, name)
            results[name] = np.load(target)
    if len(results) < 4 or not on_cpu(bench, source, bench.path("cpu.npy"), "--model", SMALL, "--precision", "fp32"):
        return
    off = difference(results["fp32"], np.load(bench.path("cpu.npy")))
    bench.check(off <= 2e-4, f"fp32 and the CPU differ by {off:.1e} at most")
    for name, least, most in (("tf32", 55, 2e-2), ("fp16", 55, 2e-2), ("bf16", 40, 2e-1)):
        decibel, off = psnr(results[name], results["fp32"]), difference(results[name], results["fp32"])
        bench.check(decibel >= least and off <= most, f"{name} and fp32: {decibel:.1f} dB, {off:.1e} at most")
    runs = [(name, bench.path(f"{name}-again{i}.npy"), frozen(bench)) for name in ("fp16", "fp32") for i in range(2)]
    at_once(lambda run: on_card(bench, source, run[1], "--model", SMALL, *precision(run[0]), env=run[2]), runs)
    for first, second in (runs[:2], runs[2:]):
        good = first[1].exists() and second[1].exists() and first[1].read_bytes() == second[1].read_bytes()
        bench.check(good, f"{first[0]}: two runs give the same bits")


def check_profile(bench):
    """The card times each layer, without graphs."""
    source, target = bench.path("colour.npy"), bench.path("profiled.npy")
    if not on_card(bench, source, bench.path("plain.npy"), "--model", SMALL):
        return
    record = on_card(bench, source, target, "--model", SMALL, "--profile")
    profile = record["profile"] if record else {}
    layers = profile.get("layers", [])
    bench.check(len(layers) == 10 and all(layer["seconds"] > 0 and layer["calls"] > 0 for layer in layers) and profile["seconds"] < record["measured"]["wall_seconds"],
                f"--profile has the ten slowest layers: {profile}")
    if record:
        off = difference(np.load(target), np.load(bench.path("plain.npy")))
        bench.check(off <= 2e-3, f"{off:.1e} from the result without --profile")


# --- (b), (c): tiles and limits ---------------------------------------------------------------------------------------

def check_tiles(bench):
    source, target = bench.path("colour.npy"), bench.path("tiled.npy")
    if not on_card(bench, source, bench.path("whole.npy"), "--model", SMALL, "--tile", "whole"):
        return
    whole = np.load(bench.path("whole.npy"))
    for way in (("--tile", "256", "--batch", "1"), ("--tile", "256"), ("--tile", "352x160", "--batch", "3")):
        record = on_card(bench, source, target, "--model", SMALL, "--halo", "exact", *way)
        if not record:
            continue
        words, off, decibel = " ".join(way), difference(np.load(target), whole), psnr(np.load(target), whole)
        bench.check(record["plan"]["tiles"] > 1 and off <= 2e-3 and decibel >= 60,
                    f"{words}: {record['plan']['tiles']} tiles, batch {record['plan']['batch']}, {off:.1e} and {decibel:.1f} dB from the whole")
        check_bytes(bench, record, words)


def check_limits(bench, wide):
    # 16-bit samples: fine enough to compare by, and no more bytes to carry than an image has.
    side, whole_most, limits = 2048, 1.8 * 1024, (("1G", 1024, "exact", 60), ("400M", 400, "auto", 50))
    if not REAL:
        side, whole_most, limits = 512, 1000, (("200M", 200, "auto", 50),)
    source, target = bench.path("large.npy"), bench.path("large-out.npy")
    np.save(source, to_integers(noisy(side, side), np.uint16))
    whole = None
    for limit, most, halo, least in ((None, whole_most, "auto", 0), *limits):
        args = ("--memory", limit, "--halo", halo) if limit else ()
        record = on_card(bench, source, target, "--model", wide, *args)
        if not record:
            continue
        total, words = record["plan"]["peak_bytes"]["total"] / MIB, " ".join(args) or "whole"
        bench.check(total <= most and (record["plan"]["tiles"] > 1) == bool(limit),
                    f"{side}x{side}, full width, {words}: {total:.0f} MiB, {record['plan']['tiles']} tiles, {record['measured']['seconds']:.3f} s")
        check_bytes(bench, record, words)
        image = np.load(target) / 65535
        whole = image if whole is None else whole
        decibel = psnr(image, whole)
        bench.check(decibel >= least, f"{words}: {decibel:.1f} dB from the whole")
    # What the full width has to compute is known.
    if whole is not None and on_card(bench, source, target, "--model", TINY):
        decibel = psnr(np.load(target) / 65535, whole)
        bench.check(decibel >= 50, f"full width against the tiny network inside it: {decibel:.1f} dB")


# --- (e): sample types ------------------------------------------------------------------------------------------------

def check_type(bench, name, dtype, channels, model):
    """Against the CPU, both in fp32: half a level of rounding may fall to either side."""
    source, card, host = bench.path(name), bench.path("card-" + name), bench.path("host-" + name)
    image = noisy(331, 421, channels)
    image = image if dtype == np.float32 else to_integers(image, dtype)
    np.save(source, image) if source.suffix == ".npy" else write_png(source, image)
    args = ("--precision", "fp32", *(("--model", model) if model else ()))
    if not on_card(bench, source, card, *args) or not on_cpu(bench, source, host, *args):
        return
    got, wanted = read(card), read(host)
    most = {np.uint8: 1, np.uint16: 14, np.float32: 2e-4}[dtype]
    same_alpha = channels % 2 == 1 or np.array_equal(got[..., -1], image[..., -1])
    off = difference(got, wanted)
    bench.check(got.dtype == dtype and got.shape == image.shape and same_alpha and off <= most,
                f"{name}{', gray model' if model else ''}: {off:.1e} from the CPU at most, {most} allowed")


def check_types(bench):
    cases = (("rgb8.png", np.uint8, 3, GRAY), ("float.npy", np.float32, 3, None), ("gray8.png", np.uint8, 1, None),
             ("gray-alpha8.png", np.uint8, 2, None), ("rgba8.png", np.uint8, 4, None), ("rgb16.png", np.uint16, 3, None),
             ("rgba16.png", np.uint16, 4, GRAY))
    for case in cases[:2]:  # these fill the cache for the others
        check_type(bench, *case)
    at_once(lambda case: check_type(bench, *case), cases[2:])


def check_noise(bench):
    """The noise is a function of seed and place, so both devices are asked the same question."""
    source = bench.path("clean.png")
    write_png(source, to_integers(picture(320, 440), np.uint8))
    args = ("--add-noise", "0.1", "--truth", source, "--seed", "7", "--model", SMALL)
    ways = ((on_cpu, ()), (on_card, precision("fp32")), (on_card, ()), (on_card, ("--tile", "128")))
    records = at_once(lambda i: ways[i][0](bench, source, bench.path(f"n{i}.png"), *args, *ways[i][1]), range(len(ways)))
    if all(records):
        found = [r["quality"]["psnr_db"] for r in records]
        bench.check(max(found[:3]) - min(found[:3]) < 0.01 and abs(found[3] - found[2]) < 0.02 and found[0] > 20,
                    "CPU, fp32, fp16, tiles: " + ", ".join(f"{p:.4f}" for p in found) + " dB")


# --- voids of maps: batches -------------------------------------------------------------------------------------------

def check_fill(bench):
    """Four samples of a void one by one, in two batches, and at once, as one of several sizes that are prepared."""
    source, env, results = bench.path("map.asc"), {} if REAL else {"TESSERA_QUEUE": "1"}, {}
    y, x = np.mgrid[0:130, 0:140]
    heights = 900 + 200 * np.sin(x / 37) * np.cos(y / 53) + 0.1 * ((x * 13 + y * 7) % 11)
    heights[40:70, 50:100] = -9999
    rows = "\n".join(" ".join(f"{value:.2f}" for value in row) for row in heights)
    source.write_text(f"ncols 140\nnrows 130\nxllcorner 0\nyllcorner 0\ncellsize 30\nNODATA_value -9999\n{rows}\n")
    for batch in (1, 3, 64) if REAL else (1, 3):
        target = bench.path(f"filled{batch}.tif")
        result = bench.run("fill", source, target, "--device", CARD, "--precision", "fp32", "--samples", "4", "--steps", "4",
                           "--batch", str(batch), "--quiet", env=env)
        if result.status and "GDAL" in result.err:
            print(f"  (no fill: {result.err.strip()})")
            return
        bench.check(result.status == 0 and target.exists(), f"a void is filled in batches of {batch}: {result}")
        results[batch] = target.read_bytes() if target.exists() else b""
    bench.check(len(set(results.values())) == 1, f"fp32: the same bits in batches of {sorted(results)}")


# --- (f): folders -----------------------------------------------------------------------------------------------------

def check_folder(bench):
    folder, out, rng = bench.path("mixed"), bench.path("mixed-out"), np.random.default_rng(3)
    folder.mkdir()
    for i in range(12):
        height = int(rng.integers(260, 700))
        width = int(rng.integers(140000, 250000)) // height  # of one class of sizes, so that little is to be measured
        image = to_integers(noisy(height, width, (3, 1, 4, 3)[i % 4], seed=i), np.uint16 if i == 5 else np.uint8)
        write_png(folder / f"{i:02}.png", image) if i % 3 else np.save(folder / f"{i:02}.npy", image)
    names = sorted(p.name for p in folder.iterdir())
    (folder / "broken.png").write_bytes((folder / "01.png").read_bytes()[:400])
    env = {} if REAL else {"TESSERA_QUEUE": "1"}
    result = bench.run("denoise", folder, out, *SIGMA, "--device", CARD, "--json", bench.path("mixed.json"), "--quiet",
                       env={**env, **frozen(bench)})
    bench.check(result.status == 1 and len(result.lines) == 1 and "broken" in result.err and "1 of 13" in result.err,
                f"one of 13 files is broken: {result}")
    done = {p.name: p.read_bytes() for p in out.iterdir()}
    bench.check(sorted(done) == names, f"the other {len(done)} are done")
    record = json.loads(bench.path("mixed.json").read_text())
    check_bytes(bench, record, "a folder")
    bench.check(len(record["denoise"]["files"]) == 13 and sum("error" in f for f in record["denoise"]["files"]) == 1, "every file is listed once")
    caches = [frozen(bench) for _ in names]

    def alone(i):
        target = bench.path("alone-" + names[i])
        on_card(bench, folder / names[i], target, env=caches[i])
        return target.exists() and target.read_bytes() == done.get(names[i])

    equal = at_once(alone, range(len(names)))
    bench.check(all(equal), f"{sum(equal)} of {len(names)} are bit for bit as if done alone")


# --- (g): errors ------------------------------------------------------------------------------------------------------

def check_errors(bench, wide):
    source, target = bench.path("large.npy"), bench.path("never.npy")
    env = {} if REAL else {"TESSERA_QUEUE": "1"}
    card = bench.run("denoise", source, target, *SIGMA, "--device", "cuda:99")
    little = bench.run("denoise", source, target, *SIGMA, "--device", CARD, "--model", wide, "--memory", "20M", env=env)
    tile = bench.run("denoise", source, target, *SIGMA, "--device", CARD, "--model", wide, "--memory", "300M", "--tile", "whole", env=env)
    for result, words in ((card, ("--device cuda",)), (little, ("--memory 20M", "too little")), (tile, ("--memory 300M", "--tile"))):
        refusals = [line for line in result.lines if not line.startswith("tessera: note: ")]
        good = result.status in (1, 2) and len(refusals) == 1 and all(word in refusals[0] for word in words)
        bench.check(good and not target.exists() and not leftovers(bench.folder), f"refused in one line: {result}")


# --- (i): a card that others use ----------------------------------------------------------------------------------------

HOG = """
import ctypes, sys
leave, cuda = int(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
device, context, left, total, at = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total)) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(left.value - leave)) == 0
print("taken", left.value - leave, flush=True)
sys.stdin.read()
"""


def check_full_card(bench, wide, context):
    """Another process leaves about 1 GiB beside the context that each process takes; the whole image needs 6."""
    source, target = bench.path("huge.npy"), bench.path("huge-out.npy")
    side = 4096
    np.save(source, np.tile(to_integers(noisy(side // 4, side // 4), np.uint8), (4, 4, 1)))
    if not on_card(bench, source, bench.path("huge-whole.npy"), "--model", wide):
        return
    whole = np.load(bench.path("huge-whole.npy")) / 255
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(context + 1024 * MIB)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    try:
        if not hog.stdout.readline().startswith("taken"):
            bench.check(False, f"the card can be filled: {hog.stderr.read().strip()[-300:]}")
            return
        # Planned with what is free; and planned for more than there is, as when the rest was taken meanwhile.
        for args, word in (((), "fit the limit"), (("--memory", "64G"), "re-planned")):
            record = on_card(bench, source, target, "--model", wide, *args)
            if not record:
                continue
            plan, decibel = record["plan"], psnr(np.load(target) / 255, whole)
            bench.check(plan["tiles"] > 1 and word in plan["reason"] and plan["peak_bytes"]["total"] <= 2048 * MIB,
                        f"a full card: {plan['tiles']} tiles, {plan['peak_bytes']['total'] / MIB:.0f} MiB: {plan['reason']}")
            bench.check(decibel >= 45, f"a full card: {decibel:.1f} dB from the whole")
            bench.check(plan["peak_bytes"] == record["measured"]["peak_bytes"], f"a full card: counted {record['measured']['peak_bytes']}")
    finally:
        hog.stdin.close()
        hog.wait(30)


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


def find_card(bench):
    """The bytes of a context; ends the script when there is no card. The first run also fills the cache."""
    source, target = bench.path("first.npy"), bench.path("first-out.npy")
    np.save(source, noisy(96, 96))
    env = {} if REAL else {"TESSERA_QUEUE": "1"}
    result = bench.run("denoise", source, target, *SIGMA, "--device", CARD, "--model", SMALL, "--json", "-", "--quiet", env=env)
    if result.status == 0:
        return result.record["measured"]["context_bytes"]
    if not os.environ.get("TESSERA_REQUIRE_GPU") and "--device cuda" in result.err:
        shutil.rmtree(bench.folder, ignore_errors=True)
        skip(result.err.strip())
    bench.check(False, f"there is a card: {result}")
    bench.finish()


def check_samples(bench):
    """Holes, maps of noise levels, ranges, blends and volumes: on the card as on the CPU."""
    image = noisy(150, 210)
    holes = image.copy()
    holes[40:70, 50:90] = np.nan
    holes[::13, ::17, 1] = np.inf
    levels = np.linspace(0, 0.2, 150 * 210, dtype=np.float32).reshape(150, 210)
    np.save(bench.path("levels.npy"), levels)
    stack = np.stack([noisy(70, 90, 1, seed=i) for i in range(7)])
    deep = {f"{name}.weight": (0.05 * np.random.default_rng(i).standard_normal(shape)).astype(np.float32)
            for i, (name, shape) in enumerate((("in_conv", (8, 1, 3, 3, 3)), ("conv_list.0", (8, 8, 3, 3, 3)), ("out_conv", (1, 8, 3, 3, 3))))}
    deep |= {name.replace("weight", "bias"): np.zeros(len(array), np.float32) for name, array in deep.items()}
    write_floats(bench.path("deep.safetensors"), deep)
    for name, array, args in (("holes", holes, ()), ("holes in tiles", holes, ("--tile", "64", "--halo", "exact")),
                              ("a map of levels", image, ("--sigma", bench.path("levels.npy"))),
                              ("a gray model and a map", image, ("--sigma", bench.path("levels.npy"), "--model", GRAY)),
                              ("a range", image * 4000 + 100, ("--range", "100,4100")), ("a blend", image, ("--strength", "0.3")),
                              ("a volume", stack, ()), ("a 3-D network", stack, ("--model", bench.path("deep.safetensors")))):
        source, targets = bench.path("in.npy"), [bench.path("cpu.npy"), bench.path("card.npy")]
        np.save(source, array.astype(np.float32))
        if not on_cpu(bench, source, targets[0], *args) or not on_card(bench, source, targets[1], *precision("fp32"), *args):
            continue
        expected, got = (np.load(t).astype(np.float64) for t in targets)
        known = np.isfinite(array)
        bench.check(np.array_equal(expected[~known], got[~known], equal_nan=True), f"{name}: holes are kept on the card")
        off = difference(expected[known], got[known]) / (4000 if name == "a range" else 1)
        bench.check(off < 2e-4, f"{name}: the card differs from the CPU by {off:.1e}")


def main():
    bench = Bench(sys.argv[1])
    context = find_card(bench)
    devices = [d["kind"] for d in (bench.record("info") or {"info": {"devices": []}})["info"]["devices"]]
    bench.check(not REAL or devices == ["cuda", "cpu"], f"info lists the card, then the CPU: {devices}")
    wide = bench.path("wide.safetensors")
    tiny, facts = read_safetensors(TINY)
    write_safetensors(wide, widen(tiny), facts)
    parts = [("precisions", check_precisions, ()), ("tiles", check_tiles, ()), ("profile", check_profile, ()), ("limits", check_limits, (wide,)), ("types", check_types, ()),
             ("noise", check_noise, ()), ("samples", check_samples, ()), ("fill", check_fill, ()), ("folder", check_folder, ()), ("errors", check_errors, (wide,))]
    if REAL and has_driver():
        parts.append(("full card", check_full_card, (wide, context)))
    for name, check, args in parts:
        start = time.monotonic()
        check(bench, *args)
        print(f"  ({name}: {time.monotonic() - start:.1f} s)", flush=True)
    bench.finish()


main()
