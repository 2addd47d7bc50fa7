"""Hot and dead pixels of the camera in measured blurs are replaced; stars, photons and texture are not."""
import json
import sys

from support import Bench, np

bench = Bench(sys.argv[1])
random = np.random.default_rng(11)
HEIGHT, WIDTH, REACH = 110, 130, 5
v, u = np.mgrid[-REACH:REACH + 1, -REACH:REACH + 1]


def gaussian(sigma):
    kernel = np.exp(-0.5 * (u * u + v * v) / sigma**2)
    return kernel / kernel.sum()


def streak():
    kernel = (v == 0) * 1.0
    return kernel / kernel.sum()


def blurred(scene, kernel):
    side = range(2 * REACH + 1)
    return sum(kernel[i, j] * scene[2 * REACH - i:2 * REACH - i + HEIGHT, 2 * REACH - j:2 * REACH - j + WIDTH] for i in side for j in side)


def solve(values, kernel, *args, **entries):
    np.save(bench.path("y.npy"), values)
    np.save(bench.path("k.npy"), kernel)
    bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", **entries}))
    result = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"), "--json", bench.path("r.json"), *args)
    if not bench.check(result.status == 0, f"runs: {result}"):
        return {}, np.zeros((HEIGHT, WIDTH)), ""
    return json.loads(bench.path("r.json").read_text())["reconstruct"], np.load(bench.path("out.npy")).astype(float), result.err


y, x = np.mgrid[:HEIGHT + 2 * REACH, :WIDTH + 2 * REACH]
scene = 110 + 40 * np.sin(x / 9) * np.cos(y / 6) + 60 * (np.hypot(y - 50, x - 40) < 22) - 40 * (np.abs(y - x - 20) < 6)
truth = scene[REACH:-REACH, REACH:-REACH]
soft = blurred(scene, gaussian(1.3)) + random.normal(0, 1.5, (HEIGHT, WIDTH))
places = random.permutation(np.ravel_multi_index(np.mgrid[3:HEIGHT - 3:7, 3:WIDTH - 3:7], soft.shape).ravel())[:12]


def psnr(image):
    return 10 * np.log10(255**2 / np.mean((image - truth) ** 2))


for kind, value in (("u1", 255), ("u1", 0), ("f4", 4000.0)):
    clean = np.clip(np.rint(soft), 0, 255).astype(kind)
    spoilt = clean.copy()
    spoilt.flat[places] = value
    spoilt.flat[places[0] + 1] = value  # two side by side
    right = psnr(solve(clean, gaussian(1.3))[1])
    own, image, said = solve(spoilt, gaussian(1.3))
    kept, worse, silent = solve(spoilt, gaussian(1.3), outliers=False, saturated=False)
    bench.check(own.get("outliers") == 13 and "13 value(s)" in said and psnr(image) > right - 1, f"{kind}, {value}: {own.get('outliers')} replaced, {psnr(image):.2f} of {right:.2f} dB: {said}")
    bench.check("outliers" not in kept and "stand out" not in silent and psnr(worse) < right - 3, f"{kind}, {value}: kept on demand: {psnr(worse):.2f} dB")

# What light can do: points, far from each other and side by side, bright and dark, alone or on texture, with and without noise.
points = np.zeros((HEIGHT + 2 * REACH, WIDTH + 2 * REACH))
points.flat[random.integers(0, points.size, 150)] += random.exponential(9000, 150)
scenes = {"stars": 20 + points, "dark points": 200 - 190 * (points > 0), "texture": random.uniform(0, 255, points.shape), "lines": 255.0 * ((x % 7 == 0) | (y % 11 == 0))}
for name, sharp in scenes.items():
    for label, kernel in (("Gaussian of 0.6", gaussian(0.6)), ("of 1.2", gaussian(1.2)), ("streak", streak())):
        light = blurred(sharp, kernel)
        for noise, values in (("no noise", light.astype("f4")), ("noise of 2", (light + random.normal(0, 2, light.shape)).astype("f4")), ("photons", random.poisson(0.2 * light).astype("u2"))):
            own, _, said = solve(values, kernel, "--iterations", "1")
            bench.check(own and "outliers" not in own and "stand out" not in said, f"{name}, {label}, {noise}: {own.get('outliers')}: {said}")

# Too many for a camera: a wrong kernel, or noise of another kind.
pepper = np.clip(np.rint(soft), 0, 255).astype("u1")
pepper[random.uniform(size=pepper.shape) < 0.01] = 255
own, _, said = solve(pepper, gaussian(1.3), "--iterations", "1")
bench.check("outliers" not in own and "too many for defects" in said, f"one of 100: {own.get('outliers')}: {said}")

bench.path("p.json").write_text(json.dumps({"operator": "blur", "kernel": "k.npy", "measurement": "y.npy", "outliers": "keep"}))
refused = bench.run("reconstruct", bench.path("out.npy"), "--problem", bench.path("p.json"))
bench.check(refused.status == 1 and '"outliers" must be true' in refused.err, f"\"outliers\" is true or false: {refused.err!r}")

bench.finish()
