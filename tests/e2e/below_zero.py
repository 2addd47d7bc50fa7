"""below_zero.py PROGRAM: images of which a part lies below the 0 of its scale, marks below all other samples, flat areas in noise, alpha in an array."""
import sys

from support import Bench, np, picture, psnr

bench = Bench(sys.argv[1])
random = np.random.default_rng(23)
HEIGHT, WIDTH = 200, 220
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
scene = 0.5 + 0.25 * np.sin(x / 17) * np.cos(y / 23) + 0.15 * np.sin(x / 5 + y / 31) + 0.1 * np.sign(np.hypot(y - 80, x - 90) - 40)
white = random.standard_normal(scene.shape)


def denoise(array, *options, status=0):
    """The result, the record's entry and what was said."""
    np.save(bench.path("in.npy"), array)
    run = bench.run("denoise", bench.path("in.npy"), bench.path("out.npy"), *options, "--json", "-", "--verbose", "--overwrite")
    bench.check(run.status == status, f"runs: {run}")
    return (np.load(bench.path("out.npy")), run.record["denoise"]["files"][0], run.err) if run.status == 0 else (None, {}, run.err)


# Networks do poorly below 0, so an image that lies there has the range of its data; noise around a black background has not.
for scale, shift, sigma in ((0.3, 0.1, 0.04), (1, 0.2, 0.04), (1, 0.3, 0.1)):
    clean = scale * (scene - scene.min()) / np.ptp(scene) - shift
    noisy = (clean + sigma * white).astype(np.float32)
    result, entry, said = denoise(noisy)
    shifted, _, _ = denoise(noisy + np.float32(shift))
    bench.check(entry["range_from"] == "data" and psnr(result, clean) > psnr(shifted - shift, clean) - 0.3,
                f"{scale} x picture - {shift}: {psnr(result, clean):.2f} dB, from 0 up {psnr(shifted - shift, clean):.2f}: {entry}")
    plan = bench.run("plan", "denoise", bench.path("in.npy"), bench.path("out.npy"), "--sigma", sigma)
    bench.check(plan.status == 0 and "the range" not in plan.err, f"from 0 up nothing is said: {plan.err}")
    np.save(bench.path("in.npy"), noisy)
    plan = bench.run("plan", "denoise", bench.path("in.npy"), bench.path("out.npy"), "--sigma", sigma)
    bench.check("has no scale" in plan.err or "lie below the range" in plan.err, f"with a given sigma it is said: {plan.err}")
for name, clean in (("background", np.where(scene > np.median(scene), scene, 0)), ("picture", np.clip(1.3 * scene - 0.2, 0, 1))):
    for sigma in (0.02, 0.1):
        _, entry, said = denoise((clean + sigma * white).astype(np.float32))
        bench.check(entry["range_from"] == "as it is" and "below the range" not in said, f"{name}, noise {sigma} around 0: {entry}: {said}")
soft = sum(np.roll(white, (i, j), (0, 1)) for i in range(2) for j in range(2)) / 2
_, entry, said = denoise((np.where(scene > np.median(scene), scene, 0) + 0.05 * soft).astype(np.float32), "--sigma", "0.05")
bench.check(entry["range_from"] == "as it is" and "below the range" not in said, f"noise that neighbours share, around 0: {entry}: {said}")
depths = (700 + 3300 * scene + 20 * white).astype(np.float32)
for low, told in ((600, False), (1800, True)):
    _, _, said = denoise(depths, "--range", f"{low},4500", "--sigma", "0.006")
    bench.check(("lie below the range" in said) == told, f"from {low}: {said}")

# One value of many samples, apart from all others, marks missing data; the least samples of a picture do not.
heights = 5 + 300 * scene + 4 * white
for mark in (-99, -60.5):
    marked = heights.astype(np.float32)
    marked[20:60, 30:90] = mark
    _, _, said = denoise(marked, status=2)
    bench.check("marks missing data" in said and f"{mark:g}" in said, f"{mark}: {said}")
for name, array in (("heights", heights), ("few values", np.rint(6 * scene)), ("black", 255 * np.where(scene > 0.3, scene, 0) + 2 * white)):
    np.save(bench.path("in.npy"), array.astype(np.float32))
    plan = bench.run("plan", "denoise", bench.path("in.npy"), bench.path("out.npy"))
    bench.check("marks missing data" not in plan.err, f"{name}: {plan.err}")

# A lake at the level of the land around it: patches at its shore are half flat, and not what the noise is like.
for dtype in (np.float32, np.int16):
    wanted = denoise(np.rint(8 * white + 300 * scene).astype(dtype) if dtype is np.int16 else (8 * white + 300 * scene).astype(dtype))[1]
    for level in (float(np.median(300 * scene)), 0.0):
        lake = 8 * white + 300 * scene
        lake[60:110, 40:120] = np.rint(level)
        _, entry, said = denoise(np.rint(lake).astype(dtype) if dtype is np.int16 else lake.astype(dtype))
        share = entry["sigma"] * np.ptp(entry["range"]) / 8
        bench.check(0.85 < share < 1.15 and wanted["sigma"] > 0, f"{dtype.__name__}, lake at {level:.0f}: noise is {share:.2f} of what it is: {said}")

# An array cannot say that its last channel is alpha.
rgba = np.dstack([picture(60, 70, 3, 2), np.ones((60, 70))]).astype(np.float32)
bench.check("if the last one is alpha" in denoise(rgba, "--sigma", "0.1")[2], "four channels of an array are doubted")
bench.finish()
