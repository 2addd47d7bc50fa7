"""defects.py PROGRAM: hot and dead pixels of 16-bit and float images are hidden from the network and keep their values; stars, lines and highlights are not
taken for them."""
import sys

import numpy as np

from support import Bench, dncnn, drunet, picture, read_png, to_integers, write_png, write_safetensors

HEIGHT, WIDTH = 96, 128
BUT = "stand alone, far from their surroundings"


def frame(seed=1, channels=1, noise=40.0):
    """Samples from about 300 to 1200, as a camera of 16 bits has them in low light."""
    random = np.random.default_rng(seed)
    image = 300 + 900 * np.float64(picture(HEIGHT, WIDTH, channels, seed))
    return image + noise * random.standard_normal(image.shape)


def places(count, seed=2, shape=(HEIGHT, WIDTH)):
    """Some in the corners and on the borders, one pair, the others anywhere with 3 pixels between them."""
    random, taken = np.random.default_rng(seed), [(0, 0), (0, shape[1] - 1), (shape[0] - 1, 5), (40, 60), (40, 61)]
    while len(taken) < count:
        y, x = int(random.integers(shape[0])), int(random.integers(shape[1]))
        if all(max(abs(y - v), abs(x - u)) > 3 for v, u in taken):
            taken.append((y, x))
    return tuple(np.array(taken).T)


def stars(count, width, random):
    """A sky with stars whose light has this standard deviation in pixels, integrated over each pixel."""
    sky, fine = np.zeros((HEIGHT, WIDTH)), 8
    y, x = (np.mgrid[0:9 * fine, 0:9 * fine] + 0.5) / fine - 4.5
    for _ in range(count):
        v, u = int(random.integers(5, HEIGHT - 5)), int(random.integers(5, WIDTH - 5))
        dy, dx = random.uniform(-0.5, 0.5, 2)
        light = np.exp(-((y - dy) ** 2 + (x - dx) ** 2) / (2 * width ** 2)).reshape(9, fine, 9, fine).mean((1, 3))
        sky[v - 4:v + 5, u - 4:u + 5] += random.uniform(2000, 60000) * light
    return sky


def main():
    bench = Bench(sys.argv[1])
    model = {n: write_safetensors(bench.path(f"n{n}.safetensors"), drunet(n, widths=(8, 8, 16, 16), blocks=1)) for n in (1, 3)}
    blind = write_safetensors(bench.path("blind.safetensors"), dncnn(1, depth=3, width=16))

    def denoise(image, *options, suffix=".npy", net=None):
        """(entry of the record, result, standard error)"""
        np.save(bench.path("in.npy"), image)
        target = bench.path("out" + suffix)
        result = bench.run("denoise", bench.path("in.npy"), target, "--model", net or model[3 if image.ndim == 3 and image.shape[2] == 3 else 1],
                           "--json", "-", *options)
        if not bench.check(result.status == 0, f"runs: {result}"):
            return {}, np.zeros(image.shape), result.err
        return result.record["denoise"]["files"][0], np.load(target) if suffix == ".npy" else read_png(target), result.err

    # doubles whose differences float32 would lose, which a few hot pixels must not hide
    for offset, unit, far in ((1e6, 1e-5, 1.01e6), (1e7, 1e-4, 0.0)):
        fine, spots = offset + unit * frame(), places(12)
        clean = denoise(fine)[0]
        fine[spots] = far
        entry, result, _ = denoise(fine)
        bench.check(result.dtype == np.float64 and entry["defects"] == 12, f"float64 around {offset:g}: {result.dtype}, {entry.get('defects')} defects")
        bench.check(abs(entry["sigma"] / clean["sigma"] - 1) < 0.1, f"float64 around {offset:g}: noise of {entry['sigma']:.4f}, {clean['sigma']:.4f} without hot pixels")
        bench.check(np.array_equal(result[spots], fine[spots]), f"float64 around {offset:g}: hot pixels keep their values")

    where = places(40)
    random = np.random.default_rng(5)
    hot = random.integers(4000, 65535, 40)
    hot[::5] = 65535
    for dtype in (np.uint16, np.float32, np.int32):
        clean = np.rint(frame()).astype(dtype)
        image = clean.copy()
        image[where] = hot
        entry, result, said = denoise(image)
        bench.check(entry.get("defects") == 40 and f"40 sample(s) {BUT}" in said, f"{dtype.__name__}: 40 are found: {entry.get('defects')}, {said.strip()}")
        bench.check(np.array_equal(result[where], image[where]), f"{dtype.__name__}: they keep their values")
        plain, _, said = denoise(clean)
        bench.check("defects" not in plain and BUT not in said, f"{dtype.__name__}: none in the image without them")
        bench.check(entry.get("range") == plain.get("range") and abs(entry.get("sigma", 1) / plain.get("sigma", 9) - 1) < 0.02,
                    f"{dtype.__name__}: range and noise are those of the others: {entry.get('range')}, {entry.get('sigma')}; {plain.get('range')}, {plain.get('sigma')}")

    image = frame().astype(np.float32)
    image[where] = hot
    holes = image.copy()
    holes[where] = np.nan
    rest = np.isfinite(holes)
    for options in ((), ("--tile", "32", "--halo", "exact"), ("--sigma", "0.04", "--range", "0,1500"), ("--strength", "0.5")):
        _, result, _ = denoise(image, *options)
        _, other, _ = denoise(holes, *options)
        bench.check(np.array_equal(result[rest], other[rest]) and np.array_equal(result[~rest], image[~rest]),
                    f"all others are as beside holes, with {' '.join(options) or 'nothing given'}")
    _, result, _ = denoise(image, net=blind)
    _, other, _ = denoise(holes, net=blind)
    bench.check(np.array_equal(result[rest], other[rest]), "the same for a model without a noise level")
    entry, result, _ = denoise(image, suffix=".png")
    bench.check(entry.get("defects") == 40 and np.all(result.reshape(HEIGHT, WIDTH)[where] == 65535), "in a PNG they are white, not 0 as holes are")

    volume = np.stack([frame(seed) for seed in (1, 2, 3)])
    volume[1][where] = hot
    entry, result, _ = denoise(volume.astype(np.float32), "--axes", "DHW")
    bench.check(entry.get("defects") == 40 and np.array_equal(result[1][where], np.float32(hot)), f"in a slice of a volume: {entry.get('defects')}")
    # Slices of different exposures: hot pixels of a dim one lie within the range of the others.
    volume = np.stack([frame(1), 40 * frame(2), 40 * frame(3), frame(4)])
    for dtype in (np.float32, np.uint16):
        clean = np.rint(volume).astype(dtype)
        bad = clean.copy()
        bad[0][where] = hot // 8 + 4000
        entry, result, _ = denoise(bad, "--axes", "DHW")
        other, alone, _ = denoise(bad[0])
        rest = bad[0] == clean[0]
        bench.check(entry.get("defects") == 40 and np.array_equal(result[0][where], bad[0][where]), f"{dtype.__name__}: in a dim slice: {entry.get('defects')}, alone {other.get('defects')}")
        near = np.abs(np.float64(result[0]) - alone)[rest].max()
        bench.check(near <= 0.05 * 40, f"{dtype.__name__}: the dim slice is denoised as alone, but for {near:.3g}")
        bench.check("defects" not in denoise(clean, "--axes", "DHW")[0], f"{dtype.__name__}: none without them")
    counts = np.stack([random.random((HEIGHT, WIDTH)) < 0.003, random.poisson(40, (HEIGHT, WIDTH))]).astype(np.uint16)
    counts[0, 50, 50] = 9
    entry, _, _ = denoise(counts, "--axes", "DHW")
    bench.check("defects" not in entry, f"lone counts in an empty slice are none: {entry.get('defects')}")
    colour = np.rint(frame(channels=3)).astype(np.uint16)
    colour[..., 1][where] = hot
    entry, result, _ = denoise(colour, "--axes", "HWC")
    bench.check(entry.get("defects") == 40 and np.array_equal(result[..., 1][where], hot), f"in one channel of three: {entry.get('defects')}")

    # Side by side: pairs, corners and squares, of equal and of different values, hot and dead, also in one colour.
    spots = places(16, 7)
    for shape, members in (("pairs", ((0, 0), (0, 1))), ("corners", ((0, 0), (0, 1), (1, 0))), ("squares", ((0, 0), (0, 1), (1, 0), (1, 1)))):
        for name, values in (("equal", (60000,)), ("different", (60000, 31000, 42000, 25000)), ("dead", (0,))):
            bad = np.zeros((HEIGHT, WIDTH), bool)
            image = np.rint(frame(noise=40.0) + (8000 if name == "dead" else 0)).astype(np.uint16)
            clean = image.copy()
            for v, u in list(zip(*spots))[5:]:
                for k, (dy, dx) in enumerate(members):
                    if v + dy < HEIGHT and u + dx < WIDTH:
                        image[v + dy, u + dx] = values[k % len(values)]
                        bad[v + dy, u + dx] = True
            entry, result, _ = denoise(image)
            plain, alone, _ = denoise(clean)
            bench.check(entry.get("defects") == bad.sum() and np.array_equal(result[bad], image[bad]), f"{shape}, {name}: {entry.get('defects')} of {bad.sum()}")
            bench.check(abs(entry["sigma"] / plain["sigma"] - 1) < 0.1, f"{shape}, {name}: noise of {entry['sigma']:.4f}, {plain['sigma']:.4f} without them")
    image = np.rint(frame(channels=3)).astype(np.uint16)
    for v in range(10, 90, 10):
        image[v:v + 2, v:v + 2, 1] = 50000
    entry, result, _ = denoise(image, "--axes", "HWC")
    bench.check(entry.get("defects") == 32 and (result[10:12, 10:12, 1] == 50000).all(), f"squares in one channel of three: {entry.get('defects')}")

    noise = 30 * random.standard_normal((HEIGHT, WIDTH))
    for width in (0.6, 0.8, 1.2):
        sky = np.clip(np.rint(500 + noise + stars(60, width, random)), 0, 65535).astype(np.uint16)
        entry, _, said = denoise(sky)
        bench.check("defects" not in entry and BUT not in said, f"stars of {width} pixels are none: {entry.get('defects')}")
    drawn = 500 + noise
    drawn[20, 10:100] = drawn[5:90, 30] = 20000  # lines of one pixel, whose ends are inside
    drawn[np.arange(40, 80), np.arange(50, 90)] = 20000
    drawn[60:62, 10:12] = 20000
    entry, _, said = denoise(np.rint(drawn).astype(np.uint16))
    bench.check("defects" not in entry, f"lines and their ends are none: {entry.get('defects')}")
    lit = 300 + 900 * np.float64(picture(HEIGHT, WIDTH, 1)) + noise / 10
    lit[where] = lit.max()
    entry, _, _ = denoise(np.rint(lit).astype(np.uint16))
    bench.check("defects" not in entry, f"highlights within the image's range are none: {entry.get('defects')}")
    sparse = (random.random((HEIGHT, WIDTH)) < 0.003).astype(np.uint16)
    entry, _, _ = denoise(sparse)
    bench.check("defects" not in entry, f"nor are lone counts in an empty image: {entry.get('defects')}")
    small = to_integers(picture(HEIGHT, WIDTH, 1) * 0.3, np.uint8)
    small[where] = 255
    write_png(bench.path("u8.png"), small)
    record = bench.record("denoise", bench.path("u8.png"), bench.path("u8-out.png"), "--model", model[1])
    bench.check(record and "defects" not in record["denoise"]["files"][0], "8 bits are not looked at")
    bench.finish()


main()
