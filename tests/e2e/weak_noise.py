"""weak_noise.py PROGRAM: where a network changes a picture by more than its weak noise, the input is blended in.

The bundled colour network smears the sharpest colours. With weak noise that would be worse than the noise."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(3)
side = 160


def colours():
    """Flat squares to estimate the noise from, which the colours share, and small ones of full contrast with edges at different places in the three colours."""
    x = np.mgrid[0:side, 0:side][1] / side
    image = np.stack([0.3 + 0.2 * x + 0.05 * c for c in range(3)], -1) + 0.4 * random.random((side // 16, side // 16, 1)).repeat(16, 0).repeat(16, 1)
    edges = random.random((side // 3 + 2, side // 3 + 2, 3)).repeat(3, 0).repeat(3, 1)
    for c in range(3):
        image[side - 48:, :, c] += edges[c:c + 48, c:c + side, c] - 0.5
    return image


def smooth():
    y, x = np.mgrid[0:side, 0:side] / side
    return np.stack([0.5 + 0.3 * np.sin(3 * x + 0.3 * c) * np.cos(2 * y) for c in range(3)], -1)


def psnr(a, b):
    return -10 * np.log10(np.mean((a.astype(np.float64) - b) ** 2))


def denoise(noisy, *args):
    np.save(bench.path("noisy.npy"), noisy)
    result = bench.run("denoise", bench.path("noisy.npy"), bench.path("out.npy"), "--json", bench.path("record.json"), *args)
    bench.check(result.status == 0, f"runs: {result.err[:80]}")
    return np.load(bench.path("out.npy")), json.loads(bench.path("record.json").read_text())["denoise"]["files"][0], result.err


for level in (0.5, 1):
    truth = colours()
    noisy = np.float32(truth + level / 255 * random.standard_normal(truth.shape))
    named, record, words = denoise(noisy, "--model", "drunet-color-small", "--range", "0,1")
    bench.check("held_back" not in record and "blended" not in words, "a network that is named is taken as it is")
    own, record, words = denoise(noisy, "--range", "0,1")
    gains = [psnr(x, truth) - psnr(noisy, truth) for x in (named, own)]
    bench.check(gains[0] < -1 and gains[1] > 0, f"level {level}: the network alone {gains[0]:.1f} dB, held back {gains[1]:.1f} dB")
    bench.check(0.05 < record["held_back"] <= 1 and "blended in" in words, f"level {level}: {record['held_back']:.2f} held back, and said so")
    tiled, _, _ = denoise(noisy, "--range", "0,1", "--tile", "64", "--halo", "exact")
    bench.check(np.array_equal(own, tiled), "tiles give the same")
# Each channel by its own noise: weak in some, and real in others. All are near enough to be denoised together, or far enough to be taken one by one.
for levels in ((3, 11, 11), (5, 6, 14), (1, 1, 10)):
    truth = colours()
    noisy = np.float32(truth + np.array(levels) / 255 * random.standard_normal(truth.shape))
    named, _, _ = denoise(noisy, "--model", "drunet-color-small" if levels[2] < 4 * levels[0] else "drunet-gray-small", "--range", "0,1")
    own, record, words = denoise(noisy, "--range", "0,1")
    gains = [psnr(own[..., c], truth[..., c]) - psnr(noisy[..., c], truth[..., c]) for c in range(3)]
    bench.check(min(gains) > 2.5, f"levels {levels}: the channels gain {gains} dB")
    real = [c for c in range(3) if levels[c] > 8]
    bench.check(all(np.array_equal(own[..., c], named[..., c]) for c in real), f"levels {levels}: channels with real noise have the whole result")
# A noisy slice of a volume does not change what becomes of a quiet one.
truth = np.stack([colours(), colours(), smooth()])
noisy = np.float32(truth + np.array([2, 40, 2]).reshape(3, 1, 1, 1) / 255 * random.standard_normal(truth.shape))
volume, record, words = denoise(noisy, "--range", "0,1")
for z in range(3):
    alone = denoise(noisy[z], "--range", "0,1")[0]
    gains = [psnr(x, truth[z]) - psnr(noisy[z], truth[z]) for x in (volume[z], alone)]
    bench.check(gains[0] > 0 and np.array_equal(volume[z], alone), f"slice {z}: {gains[0]:.1f} dB in a volume, {gains[1]:.1f} dB alone")
held = record.get("held_back", 0)
bench.check(0.05 < held < 0.34 and "blended in" in words, f"{held:.2f} of the volume held back, and said so")
def print_of(tall):
    """Lines of small strokes, like letters of this height, as a drawing has them."""
    drawn = np.full((side, side), 245 / 255)
    for top in range(4, side - tall - 4, int(1.6 * tall)):
        for left in range(6, side - tall - 2, int(0.7 * tall)):
            for _ in range(3):
                if random.random() < 0.5:
                    drawn[top + random.integers(0, tall), left:left + tall // 2] = 30 / 255
                else:
                    drawn[top:top + tall, left + random.integers(0, tall // 2)] = 30 / 255
    return drawn


# Small print is changed by less than the noise, but not by the noise.
truth = print_of(9)
noisy = np.float32(truth + 1 / 255 * random.standard_normal(truth.shape))
named = denoise(noisy, "--range", "0,1", "--model", "drunet-gray-small")[0]
own, record, words = denoise(noisy, "--range", "0,1")
gains = [psnr(x, truth) - psnr(noisy, truth) for x in (named, own)]
bench.check(gains[0] < -0.5 and gains[1] > -0.45, f"small print: the network alone {gains[0]:.2f} dB, held back {gains[1]:.2f} dB")
bench.check(record.get("held_back", 0) > 0.3 and "blended in" in words, "small print: held back, and said so")
truth = smooth()
noisy = np.float32(truth + 3 / 255 * random.standard_normal(truth.shape))
named = denoise(noisy, "--range", "0,1", "--model", "drunet-color-small")[0]
own, record, words = denoise(noisy, "--range", "0,1")
same = (own == named).all(-1).mean()
bench.check(same > 0.95 and record.get("held_back", 0) < 0.05 and "blended" not in words, f"a smooth picture keeps {same:.3f} of its bits")
# Hot pixels, which the network does not see, are no change of it.
for truth, spots in ((smooth()[..., 1], (slice(20, 150, 10), 70)), (smooth(), (slice(20, 150, 10), 70, 1))):
    noisy = np.rint(20000 * (truth + 3 / 255 * random.standard_normal(truth.shape))).astype(np.uint16)
    plain = denoise(noisy)[0]
    noisy[spots] = 60000
    own, record, words = denoise(noisy)
    rest = noisy != 60000
    errors = [np.std((image / 20000 - truth)[20:150:10][rest[20:150:10]]) for image in (plain, own)]
    bench.check(record.get("defects") == 13 and "blended" not in words and errors[1] < 1.5 * errors[0],
                f"rows with hot pixels: error {errors[1]:.5f}, {errors[0]:.5f} without them: {words.strip()}")
    bench.check((own[~rest] == 60000).all(), "hot pixels keep their values")
bench.finish()
