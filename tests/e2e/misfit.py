"""Measured blurs that no sharp picture explains: highlights that are cut off and a field of view that was made black afterwards, if they are not left out (masks.py), noise in another unit. They
get less weight, and a note says why the result is not better. Floats around 1 are no images of [0, 1]."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(2)
HEIGHT, WIDTH, REACH = 120, 140, 5
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]
disc = np.clip(4.8 - np.hypot(v, u), 0, 1)
disc /= disc.sum()
y, x = np.mgrid[:HEIGHT + 2 * REACH, :WIDTH + 2 * REACH]
scene = 90 + 40 * np.sin(x / 9) * np.cos(y / 6) + 60 * (np.hypot(y - 50, x - 40) < 22) - 40 * (np.abs(y - x - 20) < 6) + 50 * ((x // 6 + y // 8) % 2) * (x > 90)


def inner(image):
    return image[REACH:-REACH, REACH:-REACH]


def blurred(sharp):
    side = range(2 * REACH + 1)
    return sum(disc[i, j] * sharp[2 * REACH - i:2 * REACH - i + HEIGHT, 2 * REACH - j:2 * REACH - j + WIDTH] for i in side for j in side) + random.normal(0, 1, (HEIGHT, WIDTH))


def solve(values, truth, *args, kernel_values=disc, **entries):
    """The record's part, the PSNR before and after, and what was said."""
    np.save(bench.path("y.npy"), values)
    np.save(bench.path("k.npy"), kernel_values)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", **entries}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, 0, 0, ""
    before, after = (10 * np.log10(np.ptp(truth) ** 2 / np.mean((a.astype(float) - truth) ** 2)) for a in (values, np.load(bench.path("out.npy"))))
    return json.loads(bench.path("r.json").read_text())["reconstruct"], before, after, result.err


def bytes_of(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


own, before, right, said = solve(bytes_of(blurred(scene)), inner(scene))
bench.check("misfit" not in own and "differs from what was measured" not in said and right > before + 3, f"a right kernel: {before:.2f} to {right:.2f} dB: {said}")

own, before, after, said = solve(bytes_of(blurred(scene)), inner(scene), "--init", "cg")
bench.check(after > right - 3, f"a start by conjugate gradients does not multiply the noise: {before:.2f} to {after:.2f} dB")

bright = np.clip(scene * 1.9, 0, None)
own, before, after, said = solve(bytes_of(blurred(bright)), np.clip(inner(bright), 0, 255), saturated=False)
bench.check(own.get("misfit", 0) > 4 and own.get("raised_noise", 0) > 3 and "highlights cut off" in said and after > before - 0.5, f"cut off: {before:.2f} to {after:.2f} dB, {own.get('misfit')}: {said}")

field = np.hypot(*(np.mgrid[:HEIGHT, :WIDTH] - np.array([60, 70]).reshape(2, 1, 1))) < 50
seen = bytes_of(blurred(scene) * field)
own, before, after, said = solve(seen, inner(scene) * field, frame=False)
_, _, forced, _ = solve(seen, inner(scene) * field, noise=1.3, frame=False)
bench.check(own.get("misfit", 0) > 4 and "raised_noise" in own and "frame or mask" in said and after > forced + 3, f"black outside of a circle: {before:.2f} to {after:.2f} dB, {forced:.2f} with the right noise: {said}")

# The second run is what a run with that noise would be, to the last bit: also at the border, whose margin must not begin as black.
half = blurred(scene)
half[:, WIDTH // 2:] *= 0.5  # by a filter before one half of the sensor, of which the kernel knows nothing
for what, args in (("mean", ()), ("adjoint", ("--init", "adjoint")), ("conjugate gradients", ("--init", "cg")), ("zero", ("--init", "zero"))):
    own, _, _, said = solve(bytes_of(half), inner(scene), "--iterations", "4", *args)
    second = np.load(bench.path("out.npy"))
    given, _, _, _ = solve(bytes_of(half), inner(scene), "--iterations", "4", *args, noise=own.get("raised_noise", 1))
    bench.check("raised_noise" in own and np.array_equal(second, np.load(bench.path("out.npy"))) and own.get("settled") == given.get("settled"),
                f"a second run from {what}: {own.get('misfit')}, noise {own.get('raised_noise')}, settled {own.get('settled')} and {given.get('settled')}: {said}")

# Nothing is wrong where the loop has not converged: after one iteration, and in pictures that are hardly larger than the kernel.
own, _, _, said = solve(bytes_of(blurred(scene)), inner(scene), "--iterations", "1")
bench.check("misfit" not in own and "differs from what was measured" not in said, f"one iteration: {own.get('misfit')}: {said}")
v, u = np.mgrid[-8:9, -8:9]
wide = np.exp(-(u * u + v * v) / 8)
for side in (20, 24):
    sharp = 155 + np.random.default_rng(0).normal(0, 8, (side + 16, side + 16))
    small = sum(wide[i, j] * sharp[16 - i:16 - i + side, 16 - j:16 - j + side] for i in range(17) for j in range(17)) / wide.sum() + np.random.default_rng(0).normal(0, 1, (side, side))
    own, before, after, said = solve(bytes_of(small), sharp[8:-8, 8:-8], kernel_values=wide)
    bench.check("misfit" not in own and after > before, f"{side} pixels and a kernel of 17: {before:.2f} to {after:.2f} dB: {own.get('misfit')}: {said}")

# Stripes of a camera are noise that is not white; those of the scene are not noise.
for name, stripes in (("rows", random.normal(0, 2.5, (HEIGHT, 1))), ("columns", random.normal(0, 2.5, (1, WIDTH)))):
    own, before, after, said = solve(bytes_of(blurred(scene) + stripes), inner(scene))
    bench.check(4 < own.get("noise", 0) < 9 and "have stripes of" in said and after > before + 0.3, f"stripes of {name}: noise {own.get('noise')}, {before:.2f} to {after:.2f} dB: {said}")
    own, _, _, said = solve(bytes_of(blurred(scene) + stripes), inner(scene), noise=1.5)
    bench.check(abs(own.get("noise", 0) - 1.5) < 1e-6 and "they need a \"noise\" of" in said, f"stripes of {name}, noise given: {own.get('noise')}: {said}")
# A narrow kernel leaves lines of the scene as rough as stripes are.
v, u = np.mgrid[-3:4, -3:4]
narrow = np.exp(-(u * u + v * v) / (2 * 0.6 * 0.6))
cloth = scene * np.where(np.arange(len(scene)) % 2, 1, 0.85)[:, None]
fine = sum(narrow[3 + i, 3 + j] * np.roll(cloth, (i, j), (0, 1)) for i in range(-3, 4) for j in range(-3, 4))[3:-3, 3:-3] / narrow.sum()
own, before, after, said = solve(bytes_of(fine + random.normal(0, 1, fine.shape)), cloth[3:-3, 3:-3], kernel_values=narrow)
bench.check("have stripes" not in said and after > before + 2, f"cloth and a narrow kernel: {before:.2f} to {after:.2f} dB, noise {own.get('noise')}: {said}")
blinds = scene + 40 * ((y // 5) % 2)
own, before, after, said = solve(bytes_of(blurred(blinds)), inner(blinds))
bench.check("have stripes" not in said and after > before + 2, f"a scene with blinds: {before:.2f} to {after:.2f} dB: {said}")

# Weak noise that is right: rows of texture are no stripes, and what the steps leave is no misfit.
texture = np.clip(128 + 40 * np.random.default_rng(5).normal(0, 1, (HEIGHT + 8, WIDTH + 8)), 0, 255)
moved = sum(texture[4:4 + HEIGHT, i:i + WIDTH] for i in range(9)) / 9
for weak in (0.5, 1):
    measured = np.float32(moved + np.random.default_rng(6).normal(0, weak, moved.shape))
    own, _, _, said = solve(measured, texture[4:-4, 4:-4], kernel_values=np.ones((1, 9)) / 9, noise=weak)
    bench.check("misfit" not in own and "stripes" not in said, f"noise of {weak}, as given: {own.get('misfit')}: {said}")

# A noise that is given is used, but the same is said.
own, before, after, said = solve(bytes_of(blurred(scene)), inner(scene), noise=1 / 255)
bench.check(own.get("misfit", 0) > 4 and "raised_noise" not in own and "noise\" in another unit" in said, f"noise in another unit: {own.get('misfit')}: {said}")

for low, high in ((0.6, 1.4), (0.85, 1.15), (0, 2)):
    sharp = low + (high - low) * (scene - scene.min()) / np.ptp(scene)
    values = (blurred(255 * sharp / (high - low)) * (high - low) / 255).astype(np.float32)
    own, before, after, said = solve(values, inner(sharp))
    bench.check(own.get("range_from") == "data" and own["range"][1] > 1.1 and after > before + 2, f"floats of {low} to {high}: range {own.get('range')}, {before:.2f} to {after:.2f} dB")
values = (np.clip(blurred(1.1 * scene), 0, 255) / 255 + random.normal(0, 0.03, (HEIGHT, WIDTH))).astype(np.float32)
own, _, _, _ = solve(values, inner(scene) / 255)
bench.check(own.get("range_from") == "default", f"white with noise: range {own.get('range')}")


# A few highlights that are brighter than 1, in floats that else are an image of [0, 1]: nothing is cut off; where a range says so, a note has it.
for radius, more in ((1.8, 6), (3, 2.5)):
    sharp = (scene - scene.min()) / np.ptp(scene) * 0.8 + more * (np.hypot(y - 80, x - 110) < radius)
    values = (blurred(255 * sharp) / 255).astype(np.float32)
    own, before, after, said = solve(values, inner(sharp))
    bench.check(own.get("range_from") == "data" and own["range"][1] > 1.05 and "misfit" not in own and after > before + 3, f"highlights of {more}: range {own.get('range')}, {before:.2f} to {after:.2f} dB: {said}")
    own, before, after, said = solve(values, inner(sharp), range=[0, 1])
    bench.check(own.get("misfit", 0) > 4 and "cut off at 1, the end of its range" in said and "give \"range\": [0, largest value]" in said, f"the same in a range of [0, 1]: {own.get('misfit')}: {said}")
for noise in (0.02, 0.1):  # white with noise is none
    values = (np.clip(blurred(1.1 * scene), 0, 255) / 255 + random.normal(0, noise, (HEIGHT, WIDTH))).astype(np.float32)
    own, _, _, _ = solve(values, inner(scene) / 255, "--iterations", "1")
    bench.check(own.get("range_from") == "default", f"white with noise of {noise}: range {own.get('range')}")

bench.finish()
