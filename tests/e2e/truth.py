"""truth.py PROGRAM: figures of quality: the range of a truth of another type, and holes of either image."""
import math
import sys

from support import Bench, np, write_png
from tiff import write_tiff

bench = Bench(sys.argv[1])
random = np.random.default_rng(8)
y, x = np.mgrid[0:96, 0:120]
clean = 0.5 + 0.3 * np.sin(x / 7) * np.cos(y / 11) + 0.1 * (np.hypot(y - 50, x - 60) < 20)
noisy = clean + 0.05 * random.standard_normal(clean.shape)


def save(name, array):
    if name.endswith(".npy"):
        np.save(bench.path(name), array)
    return bench.path(name)


def quality(image, truth, *options):
    """The figures of the record, and what was said."""
    result = bench.run("denoise", image, bench.path("out.npy"), "--truth", truth, *options, "--json", "-")
    bench.check(result.status == 0, f"runs: {result}")
    return (result.record or {}).get("quality", {}), result.err


def psnr(a, b):
    return -10 * math.log10(np.mean((np.clip(a, 0, 1) - np.clip(b, 0, 1)) ** 2))


def ssim(a, b, hole=None):
    """Wang et al., over the windows without a hole."""
    weight = np.exp(-np.arange(-5, 6) ** 2 / 4.5)
    weight = np.outer(weight, weight) / weight.sum() ** 2
    windows = lambda image: np.lib.stride_tricks.sliding_window_view(image, (11, 11))
    mean = lambda image: np.einsum("yxij,ij->yx", windows(image), weight)
    a, b = np.clip(a, 0, 1), np.clip(b, 0, 1)
    ma, mb = mean(a), mean(b)
    value = (2 * ma * mb + 1e-4) * (2 * (mean(a * b) - ma * mb) + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (mean(a * a) - ma**2 + mean(b * b) - mb**2 + 9e-4))
    return value[~windows(hole).any((2, 3))].mean() if hole is not None else value.mean()


# --- types ------------------------------------------------------------------------------------------------------------

counts = np.int16(np.rint(800 + 1400 * noisy))
image = save("counts.npy", counts)
same, _ = quality(image, save("same.npy", np.int16(np.rint(800 + 1400 * clean))), "--range", "800,2200")
for name, dtype in (("float.npy", np.float32), ("double.npy", np.float64), ("int32.npy", np.int32)):
    other, said = quality(image, save(name, (800 + 1400 * clean).astype(dtype)), "--range", "800,2200")
    bench.check(abs(other["psnr_db"] - same["psnr_db"]) < 0.05 and "units of" in said, f"a truth of {dtype.__name__} has the units of the range: {other['psnr_db']:.2f} dB")
estimated, _ = quality(image, save("float.npy", np.float32(800 + 1400 * clean)))
bench.check(estimated["psnr_db"] > 25, f"and that of the data: {estimated['psnr_db']:.2f} dB")
image = save("eight.npy", np.uint8(np.rint(255 * np.clip(noisy, 0, 1))))
unit, said = quality(image, save("unit.npy", np.float32(clean)))
bench.check(unit["psnr_db"] > 30 and "units of" not in said, f"8 bits and floats on [0,1] have the range of their types: {unit['psnr_db']:.2f} dB")

if bench.has_gdal():
    meaning = lambda scale, offset: f'<Item name="SCALE" sample="0" role="scale">{scale}</Item><Item name="OFFSET" sample="0" role="offset">{offset}</Item>'
    heights = lambda image, scale, offset: np.int16(np.rint((100 + 20 * image - offset) / scale))
    image = write_tiff(bench.path("heights.tif"), heights(noisy, 0.01, 50), items=meaning(0.01, 50))
    same, _ = quality(image, write_tiff(bench.path("same.tif"), heights(clean, 0.01, 50), items=meaning(0.01, 50)))
    other, said = quality(image, write_tiff(bench.path("other.tif"), heights(clean, 0.02, 90), items=meaning(0.02, 90)))
    bench.check(abs(other["psnr_db"] - same["psnr_db"]) < 0.05 and "scale and offset" in said, f"samples of another scale: {other['psnr_db']:.2f}, {same['psnr_db']:.2f} dB")
    _, said = quality(image, write_tiff(bench.path("metres.tif"), np.int16(np.rint(100 + 20 * clean))))
    bench.check("compared sample by sample, although only" in said, f"integers without a scale are named: {said}")
    plain = write_tiff(bench.path("plain.tif"), np.float32(100 + 20 * clean))
    other, said = quality(image, plain)
    bench.check(abs(other["psnr_db"] - same["psnr_db"]) < 0.05 and "scale and offset" in said, f"floats without a scale: {other['psnr_db']:.2f}, {same['psnr_db']:.2f} dB")
    other, _ = quality(write_tiff(bench.path("floats.tif"), np.float32(100 + 20 * noisy)), bench.path("other.tif"))
    bench.check(abs(other["psnr_db"] - same["psnr_db"]) < 0.5, f"and the other way: {other['psnr_db']:.2f}, {same['psnr_db']:.2f} dB")

    # --- colours in another order ---------------------------------------------------------------------------------

    tints = lambda image: np.uint8(np.rint(255 * np.clip(np.stack([image, 0.6 * image, 1 - image], -1), 0, 1)))
    names = lambda order: "".join(f'<Item name="COLORINTERP" sample="{i}" role="colorinterp">{["Red", "Green", "Blue"][c]}</Item>' for i, c in enumerate(order))
    for order in ([2, 1, 0], [1, 2, 0]):
        for other in ([0, 1, 2], [2, 1, 0]):
            image = write_tiff(bench.path("mixed.tif"), tints(noisy)[..., order], 2, items=names(order))
            truth = write_tiff(bench.path("truth.tif"), tints(clean)[..., other], 2, items=names(other))
            found, _ = quality(image, truth, "--sigma", "0")
            wanted = psnr(tints(noisy) / 255, tints(clean) / 255)
            bench.check(abs(found["psnr_db"] - wanted) < 1e-3, f"bands {order} against {other}: {found['psnr_db']:.2f} dB, should be {wanted:.2f}")
    write_png(bench.path("truth.png"), tints(clean))
    found, _ = quality(image, bench.path("truth.png"), "--sigma", "0")
    bench.check(abs(found["psnr_db"] - wanted) < 1e-3, f"a PNG has red, green and blue: {found['psnr_db']:.2f} dB")

# --- a truth beyond the range --------------------------------------------------------------------------------------

image = save("float.npy", np.float32(800 + 1400 * noisy))
for low, high, said_so in ((800, 2200, False), (1200, 1800, True)):
    found, said = quality(image, save("truth.npy", np.float32(800 + 1400 * clean)), "--range", f"{low},{high}", "--sigma", "0")
    onto = lambda values: (800 + 1400 * values - low) / (high - low)
    bench.check(abs(found["psnr_db"] - psnr(onto(noisy), onto(clean))) < 1e-3 and ("% of its samples lie outside" in said) == said_so,
                f"both are clamped to the range {low}..{high}, which is said where it matters: {found['psnr_db']:.3f} dB, {said}")

# --- holes ------------------------------------------------------------------------------------------------------------

holes = random.random(clean.shape) < 0.002
holes[:, :40] = True
image = save("noisy.npy", np.float32(noisy))
figures = {}
truth = np.float32(clean)
truth[holes] = np.nan
figures["NaN"], _ = quality(image, save("nan.npy", truth), "--sigma", "0")
expected = psnr(np.float32(noisy)[~holes], clean[~holes]), ssim(np.float32(noisy), clean, holes)
if bench.has_gdal():
    truth[holes] = -9999
    figures["nodata"], _ = quality(image, write_tiff(bench.path("nodata.tif"), truth, nodata="-9999"), "--sigma", "0")
    truth[holes] = 0.1
    figures["mask"], _ = quality(image, write_tiff(bench.path("mask.tif"), truth, mask=np.where(holes, 0, 255)), "--sigma", "0")
for kind, found in figures.items():
    bench.check(abs(found["psnr_db"] - expected[0]) < 1e-3 and abs(found["ssim"] - expected[1]) < 1e-4,
                f"{kind} in the truth: {found['psnr_db']:.3f} dB and {found['ssim']:.4f}, should be {expected[0]:.3f} and {expected[1]:.4f}")
hollow = np.where(holes, np.nan, np.float32(noisy))
found, _ = quality(save("hollow.npy", np.float32(hollow)), save("clean.npy", np.float32(clean)), "--sigma", "0")
bench.check(abs(found["psnr_db"] - expected[0]) < 1e-3 and abs(found["ssim"] - expected[1]) < 1e-4, f"in the input: {found}")
hollow[::9, ::9] = np.nan
found, _ = quality(save("hollow.npy", np.float32(hollow)), save("clean.npy", np.float32(clean)), "--sigma", "0")
bench.check("psnr_db" in found and "ssim" not in found, f"no window without a hole: no SSIM: {found}")

bench.finish()
