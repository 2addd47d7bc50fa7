"""pages.py PROGRAM: pages of text, line art, halftones and dithers have no noise if their samples have few values.

Their edges have the frequencies of noise. Clean ones stay as they are, noisy ones are estimated by the spread of paper and ink."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
side = 192
y, x = np.mgrid[0:side, 0:side]


def page(ink, paper, smooth, seed=5):
    """Lines of strokes, like small letters, drawn four times as large and averaged if `smooth`."""
    random = np.random.default_rng(seed)
    scale = 4 if smooth else 1
    drawn = np.zeros((side * scale, side * scale))
    for top in range(8, side - 14, 15):
        for left in range(8, side - 16, 7):
            if random.random() < 0.17:
                continue
            for _ in range(3):
                if random.random() < 0.5:
                    row = (top + random.integers(0, 9)) * scale
                    drawn[row:row + scale, left * scale:(left + 5) * scale] = 1
                else:
                    column = (left + random.integers(0, 5)) * scale
                    drawn[top * scale:(top + 9) * scale, column + scale // 4:column + scale // 4 + scale] = 1
    drawn = drawn.reshape(side, scale, side, scale).mean((1, 3))
    return np.round(paper + (ink - paper) * drawn)


def halftone():
    """Dots of ink whose size follows a picture, in two levels."""
    picture = 0.5 + 0.3 * np.sin(x / 30) * np.cos(y / 25)
    return 255.0 * (picture > (np.cos(1.1 * x + 0.6 * y) + np.cos(1.1 * y - 0.6 * x)) / 4 + 0.5)


def dither():
    return 255.0 * (x / side > np.random.default_rng(2).random((side, side)))


def photograph():
    """A dark shape before a bright sky, of which a part is white."""
    sky = np.minimum(170 + y + 4 * np.sin(x / 9), 255.0)
    return np.where((x - 90) ** 2 + (y - 120) ** 2 < 3000, 20 + x / 12, sky)


def psnr(a, b):
    error = np.mean((a.astype(np.float64) - b) ** 2)
    return 99 if error == 0 else 10 * np.log10(255 ** 2 / error)


def denoise(truth, level, plan=True):
    noise = level * np.random.default_rng(9).standard_normal(truth.shape)
    noisy = np.uint8(np.clip(np.round(truth + noise), 0, 255))
    np.save(bench.path("noisy.npy"), noisy)
    verb = ["plan", "denoise"] if plan else ["denoise"]
    result = bench.run(*verb, bench.path("noisy.npy"), bench.path("out.npy"), "--json", bench.path("record.json"))
    bench.check(result.status == 0, f"runs: {result.err[:80]}")
    record = json.loads(bench.path("record.json").read_text())["denoise"]["files"][0]
    return noisy, None if plan else np.load(bench.path("out.npy")), 255 * record["sigma"]


pictures = {
    "page, white paper": page(0, 255, False), "page, gray paper": page(30, 245, False), "page, light on dark": page(220, 30, False),
    "smooth page, white paper": page(0, 255, True), "smooth page, gray paper": page(30, 245, True), "halftone": halftone(), "dither": dither(),
    "page in colours": np.stack([page(ink, 255, True) for ink in (30, 60, 140)], -1)}
for name, truth in pictures.items():
    _, _, sigma = denoise(truth, 0)
    bench.check(sigma <= 0.51, f"{name}: a level of {sigma:.2f} where there is no noise")
    for level in (4, 10):
        _, _, sigma = denoise(truth, level)
        bench.check(0.6 * level < sigma < 1.35 * level, f"{name}: a level of {sigma:.2f} for noise of {level}")
for name in ("page, gray paper", "smooth page, white paper"):
    noisy, result, _ = denoise(pictures[name], 0, plan=False)
    bench.check(psnr(result, noisy) > 55, f"{name}: the result is the input, {psnr(result, noisy):.1f} dB")
    noisy, result, _ = denoise(pictures[name], 5, plan=False)
    gain = psnr(result, pictures[name]) - psnr(noisy, pictures[name])
    bench.check(gain > -0.5, f"{name}: {gain:.2f} dB with noise of 5")
# Photographs keep the estimate of their flat areas.
for level in (3, 10):
    _, _, sigma = denoise(photograph(), level)
    bench.check(abs(sigma / level - 1) < 0.12, f"photograph: a level of {sigma:.2f} for noise of {level}")
# A white frame around noise is no page.
truth = photograph()
noisy = np.clip(np.round(truth + 10 * np.random.default_rng(1).standard_normal(truth.shape)), 0, 255)
noisy[:50] = noisy[-50:] = noisy[:, :50] = 255
_, _, sigma = denoise(noisy, 0)
bench.check(abs(sigma / 10 - 1) < 0.15, f"in a white frame: a level of {sigma:.2f} for noise of 10")
bench.finish()
