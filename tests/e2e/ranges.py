"""ranges.py PROGRAM: samples that float32 would round, samples far outside a range, bands without noise, axes of noise maps."""
import sys

from support import Bench, dncnn, np, psnr, write_safetensors

SIGMA = 0.05
bench = Bench(sys.argv[1])
gdal = bench.has_gdal()
random = np.random.default_rng(19)
y, x = np.mgrid[0:128, 0:160]
clean = 0.5 + 0.3 * np.sin(x / 7) * np.cos(y / 11) + 0.1 * (np.hypot(y - 50, x - 60) < 20)
noisy = clean + SIGMA * random.standard_normal(clean.shape)


def denoise(array, *options, status=0):
    """The result, the record's entry and what was said."""
    np.save(bench.path("in.npy"), array)
    run = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), *options, "--json", "-", "--verbose")
    bench.check(run.status == status, f"runs: {run}")
    return (np.load(bench.path("out.npy")), run.record["denoise"]["files"][0], run.err) if run.status == 0 else (None, {}, run.err)


# --- integers beyond 2^24 -------------------------------------------------------------------------------------------

for offset, steps, dtype in ((0, 1000, np.uint32), (4 * 10**9, 1000, np.uint32), (1700000000, 60, np.int32), (2 * 10**9, 200, np.int32),
                             (-2147483648, 1000, np.int32)):
    samples = np.rint(noisy * steps + offset).astype(dtype)
    result, entry, said = denoise(samples)
    if result is None:
        continue
    bench.check(entry["range"] == [int(samples.min()), int(samples.max())], f"{offset}: the range is that of the samples: {entry['range']}")
    sigma = entry["sigma"] * (entry["range"][1] - entry["range"][0]) / steps
    bench.check(abs(sigma - SIGMA) < 0.2 * SIGMA, f"{offset}: sigma {sigma:.4f} for {SIGMA}")
    back = (result.astype(np.float64) - offset) / steps
    bench.check(psnr(back, clean) > psnr(noisy, clean) + 5, f"{offset}: {psnr(noisy, clean):.1f} dB become {psnr(back, clean):.1f}")
result, entry, said = denoise(np.full((64, 64), 2000000001, np.int32))
bench.check(result is not None and (result == 2000000001).all() and entry["range"][0] == 2000000001, f"a constant stays: {entry}")

# --- highlights above 1 ---------------------------------------------------------------------------------------------------

lit = np.tile(0.4 * clean + 0.3, (2, 2))
for top in (1.0, 1.25, 1.5):
    image = lit.copy()
    image[60:64, 30:50] = top
    image = np.float32(image + 0.02 * random.standard_normal(image.shape))
    result, entry, said = denoise(image)
    bench.check(entry.get("range") == [0, 1] and entry.get("range_from") == "as it is", f"highlights of {top}: the range stays: {entry}")
    bench.check(result is not None and np.abs(result[61:63, 32:48] - top).max() < 0.1 and psnr(result, lit) > 0, f"highlights of {top} are kept")
    bench.check((f"go up to {image.max():.3g}"[:-1] in said and "kept above 1" in said) == (top > 1.02), f"highlights of {top}: said: {said.strip()}")
run = bench.run("denoise", bench.path("in.npy"), bench.path("out.png"))
bench.check("cut off at 1" in run.err, f"in a PNG they are cut off, and that is said: {run.err}")

# --- a level far above the noise --------------------------------------------------------------------------------------

for dtype, scale in ((np.float32, 1), (np.uint8, 255), (np.uint16, 65535)):
    image = np.tile(0.4 * clean + 0.3, (2, 2))
    image = (scale * (image + 0.02 * random.standard_normal(image.shape))).astype(dtype)
    for sigma, doubted in ((0.02, False), (0.05, False), (0.2, True)):
        _, entry, said = denoise(image, "--sigma", sigma)
        bench.check(("times the noise" in said) == doubted and entry.get("sigma") == sigma, f"{dtype.__name__}: sigma {sigma} for noise of 0.02: {said.strip()}")
_, _, said = denoise(image, "--add-noise", "0.2")
bench.check("times the noise" not in said, f"noise that is added counts: {said.strip()}")

# --- notes ----------------------------------------------------------------------------------------------------------

_, _, said = denoise(np.arange(4096).reshape(64, 64).astype(np.int32), "--range", "400,1800", "--sigma", SIGMA)
bench.check("samples down to 0 lie below" in said, f"integers are named without a fraction: {said.strip()}")
np.save(bench.path("in.npy"), 1e8 + clean)
said = bench.run("denoise", bench.path("in.npy"), bench.path("out.png")).err
ends = [float(word) for word in said.partition("with ")[2].partition(" scaled")[0].split(" to ")]
bench.check(abs(ends[0] - 1e8 - clean.min()) < 1e-6 and abs(ends[1] - 1e8 - clean.max()) < 1e-6, f"a range has the digits that undo it: {ends}")
heights = np.rint(1000 * noisy)
for count in (1, 3, 100, 900):
    for dtype, mark in ((np.int16, -32768), (np.float32, -32768), (np.float32, 1e20)):
        void = heights.astype(dtype)
        void.ravel()[5000:5000 + count] = mark
        _, _, said = denoise(void, "--range", "0,1020", "--sigma", "0.02")
        bench.check(f"some are {mark:g}; if that marks missing data, declare it" in said and "lower end" not in said,
                    f"{count} of {mark} in {dtype.__name__}: {said.strip()}")
_, _, said = denoise(heights.astype(np.int16), "--range", "0,1020", "--sigma", "0.02")
bench.check("missing" not in said, f"nothing is said of other heights: {said.strip()}")

# --- bands of which only the first is on [0,1] ------------------------------------------------------------------------

v, u = np.mgrid[0:256, 0:256]
light = 0.5 + 0.4 * np.sin(u / 17) * np.cos(v / 11)
signed = 0.8 * np.sin(u / 23 + v / 9)
for side, bands in ((256, 2), (250, 2), (256, 3), (250, 3), (256, 4)):
    truth = np.stack([light, signed, -signed, signed][:bands], -1)[:side, :side]
    image = np.float32(truth + SIGMA * random.standard_normal(truth.shape))
    result, entry, said = denoise(image)
    bench.check(entry.get("range", [0])[0] < -0.7, f"{bands} bands of {side} x {side} with samples below 0: range {entry.get('range')}")
    bench.check(result is not None and np.std(result[..., 1] - truth[..., 1]) < 0.7 * SIGMA, "and the second is denoised")
wide = np.stack([np.full((256, 256), 3000.0)] + [3000 + 2000 * light + 200 * random.standard_normal(light.shape) for _ in range(3)], -1)
wide[20:240:20, 30, 2] = 60000
_, entry, said = denoise(np.rint(wide).astype(np.uint16))
bench.check(entry.get("defects") == 11, f"hot pixels beside a first band without noise: {entry.get('defects')}, {said.strip()}")

# --- bands without noise --------------------------------------------------------------------------------------------

for dtype, scale in ((np.float32, 1), (np.float64, 1), (np.uint16, 65535), (np.uint8, 255)):
    for quiet in (np.full_like(clean, 0.5), np.where(x < 80, 0.25, 0.75)):
        for bands in ((noisy, quiet), (quiet, noisy, noisy)):
            image = (scale * np.stack(bands, -1)).astype(dtype)
            result, entry, _ = denoise(image)
            if result is None:
                continue
            places = [i for i, band in enumerate(bands) if band is quiet]
            bench.check(all(entry["noise"][i]["sigma"] == 0 and np.array_equal(result[..., i], image[..., i]) for i in places),
                        f"{dtype.__name__}: band {places} of {len(bands)} has no noise and stays: {entry['noise']}")
            others = [i for i in range(len(bands)) if i not in places]
            bench.check(all(psnr(result[..., i] / scale, clean) > psnr(noisy, clean) + 3 for i in others), "and the others are denoised")
step = np.zeros((192, 192), np.float32)
step[:, 96:] = 1
result, entry, _ = denoise(step)
bench.check(entry.get("sigma") == 0 and np.array_equal(result, step), f"an edge is no noise: {entry}")

# --- the brightness of what is written --------------------------------------------------------------------------------

def written(array, suffix, *options):
    """The result on [0,1] of its type, the record's entry and what was said."""
    np.save(bench.path("in.npy"), array)
    run = bench.run("denoise", bench.path("in.npy"), bench.path(f"out{suffix}"), *options, "--json", "-")
    bench.check(run.status == 0, f"runs: {run}")
    bench.run("denoise", bench.path(f"out{suffix}"), bench.path("again.npy"), "--strength", "0", "--quiet")
    again = np.load(bench.path("again.npy"))
    return again / float(np.iinfo(again.dtype).max), run.record["denoise"]["files"][0], run.err


for light in (0.15, 0.1, 0.9):
    dark = 0.02 + light * clean + 0.006 * random.standard_normal(clean.shape)
    for suffix in ((".jpg", ".bmp", ".png") if gdal else (".png",)):
        for array in (np.rint(dark * 65535).astype(np.uint16), dark.astype(np.float32)):
            for options in ((), ("--sigma", "0.006"), ("--strength", "0")):
                result, entry, _ = written(array, suffix, *options)
                bench.check(abs(result.mean() - dark.mean()) < 0.002, f"{suffix} from {array.dtype} with {options}: mean {result.mean():.4f} for {dark.mean():.4f}")
    if gdal:
        result, entry, said = written(np.rint(dark * 65535).astype(np.uint16), ".bmp", "--range", "0,10000")
        bench.check(abs(result.mean() - np.minimum(dark * 6.5535, 1).mean()) < 0.01 and entry["written_range"] == [0, 10000], "a range that is given counts")
        bench.check((light == 0.9) == ("of the samples lay outside 0 to 10000 and are cut off" in said), f"what is cut off is said: {said}")
bright = 1.4 * (clean + 0.02 * random.standard_normal(clean.shape))
result, entry, said = written(bright.astype(np.float32), ".png")
share = (1.4 * clean > 1.04).mean()
bench.check(abs(entry["cut_off"] - share) < 0.02 and "are cut off" in said and f"--range 0,{bright.max():.4f}"[:-1] in said, f"{share:.3f} of floats above 1: {entry['cut_off']:.3f}: {said}")
result, entry, said = written(bright.astype(np.float32), ".png", "--range", "0,1.6")
bench.check(entry["cut_off"] == 0 and "cut off" not in said, f"nothing is, with a range that holds them: {entry}")
result, entry, said = written(np.clip(3 * clean - 1, 0, 1).astype(np.float32) + 0.02 * random.standard_normal(clean.shape).astype(np.float32), ".png")
bench.check(entry["cut_off"] < 0.001 and "cut off" not in said, f"noise beyond black and white is no loss: {entry}")
if gdal:  # a network that goes beyond white is no reason for another range: no sample of the input is outside
    model = write_safetensors(bench.path("beyond.safetensors"), dncnn(channels=1, depth=3, width=16))
    checker = (np.kron(np.indices((8, 8)).sum(0) % 2, np.ones((8, 8))) * 65535).astype(np.uint16)
    for options in ((), ("--range", "0,65535")):
        result, entry, said = written(checker, ".jpg", "--model", model, *options)
        bench.check(entry["cut_off"] > 0.001 and "cut off" not in said, f"{options}: beyond white by the network: {entry}, {said}")

# Zero has no sign.
for array, lower in ((np.clip(np.rint(255 * noisy - 60), 0, 255).astype(np.uint8), "100,400"), (np.clip(noisy - 0.3, 0, 1).astype(np.float32), "0.3,1.2")):
    _, _, said = denoise(array, "--range", lower)
    bench.check("samples down to 0 lie below the range" in said, f"{array.dtype}: 0 is below the range: {said}")

# --- axes -------------------------------------------------------------------------------------------------------------

level = np.full((40, 56), 0.1, np.float32)
np.save(bench.path("flat.npy"), level)
np.save(bench.path("volume.npy"), np.stack([level] * 5))
for axes, shape, names in (("HWC", (40, 56, 5), ("flat",)), ("CHW", (5, 40, 56), ("flat",)), ("DHWC", (5, 40, 56, 2), ("volume",)), ("DHW", (5, 40, 56), ("volume",))):
    image = random.random(shape).astype(np.float32)
    wanted, _, _ = denoise(image, "--axes", axes, "--sigma", "0.1")
    for name in names:
        result, entry, _ = denoise(image, "--axes", axes, "--sigma", bench.path(f"{name}.npy"))
        bench.check(result is not None and np.abs(result - wanted).max() < 1e-5, f"a map needs no axis of channels: {axes}")
# Levels of 255 in wide integers would be next to no noise.
levels = np.rint(4 + 46 * x / x.max())
for dtype, largest in ((np.uint16, "50 of 65535"), (np.int16, "50 of 32767"), (np.int32, "50 of 2147483647")):
    np.save(bench.path("levels.npy"), levels.astype(dtype))
    _, _, said = denoise(noisy.astype(np.float32), "--range", "0,1", "--sigma", bench.path("levels.npy"), status=1)
    bench.check("levels.npy" in said and largest in said and "8 bits" in said, f"{dtype.__name__}: levels of 255 are refused: {said.strip()}")
for name, map in (("8 bits", levels.astype(np.uint8)), ("16 bits", (257 * levels).astype(np.uint16)), ("floats", (levels / 255).astype(np.float32))):
    np.save(bench.path("levels.npy"), map)
    _, entry, said = denoise(noisy.astype(np.float32), "--range", "0,1", "--sigma", bench.path("levels.npy"))
    bench.check(np.allclose(entry.get("sigma_range", 0), (4 / 255, 50 / 255), atol=1e-6), f"{name}: the least and largest level are told: {entry}")
told = bench.run("plan", "denoise", bench.path("in.npy"), bench.path("out.npy"), "--sigma", bench.path("levels.npy"), "--range", "0,1")
bench.check("4 to 50/255" in told.out, f"also to the reader: {told.out}")
np.save(bench.path("levels.npy"), np.zeros(noisy.shape, np.uint16))
result, _, _ = denoise(noisy.astype(np.float32), "--range", "0,1", "--sigma", bench.path("levels.npy"))
bench.check(result is not None and np.array_equal(result, noisy.astype(np.float32)), "a map of zeros changes nothing")
for shape, advice in (((5, 64, 64, 3), False), ((20, 64, 64), False), ((200, 220, 7), True)):
    np.save(bench.path("in.npy"), random.random(shape).astype(np.float32))
    said = bench.run("plan", "denoise", bench.path("in.npy"), bench.path("out.npy"), "--sigma", "0.1", "--verbose").err
    bench.check("a volume of" in said and ("--axes HWC" in said) == advice, f"{shape}: {said.strip()}")
# Axes that do not fit: the shape, how it is read, and what else to give.
np.save(bench.path("in.npy"), random.random((20, 30, 200)).astype(np.float32))
colour = write_safetensors(bench.path("colour.safetensors"), dncnn(channels=3, depth=3, width=16))
for axes, words in (("HWC", ("(20, 30, 200)", "200 channels", "(height, width, channels)", "--axes DHW", "CHW")), ("CHW", ("DHW", "HWC"))):
    run = bench.run("plan", "denoise", bench.path("in.npy"), bench.path("out.npy"), "--sigma", "0.1", "--axes", axes)
    bench.check(run.status == 0 and (axes == "CHW" or all(word in run.err for word in words)), f"{axes}: channels that are more than columns are doubted: {run.err}")
    run = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), "--axes", axes, "--model", colour)
    bench.check_refused(run, 1, "in.npy", "(20, 30, 200)", *(word for word in words if word != "200 channels"))
for axes in ("HW", "DHWC"):
    run = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), "--axes", axes)
    bench.check_refused(run, 1, "in.npy", "(20, 30, 200)", f"--axes {axes}", "--axes HWC or CHW", "DHW")
bench.finish()
