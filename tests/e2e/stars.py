"""Points of light are brighter than their blurs: the range of floats must not cut them off, and integers say which details their type's range hides."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
SIDE, SKY, NOISE = 96, 300, 12


def kernel_of(sigma, reach):
    v, u = np.mgrid[-reach:reach + 1, -reach:reach + 1]
    values = np.exp(-(u * u + v * v) / (2 * sigma * sigma))
    return values / values.sum()


def stars_of(random):
    """Row, column and flux of stars that stand apart."""
    return [(12 + 16 * i + random.integers(-4, 5), 12 + 16 * j + random.integers(-4, 5), 10 ** random.uniform(3, 4.6)) for i in range(5) for j in range(5)]


def solve(kernel, dtype, **entries):
    """The record's part, of each star its flux in the result over the true one, the true flux, and what was said."""
    random = np.random.default_rng(3)
    stars, reach = stars_of(random), len(kernel) // 2
    values = SKY + random.normal(0, NOISE, (SIDE, SIDE))
    for y, x, flux in stars:
        values[y - reach:y + reach + 1, x - reach:x + reach + 1] += flux * kernel
    np.save(bench.path("y.npy"), (np.rint(values) if dtype == np.uint16 else values).astype(dtype))
    np.save(bench.path("k.npy"), kernel)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", **entries}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"))
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, np.zeros(1), np.zeros(1), ""
    found, flux = np.load(bench.path("out.npy")).astype(float), np.array([f for *_, f in stars])
    ratio = np.array([found[y - 4:y + 5, x - 4:x + 5].sum() - 81 * SKY for y, x, _ in stars]) / flux
    return json.loads(bench.path("r.json").read_text())["reconstruct"], ratio, flux, result.err


for sigma, reach in ((0.6, 4), (1.2, 6)):
    own, ratio, flux, said = solve(kernel_of(sigma, reach), np.float32)
    bright = ratio[flux > 15000]
    bench.check(own.get("range_from") == "data" and own.get("brightest", 0) > flux.max() and 0.85 < bright.min() and bright.max() < 1.15 and "cut off" not in said,
                f"floats, a Gaussian of {sigma}: flux of bright stars {np.round(bright, 2)}, range {own.get('range')}, brightest {own.get('brightest')}: {said}")

# Of 16 bits the range is that of the type, and its least noise is far above the stars' own: that is said, and what is advised helps.
own, ratio, flux, said = solve(kernel_of(1.2, 6), np.uint16)
bench.check(own.get("noise_from") == "range" and abs(own["noise"] - 0.005 * 65535) < 1 and "details below it vanish" in said and "save it as floats" in said and "[0, 4" not in said,
            f"16 bits: noise {own.get('noise')} from {own.get('noise_from')}: {said}")
own, _, _, said = solve(kernel_of(1.2, 6), np.uint16, noise=NOISE)
bench.check(own.get("noise_from") == "given" and "vanish" not in said, f"a noise that is given: {own.get('noise')}: {said}")

bench.finish()
